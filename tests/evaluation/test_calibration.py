import numpy as np
import pytest

from isplitlbi.evaluation.calibration import at_temperature, best_temperature, calibration_error


def drawn(n_votes=20_000, seed=0):
    """Draw probabilities of three classes, and what happens by them."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet([1, 0.5, 2], n_votes)
    edges = probabilities.cumsum(axis=1)[:, :2]
    return (rng.random((n_votes, 1)) > edges).sum(axis=1), probabilities


def test_right_probabilities_have_nearly_no_error_and_need_no_temperature():
    happened, probabilities = drawn()
    assert calibration_error(happened, probabilities) < 0.01
    assert best_temperature(happened, np.log(probabilities)) == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("temperature", [0.5, 0.8, 1.6])
def test_the_temperature_undoes_too_much_or_too_little_certainty(temperature):
    happened, probabilities = drawn()
    wrong = at_temperature(np.log(probabilities), 1 / temperature)
    assert best_temperature(happened, wrong) == pytest.approx(temperature, rel=0.03)
    assert calibration_error(happened, np.exp(wrong)) > 0.03
    np.testing.assert_allclose(at_temperature(wrong, temperature), np.log(probabilities))


def test_classes_may_be_two_and_stand_in_any_order():
    happened, probabilities = drawn()
    error = calibration_error(happened, probabilities)
    assert calibration_error(2 - happened, probabilities[:, ::-1]) == pytest.approx(error)
    assert calibration_error([0, 1], [[1.0, 0.0], [1.0, 0.0]]) == 0.5


def test_certain_predictions_that_come_true_have_no_error_in_the_last_bin():
    assert calibration_error([1, 1], [[0.0, 1.0], [0.0, 1.0]], n_bins=4) == 0.0


def test_probabilities_that_vanish_do_not_hurt():
    logs = np.array([[0.0, -800.0], [-1e-9, -20.0]])
    np.testing.assert_allclose(np.exp(at_temperature(logs, 0.5)).sum(axis=1), 1)
