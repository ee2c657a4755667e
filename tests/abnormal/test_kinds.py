"""The contract of a kind: whoever adds one to `KINDS` has it tested here."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowds import KIND_OF
from isplitlbi.abnormal.kinds import (
    KINDS,
    LOPSIDED,
    UNTRUSTWORTHY,
    Evidence,
    Figures,
)
from isplitlbi.solvers.common import NUMBERS

EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)

shares = st.floats(0.0, 1.0)
figures = st.builds(Figures, st.integers(1, 10**9), *[shares] * 7)


@EACH
def test_a_kind_is_registered_under_its_name(kind):
    assert KINDS[kind.name] is kind
    assert kind.name == kind.name.strip().lower() != ""


@EACH
def test_a_kind_has_a_colour_unlike_the_others(kind):
    assert re.fullmatch("#[0-9a-f]{6}", kind.colour)
    assert [other.name for other in KINDS.values() if other.colour == kind.colour] == [kind.name]


@EACH
@given(known=figures)
def test_a_kind_has_one_plain_sentence_for_any_figures(kind, known):
    said = kind.sentence(known)
    assert said[0].islower()
    assert said.isprintable()
    assert not said.endswith(".")
    assert "nan" not in said.split()


@EACH
def test_a_kind_is_told_by_a_few_numbers_or_by_scores_of_ones_own(kind):
    assert bool(kind.explanations) != kind.by_own_scores
    for explanation in kind.explanations:
        assert {*explanation.free} <= {*NUMBERS}
        assert explanation.cost >= len(explanation.free) > 0


@EACH
def test_a_kind_says_of_every_user_whether_it_is_theirs(kind):
    numbers = np.random.default_rng(0).normal(size=(4, 7))
    its = kind.covers(Evidence(*numbers[:3], 0.5, np.abs(numbers[3])))
    assert (its.shape, its.dtype) == ((7,), np.bool_)


@EACH
def test_a_kind_that_has_a_quality_of_its_own_has_a_low_one(kind):
    assert kind.quality is None or 0.0 <= kind.quality < 0.5
    assert kind.is_untrustworthy or kind.quality is None


@EACH
def test_users_who_vote_like_a_kind_are_found_to_be_of_it(kind, found, place):
    theirs = [user for user, name in KIND_OF.items() if name == kind.name]
    assert theirs
    for user in theirs:
        assert found.kind[place[user]] == kind.name


def test_no_two_kinds_claim_the_same_user_for_the_same_reason():
    rng = np.random.default_rng(1)
    explanations = {each for kind in KINDS.values() for each in kind.explanations}
    for explanation in explanations:
        numbers = np.tile([[explanation.slope], [0.0], [0.5]], 1_000)
        for name in explanation.free:
            numbers[NUMBERS.index(name)] = rng.normal(size=1_000)
        found = Evidence(*numbers, 0.5, rng.uniform(LOPSIDED, 1.0, 1_000))
        kinds = [kind for kind in KINDS.values() if explanation in kind.explanations]
        claims = np.sum([kind.covers(found) for kind in kinds], axis=0)
        np.testing.assert_array_equal(claims, 1)


def test_one_kind_is_that_of_other_scores():
    assert [kind.name for kind in KINDS.values() if kind.by_own_scores] == ["different taste"]


def test_what_spoils_a_result_are_some_of_the_kinds():
    assert UNTRUSTWORTHY == ("reversed", "careless", "position-biased")
    assert set(UNTRUSTWORTHY) < set(KINDS)


def test_a_user_without_a_clear_side_is_not_called_position_biased():
    ones = np.ones(2)
    found = Evidence(ones, 3 * ones, ones, 1.0, np.array([LOPSIDED - 0.01, LOPSIDED]))
    assert KINDS["position-biased"].covers(found).tolist() == [False, True]
