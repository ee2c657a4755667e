import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import confusion_matrix, f1_score, precision_score, recall_score
from sklearn.metrics import log_loss as sklearn_log_loss

from isplitlbi.model import metrics
from isplitlbi.model.metrics import (
    confusion,
    decide,
    log_loss,
    macro_f1,
    micro_f1,
    most_probable,
    paper_f1,
    precision,
    recall,
    reliability,
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
    with_ties = 0 in truth or 0 in predicted
    of_classes = options if with_ties else options | {"labels": [1, -1]}
    macro = f1_score(truth, predicted, average="macro", **of_classes)
    assert macro_f1(counts) == pytest.approx(macro)
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


def test_metrics_import_nothing_but_numpy_and_errors():
    tree = ast.parse(Path(metrics.__file__).read_text(encoding="utf-8"))
    imported = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    }
    assert imported == {"__future__", "numpy", "numpy.typing", "isplitlbi.errors"}


# --- the F1s of the published program ------------------------------------------------------


def paper_counts(truth, predicted, weight):
    """Return true positives, false positives and false negatives of left, tie and right.

    As the paper counts, vote by vote; only for left wins does it differ from the usual.
    """
    counts = np.zeros((3, 3))
    for true, said, amount in zip(truth, predicted, weight, strict=True):
        for place, side in enumerate(LABELS):
            if true == said == side:
                counts[0, place] += amount
            elif side == 1:
                counts[1, place] += amount * (true != 1 and said in (1, 0))
                counts[2, place] += amount * (true == 1 and said == -1)
            else:
                counts[1, place] += amount * (said == side)
                counts[2, place] += amount * (true == side)
    return counts


def by_the_paper(truth, predicted, weight):
    hit, wrong, missed = paper_counts(truth, predicted, weight)

    def share(part, rest):
        return np.array([p / (p + r) if p + r else 0.0 for p, r in zip(part, rest, strict=True)])

    def f1(p, r):
        return 2 * p * r / (p + r) if p + r else 0.0

    pooled = share([hit.sum()] * 2, [wrong.sum(), missed.sum()])
    return f1(*pooled), f1(share(hit, wrong).mean(), share(hit, missed).mean())


def test_the_papers_f1s_of_six_votes_by_hand():
    truth, predicted = [1, 1, 1, 0, -1, -1], [1, 0, -1, 0, 0, 1]
    # left: 1 right; 0 as 0, -1 as 0 and -1 as 1 count as wrongly left; 1 as -1 is missed, 1 as 0
    # is not. tie: 1 right, 2 wrong, 0 missed. right: 0 right, 1 wrong, 2 missed.
    expected = np.array([[1, 1, 0], [3, 2, 1], [1, 0, 2]])
    np.testing.assert_array_equal(paper_counts(truth, predicted, np.ones(6)), expected)
    precision_, recall_ = 2 / 8, 2 / 5
    micro = 2 * precision_ * recall_ / (precision_ + recall_)
    precision_, recall_ = (1 / 4 + 1 / 3 + 0) / 3, (1 / 2 + 1 + 0) / 3
    macro = 2 * precision_ * recall_ / (precision_ + recall_)
    assert paper_f1(confusion(truth, predicted)) == pytest.approx((micro, macro))


@given(weighted_predictions())
def test_the_papers_f1s_equal_a_count_vote_by_vote(case):
    truth, predicted, weight = case
    weight = np.ones(len(truth)) if weight is None else weight
    found = paper_f1(confusion(truth, predicted, weight))
    assert found == pytest.approx(by_the_paper(truth, predicted, weight))
    assert max(found) <= 1.0 + 1e-12


def test_the_papers_f1s_are_not_the_standard_ones():
    # A tie foretold as a tie counts as wrongly left, so that what is all right is not all of 1 ...
    truth = [1, 0, -1]
    assert f1_score(truth, truth, average="micro") == 1.0
    assert paper_f1(confusion(truth, truth)) == pytest.approx((6 / 7, 2 * (5 / 6) / (1 + 5 / 6)))
    # ... and a win foretold as a tie is not missed.
    truth, predicted = [1, 1, -1], [1, 0, -1]
    table = confusion(truth, predicted)
    options = {"labels": LABELS, "zero_division": 0}
    assert micro_f1(table) == pytest.approx(f1_score(truth, predicted, average="micro", **options))
    assert macro_f1(table) == pytest.approx(f1_score(truth, predicted, average="macro", **options))
    micro, macro = paper_f1(table)
    assert micro == pytest.approx(2 * (2 / 3) * 1 / (2 / 3 + 1)) != pytest.approx(micro_f1(table))
    assert macro == pytest.approx(2 / 3) != pytest.approx(macro_f1(table))


def test_without_ties_the_papers_micro_f1_is_the_standard_one():
    rng = np.random.default_rng(0)
    truth, predicted = rng.choice([1, -1], size=(2, 50))
    table = confusion(truth, predicted)
    assert paper_f1(table)[0] == pytest.approx(micro_f1(table))


def test_left_and_right_are_not_alike_to_the_papers_f1s():
    truth, predicted = np.array([1, 1, -1]), np.array([1, 0, -1])
    assert paper_f1(confusion(truth, predicted)) == pytest.approx((4 / 5, 2 / 3))
    assert paper_f1(confusion(-truth, -predicted)) == pytest.approx((4 / 7, 1 / 2))


def test_the_papers_f1s_of_many_tables_are_those_of_each():
    tables = np.random.default_rng(0).integers(0, 9, size=(4, 2, 3, 3)).astype(np.float64)
    each = np.array([paper_f1(table) for table in tables.reshape(8, 3, 3)]).reshape(4, 2, 2)
    np.testing.assert_allclose(np.stack(paper_f1(tables), axis=-1), each)


def test_the_papers_f1s_of_no_votes_are_zero():
    assert paper_f1(np.zeros((3, 3))) == (0.0, 0.0)


def test_the_papers_f1s_leave_the_confusion_as_it_is():
    table = confusion([1, 0, -1, 1], [0, 0, -1, -1])
    before = table.copy()
    paper_f1(table)
    np.testing.assert_array_equal(table, before)


# --- whether probabilities can be trusted --------------------------------------------------


def test_reliability_of_three_votes_by_hand():
    probabilities = [[0.9, 0.05, 0.05], [0.5, 0.3, 0.2], [0.1, 0.3, 0.6]]
    bins = reliability([1, 0, 1], probabilities, n_bins=4)
    expected = [
        [4, (0.05 + 0.05 + 0.2 + 0.1) / 4, 1 / 4],
        [2, 0.3, 1 / 2],
        [2, (0.5 + 0.6) / 2, 0.0],
        [1, 0.9, 1.0],
    ]
    np.testing.assert_allclose(bins, expected)


def test_bins_of_reliability_without_predictions_are_not_a_number():
    bins = reliability([1, -1], [[0.95, 0.0, 0.05], [1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(bins[:, 0], [4, 0, 0, 0, 0, 0, 0, 0, 0, 2])
    assert np.isnan(bins[1:-1, 1:]).all()
    np.testing.assert_allclose(bins[-1], [2, 0.975, 0.5])  # a certainty is in the last one
    np.testing.assert_allclose(bins[0], [4, 0.0125, 0.25])


@given(st.integers(1, 50), st.integers(1, 12), st.integers(0, 100))
def test_reliability_counts_every_vote_three_times_and_every_outcome_once(n, n_bins, seed):
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet([0.5, 0.5, 0.5], n)
    bins = reliability(rng.choice(LABELS, size=n), probabilities, n_bins)
    assert bins.shape == (n_bins, 3)
    count, predicted, happened = bins.T
    assert count.sum() == 3 * n
    assert np.nansum(count * predicted) == pytest.approx(n)
    assert np.nansum(count * happened) == pytest.approx(n)
    assert np.isnan(predicted).tolist() == np.isnan(happened).tolist() == (count == 0).tolist()
    some = count > 0
    edges = np.linspace(0, 1, n_bins + 1)
    assert np.all(predicted[some] >= edges[:-1][some] - 1e-9)
    assert np.all(predicted[some] <= edges[1:][some] + 1e-9)


def test_probabilities_that_are_true_lie_on_the_diagonal():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet([1, 1, 1], 20_000)
    drawn = (rng.random(20_000)[:, None] > probabilities.cumsum(axis=1)).sum(axis=1)
    outcome = np.array(LABELS)[np.minimum(drawn, 2)]
    _, predicted, happened = reliability(outcome, probabilities).T
    np.testing.assert_allclose(happened, predicted, atol=0.04)
    # Those of somebody too sure of himself do not.
    sharp = probabilities**3 / (probabilities**3).sum(axis=1, keepdims=True)
    _, predicted, happened = reliability(outcome, sharp).T
    assert happened[0] > predicted[0] + 0.05
    assert happened[-1] < predicted[-1] - 0.1
