"""The contract of a kind: whoever adds one to `KINDS` has it tested here."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowds import KIND_OF
from isplitlbi.abnormal.evidence import Way
from isplitlbi.abnormal.found import LISTS, UNRELIABLE
from isplitlbi.abnormal.kinds import (
    COPIED,
    KINDS,
    LOPSIDED,
    ONE_ANSWER,
    UNTRUSTWORTHY,
    Beyond,
    Figures,
    Outcome,
)

EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)

shares = st.floats(0.0, 1.0)
figures = st.builds(
    Figures,
    st.integers(1, 10**9),
    *[shares] * 5,
    st.just("item-1"),
    st.booleans(),
    st.integers(3, 99),
)


@EACH
def test_a_kind_is_registered_under_its_name(kind):
    assert KINDS[kind.name] is kind
    assert kind.name == kind.name.strip().lower() != ""


@EACH
def test_a_kind_belongs_to_one_list(kind):
    assert kind.list in LISTS
    assert (kind.name in UNTRUSTWORTHY) == (kind.list == UNRELIABLE)


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
def test_a_kind_knows_what_explains_votes(kind):
    assert len(set(kind.explanations)) == len(kind.explanations)
    for explanation in kind.explanations:
        assert isinstance(explanation, Way | Beyond)
    assert kind.prior > 0.0
    assert kind.quality is None or 0.0 < kind.quality < 1.0


def outcomes(n_users=1_000, seed=0):
    rng = np.random.default_rng(seed)
    slope, level = rng.normal(size=(2, n_users))
    return Outcome(slope, level, rng.random(n_users), rng.uniform(0.5, 1.0, n_users))


@EACH
def test_a_kind_says_of_every_user_whether_it_is_theirs(kind):
    for explanation in kind.explanations:
        its = kind.claims(explanation, outcomes(7))
        assert (its.shape, its.dtype) == ((7,), np.bool_)


@EACH
def test_users_who_vote_like_a_kind_are_found_to_be_of_it(kind, found, place):
    for user in [user for user, name in KIND_OF.items() if name == kind.name]:
        assert found.kind[place[user]] == kind.name
        assert found.list[place[user]] == kind.list


def test_no_two_kinds_claim_the_same_user_for_the_same_reason():
    found = outcomes()
    for explanation in {each for kind in KINDS.values() for each in kind.explanations}:
        kinds = [kind for kind in KINDS.values() if explanation in kind.explanations]
        claims = np.sum([kind.claims(explanation, found) for kind in kinds], axis=0)
        assert claims.max() == 1


def test_ties_alone_are_of_one_kind_only():
    found = outcomes()
    only_ties = found.ties >= ONE_ANSWER
    for kind in KINDS.values():
        for explanation in kind.explanations:
            claims = kind.claims(explanation, found)[only_ties]
            assert claims.all() if kind.name == "always-tie" else not claims.any()


def test_what_spoils_a_result_are_some_of_the_kinds():
    assert {"reversed", "careless", "position-biased", "pattern"} <= set(UNTRUSTWORTHY)
    assert not {"different taste", "sharper", "never-tie", "unclear"} & set(UNTRUSTWORTHY)


def test_a_user_without_a_clear_side_is_not_called_position_biased():
    found = outcomes(2)._replace(
        to_one_side=np.array([LOPSIDED - 0.01, LOPSIDED]), ties=np.zeros(2)
    )
    assert KINDS["position-biased"].claims(Beyond.ANSWERS, found).tolist() == [False, True]
    assert KINDS["careless"].claims(Beyond.ANSWERS, found).tolist() == [True, False]


def test_nobody_with_the_order_turned_round_is_a_copier():
    found = outcomes(2)._replace(slope=np.array([-4.0, 6.0]), ties=np.zeros(2))
    assert KINDS["copier"].claims(COPIED, found).tolist() == [False, True]
