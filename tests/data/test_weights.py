"""Weights: only how they compare with each other counts."""

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi import Comparisons
from isplitlbi.data.merging import with_new_votes
from isplitlbi.data.notes import WeightsScaled
from isplitlbi.data.readers import read_votes
from isplitlbi.data.summary import Summary
from isplitlbi.data.weights import SMALLEST, WeightSum, unevenness
from votes import assert_same, from_rows, random_votes, rebuilt, rows

positive = st.floats(1e-300, 1e300)
some_weights = st.lists(positive, min_size=1, max_size=30)
units = st.sampled_from([1e-6, 1 / 60, 1e6, 1e300, 3e-290])


def weighted(weight, **columns):
    n = len(weight)
    left, right = ["a", "b"] * n, ["b", "c"] * n
    names = [f"u{k % 3}" for k in range(n)]
    return Comparisons.from_arrays(names, left[:n], right[:n], [1] * n, weight, **columns)


@given(some_weights)
def test_weights_are_one_on_average_and_none_is_lost(weight):
    votes = weighted(weight)
    assert votes.total_weight == pytest.approx(len(weight))
    assert votes.weight.min() >= SMALLEST
    np.testing.assert_array_equal(votes.weight_as_given, weight)


@given(st.lists(st.floats(1e-280, 1e280), min_size=1, max_size=30), st.integers(-60, 60))
def test_a_power_of_two_as_unit_changes_no_bit(weight, power):
    one, other = weighted(np.array(weight)), weighted(np.ldexp(weight, power))
    np.testing.assert_array_equal(one.weight, other.weight, strict=True)
    assert Summary.of(one).fingerprint == Summary.of(other).fingerprint


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30), units)
def test_any_unit_gives_the_same_weights(weight, unit):
    one, other = weighted(np.array(weight)), weighted(np.array(weight) * unit)
    np.testing.assert_allclose(one.weight, other.weight, rtol=1e-14)


@given(positive, st.integers(1, 40))
def test_weights_that_are_all_the_same_are_one_to_the_last_bit(weight, n):
    assert weighted([weight] * n).weight.tolist() == [1.0] * n


@given(some_weights, st.randoms(use_true_random=False), st.integers(0, 30))
def test_the_mean_depends_neither_on_the_order_nor_on_the_parts(weight, random, cut):
    shuffled = random.sample(weight, len(weight))
    parts = [WeightSum.of(np.array(part)) for part in (shuffled[:cut], shuffled[cut:])]
    assert WeightSum.sum([*parts, None]).mean() == WeightSum.of(np.array(weight)).mean()
    assert WeightSum.sum([None]) is None


def test_extremes_are_finite_and_not_zero():
    for weight in ([1e-300, 1e300], [5e-324, 1.7e308, 1.0], [5e-324, 5e-324], [1.7e308] * 3):
        votes = weighted(weight)
        assert np.isfinite(votes.weight).all() and votes.weight.min() > 0.0
        assert votes.total_weight == pytest.approx(len(weight))
        moved = votes.in_weight_unit(1e-300)
        assert np.isfinite(moved.weight).all() and moved.weight.min() > 0.0


@pytest.mark.parametrize("weight", [0.0, -1.0, np.inf])
def test_what_is_no_positive_number_is_refused_with_its_row(weight):
    with pytest.raises(ValueError, match=r"row 2: weight .* is not a positive, finite number"):
        weighted([1.0, weight, 2.0])


def test_a_mean_over_counted_rows_is_one_over_votes():
    counted = weighted([1.0, 4.0], count=[3, 1])
    assert_same(counted, Comparisons.from_arrays(
        ["u0"] * 3 + ["u1"], list("aaab"), list("bbbc"), [1] * 4, [1.0, 1.0, 1.0, 4.0]
    ))  # fmt: skip
    assert counted.weight_unit == 7 / 4


def test_weights_of_mean_one_stay_as_they_are_and_nothing_is_said(caplog):
    votes = weighted([0.5, 1.5, 1.0])
    assert votes.weight.tolist() == [0.5, 1.5, 1.0] and votes.given_weight is None
    assert caplog.records == []
    again = weighted(weighted([0.1, 0.3, 0.7, 1e5]).weight)
    assert again.weight_unit == 1.0


def test_other_units_are_told(caplog, tmp_path):
    weighted([2.0, 3.0])
    assert [record.getMessage() for record in caplog.records] == [
        "votes: The weights are 2.5 on average. Only how they compare with each other counts: "
        "a fit divides them by their mean."
    ]
    assert caplog.records[0].levelno == logging.WARNING
    file = tmp_path / "votes.csv"
    file.write_text("user,left,right,winner,weight\nu,a,b,tie,1e-6\nu,b,c,left,3e-6\n")
    assert read_votes(file).notes == (WeightsScaled(unit=2e-6),)


# --- parts, and several together ---------------------------------------------------------------


@given(rows, st.data())
def test_a_part_keeps_its_weights_and_what_is_alone_has_weights_of_its_own(rows, data):
    votes = from_rows(rows)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    part = votes.subset(mask)
    np.testing.assert_array_equal(part.weight, votes.weight[mask])
    np.testing.assert_array_equal(part.weight_as_given, votes.weight_as_given[mask])
    if mask.any():
        kept = [row for row, is_kept in zip(rows, mask, strict=True) if is_kept]
        assert_same(votes.alone(mask), from_rows(kept))


@given(rows, rows)
def test_old_and_new_votes_are_on_one_scale(old, new):
    together = with_new_votes(from_rows(old), from_rows(new))
    assert_same(together, from_rows([*old, *new]))


def test_new_votes_are_found_again_by_the_weights_they_were_given():
    old = random_votes(1, weighted=True)
    more = Comparisons.from_arrays(["u9"], ["i1"], ["i2"], [1], [50.0])
    with pytest.raises(ValueError, match="the model has all of these votes already"):
        with_new_votes(Comparisons.joined(old, more), old, "drop")


def test_weights_may_be_changed_and_taken_away():
    votes = random_votes(0, weighted=True)
    assert votes.changed(weight=np.full(60, 7.0)).weight.tolist() == [1.0] * 60
    bare = votes.changed(weight=None)
    assert bare.weight is None and bare.weight_as_given is None
    assert_same(bare, rebuilt(bare))


# --- weights that are too uneven ---------------------------------------------------------------


def test_weights_are_too_uneven_below_a_tenth():
    one = weighted([1e300] + [1e-300] * 20)
    assert Summary.of(one).n_effective == pytest.approx(1.0)
    assert "tell about as much as 1 of equal weight" in str(Summary.of(one).unevenness)
    assert Summary.of(weighted([1.0] * 5)).n_effective == 5.0
    assert unevenness(1.0, 10) is None and unevenness(0.99, 10) is not None
    assert unevenness(None, 10) is None
