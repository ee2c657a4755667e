import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import confusion_matrix, f1_score, precision_score, recall_score
from sklearn.metrics import log_loss as sklearn_log_loss

from isplitlbi import metrics
from isplitlbi.metrics import (
    confusion,
    decide,
    log_loss,
    macro_f1,
    micro_f1,
    most_probable,
    precision,
    recall,
)

LABELS = [1, 0, -1]

outcomes = st.integers(-1, 1)
# Few distinct numbers, so that equalities and boundaries come up often.
coarse = st.integers(-3, 3).map(float)


@st.composite
def weighted_predictions(draw):
    """Outcomes, predictions and positive weights (or none), of equal length."""
    n = draw(st.integers(1, 40))
    truth = draw(hnp.arrays(np.int8, n, elements=outcomes))
    predicted = draw(hnp.arrays(np.int8, n, elements=outcomes))
    weight = draw(st.none() | hnp.arrays(float, n, elements=st.floats(0.01, 100)))
    return truth, predicted, weight


@st.composite
def margins_and_outcomes(draw):
    n = draw(st.integers(1, 40))
    margin = draw(hnp.arrays(float, n, elements=coarse))
    threshold = draw(hnp.arrays(float, n, elements=st.sampled_from([0.5, 1.0, 2.0])))
    outcome = draw(hnp.arrays(np.int8, n, elements=outcomes))
    return margin, threshold, outcome


@settings(deadline=None)  # the first call into scikit-learn is slow
@given(weighted_predictions())
def test_confusion_equals_scikit_learns(case):
    truth, predicted, weight = case
    expected = confusion_matrix(truth, predicted, labels=LABELS, sample_weight=weight)
    np.testing.assert_allclose(confusion(truth, predicted, weight), expected)


@settings(deadline=None)  # the first call into scikit-learn is slow
@given(weighted_predictions())
def test_f1s_precision_and_recall_equal_scikit_learns(case):
    truth, predicted, weight = case
    counts = confusion(truth, predicted, weight)
    options = {"labels": LABELS, "zero_division": 0, "sample_weight": weight}
    assert micro_f1(counts) == pytest.approx(f1_score(truth, predicted, average="micro", **options))
    assert macro_f1(counts) == pytest.approx(f1_score(truth, predicted, average="macro", **options))
    np.testing.assert_allclose(
        precision(counts), precision_score(truth, predicted, average=None, **options)
    )
    np.testing.assert_allclose(
        recall(counts), recall_score(truth, predicted, average=None, **options)
    )


@given(weighted_predictions())
def test_a_weight_of_two_counts_a_vote_twice(case):
    truth, predicted, _ = case
    twice = confusion(truth, predicted, np.full(len(truth), 2.0))
    np.testing.assert_array_equal(twice, confusion(np.tile(truth, 2), np.tile(predicted, 2)))


def test_the_f1s_of_no_votes_are_zero():
    nothing = confusion(np.array([], dtype=np.int8), np.array([], dtype=np.int8))
    assert nothing.shape == (3, 3)
    assert micro_f1(nothing) == macro_f1(nothing) == 0.0


@settings(deadline=None)  # the first call into scikit-learn is slow
@given(weighted_predictions(), st.randoms(use_true_random=False))
def test_log_loss_equals_scikit_learns(case, random):
    truth, _, weight = case
    rng = np.random.default_rng(random.randrange(2**32))
    probabilities = rng.dirichlet([1, 1, 1], len(truth)).clip(1e-6)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    # scikit-learn sorts the classes: -1, 0, 1.
    expected = sklearn_log_loss(
        truth, probabilities[:, ::-1], labels=[-1, 0, 1], sample_weight=weight
    )
    assert log_loss(truth, np.log(probabilities), weight) == pytest.approx(expected)


def test_log_loss_takes_columns_in_the_order_left_tie_right():
    log_probabilities = np.log([[0.7, 0.2, 0.1]])
    assert log_loss([1], log_probabilities) == pytest.approx(-np.log(0.7))
    assert log_loss([0], log_probabilities) == pytest.approx(-np.log(0.2))
    assert log_loss([-1], log_probabilities) == pytest.approx(-np.log(0.1))


@pytest.mark.parametrize("n", [0, 2])
def test_log_loss_without_any_weight_is_an_error(n):
    with pytest.raises(ValueError, match="at least one vote with a positive weight"):
        log_loss(np.zeros(n, dtype=np.int8), np.zeros((n, 3)), np.zeros(n))


def test_a_margin_on_the_threshold_is_a_tie():
    np.testing.assert_array_equal(decide([1.0, -1.0, 1.1, -1.1], 1.0), [0, 0, 1, -1])


def test_decide_takes_a_threshold_per_vote():
    np.testing.assert_array_equal(decide([1.0, 1.0], [0.5, 2.0]), [1, 0])


@given(margins_and_outcomes())
def test_decide_mirrors_when_left_and_right_are_swapped(case):
    margin, threshold, _ = case
    answer = decide(margin, threshold)
    assert answer.dtype == np.int8
    np.testing.assert_array_equal(decide(-margin, threshold), -answer)


@given(hnp.arrays(float, st.tuples(st.integers(0, 30), st.just(3)), elements=coarse))
def test_most_probable_mirrors_and_picks_a_largest_probability(log_probabilities):
    answer = most_probable(log_probabilities)
    assert answer.dtype == np.int8
    np.testing.assert_array_equal(most_probable(log_probabilities[:, ::-1]), -answer)
    largest = log_probabilities.max(axis=1)
    left_or_right = answer != 0
    chosen = log_probabilities[np.arange(len(answer)), 1 - answer]
    np.testing.assert_array_equal(chosen[left_or_right], largest[left_or_right])
    unique = (log_probabilities == largest[:, None]).sum(axis=1) == 1
    np.testing.assert_array_equal(answer[unique], 1 - log_probabilities[unique].argmax(axis=1))


def test_sides_that_share_the_largest_probability_make_a_tie():
    np.testing.assert_array_equal(
        most_probable(np.log([[0.4, 0.2, 0.4], [0.4, 0.4, 0.2], [0.2, 0.4, 0.4], [1, 1, 1]])),
        [0, 0, 0, 0],
    )


def test_metrics_import_nothing_but_numpy():
    tree = ast.parse(Path(metrics.__file__).read_text(encoding="utf-8"))
    imported = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    }
    assert imported == {"__future__", "numpy", "numpy.typing"}
