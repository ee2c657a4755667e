"""The contract of a term: what the layout, the kernels and a path ask of every one."""

import json

import numpy as np
import pytest

from isplitlbi.data.layout import TASTE, THRESHOLD, Layout, Sees, Shown, Vector
from isplitlbi.errors import InvalidSetting
from isplitlbi.model.answering import ForcedChoice, LogThreshold
from isplitlbi.model.links import Logistic
from isplitlbi.model.terms import (
    HELD_FAST,
    LOG_THRESHOLD_VARIANCE,
    NAMES,
    PAPER,
    TERMS,
    Feature,
    Sharpness,
    Side,
    Taste,
    Terms,
    Threshold,
    Trait,
)
from traits import SIZED, Leftmost, Newest, sized_terms, terms_with
from votes import random_votes, rebuilt


def length():
    return Feature("length", 0)


# Those that a model may have, and those of the tests.
EVERY = TERMS | {each.name: each for each in (Leftmost, Newest)} | {"length": length}

every_term = pytest.mark.parametrize(("name", "term"), EVERY.items(), ids=EVERY)
every_trait = pytest.mark.parametrize(
    "trait", [each for each in EVERY.values() if isinstance(each(), Trait)],
    ids=lambda each: each().name,
)  # fmt: skip
every_model = pytest.mark.parametrize("terms", SIZED.values(), ids=SIZED)


@every_term
def test_a_term_is_known_by_its_name(name, term):
    assert term().name == name
    assert name.isidentifier() and name not in ("paper", "all", "habit")


@every_term
def test_a_term_is_frozen_and_those_of_a_kind_are_the_same(name, term):
    assert term() == term()
    assert hash(term()) == hash(term())
    with pytest.raises(AttributeError):
        term().name = "another"


@every_term
def test_a_term_sees_something_and_has_a_prior(name, term):
    assert isinstance(term().sees, Sees)
    assert not isinstance(term(), Trait) or term().consensus_variance > 0.0


@every_trait
def test_exchanging_two_items_turns_the_column_around_unless_the_side_is_seen(trait):
    rng, trait = np.random.default_rng(0), trait()
    first = rng.integers(9, size=40)
    second = (first + rng.integers(1, 9, size=40)) % 9
    votes = random_votes(0, n_items=9, n_votes=40, features=("length",))
    rows = (votes, np.arange(40)) if trait.sees is Sees.VOTE else ()
    column = trait.column(Shown(first, second, *rows))
    assert column.shape == (40,)
    assert np.isfinite(column).all() and column.any()
    if trait.sees is Sees.PAIR:
        np.testing.assert_array_equal(trait.column(Shown(second, first)), -column)


@every_trait
def test_a_trait_has_a_slot_of_every_user_and_a_column_of_every_edge(trait):
    votes, trait = random_votes(1, n_users=6, features=("length",)), trait()
    layout = Layout.of(votes, (trait,))
    place = layout.vector.place(trait.name)
    assert layout.vector.traits == (trait.name, THRESHOLD)
    assert layout.terms == (TASTE, trait.name, THRESHOLD)
    assert np.sum(layout.slots.coordinate == place) == votes.n_users
    assert layout.edges.columns.shape == (1, len(layout.edges.first))
    again = Layout.of(votes, (trait,))  # found once, but for the columns
    assert again.slots is layout.slots and again.edges.first is layout.edges.first
    # As many edges as the term can tell apart.
    swapped = Layout.of(rebuilt(votes, swapped=True), (trait,))
    if trait.sees is Sees.PAIR:
        assert len(layout.edges.first) == len(Layout.of(votes).edges.first)
        np.testing.assert_array_equal(swapped.edges.first_wins, layout.edges.first_wins)
    else:
        assert len(layout.edges.first) > len(Layout.of(votes).edges.first)


def test_without_features_both_sides_are_alike():
    votes = random_votes(0)
    for shown in (Shown(votes.left, votes.right), Shown(votes.left, votes.right, votes)):
        assert not length().column(shown).any()


# --- the terms of a model ------------------------------------------------------------------


def test_the_paper_has_taste_and_a_threshold_with_a_bound():
    assert PAPER == Terms.named("paper") == Terms.named("paper", features=("length",))
    assert PAPER.all == (Taste(), Threshold())
    assert PAPER.names == (TASTE, THRESHOLD)
    assert PAPER.scales == (1.0, 1.0)
    assert PAPER.traits == ()
    assert PAPER.ties == "bounded" and PAPER.has_ties
    assert not PAPER.has_habits and not PAPER.has_sharpness and PAPER.reference is None
    assert PAPER.answering(link := Logistic()) is link


def test_all_terms_are_those_that_can_be_named():
    found = Terms.named("all")
    assert found == Terms.named(NAMES) == Terms.named(",".join(NAMES))
    assert found.names == ("taste", "sharpness", "side", "threshold")
    assert found.traits == (Side(),)
    assert found.has_sharpness and found.has_habits and found.has_ties
    assert found.scales == (1.0,) * 4
    assert found.answering(link := Logistic()) == LogThreshold(link)


def test_terms_are_found_by_their_names_each_once_and_in_one_order():
    found = Terms.named(["threshold", " side", "taste", "side "])
    assert found == Terms.named("taste,side,threshold")
    assert found.names == ("taste", "side", "threshold")
    assert not found.has_habits
    assert len({found, Terms.named("taste,side,threshold"), PAPER}) == 2


def test_what_is_not_named_has_no_size_but_keeps_its_place():
    found = Terms.named("side")
    assert found.names == ("taste", "side", "threshold")
    assert found.scales == (0.0, 1.0, 0.0)
    assert found.has_ties  # the consensus has a threshold, users have none of their own


def test_every_feature_is_a_term_after_the_side():
    found = Terms.named("taste,side", features=("length", "price"))
    assert found.names == ("taste", "side", "length", "price", "threshold")
    assert found.traits == (Side(), Feature("length", 0), Feature("price", 1))


def test_sides_that_mean_nothing_are_no_term():
    found = Terms.named("all", has_sides=False)
    assert found.names == ("taste", "sharpness", "threshold")
    votes = random_votes(0)
    assert len(found.layout(votes).edges.first) == len(Layout.of(votes).edges.first)


def test_without_ties_there_is_neither_threshold_nor_habit():
    found = Terms.named("all", has_ties=False)
    assert found.ties == "none" and not found.has_ties and not found.has_habits
    assert found.scale("threshold") == 0.0
    assert isinstance(found.answering(Logistic()), ForcedChoice)
    vector = found.layout(random_votes(0, tie_share=0.0)).vector
    assert found.is_common(vector)[vector.threshold] == 0.0


@pytest.mark.parametrize("names", ["mood", ["taste", "side", "mood"], "taste,mood", "", "Taste"])
def test_an_unknown_term_is_refused_with_the_known_ones(names):
    known = "is not one of all, paper, taste, threshold, sharpness, side, habit"
    with pytest.raises(InvalidSetting, match=known):
        Terms.named(names)


# --- sizes and references ------------------------------------------------------------------


def test_other_sizes_leave_the_rest_as_it_is():
    terms = Terms.named("all")
    sized = terms.sized({"side": 0.5, "threshold": 2.0, "unheard of": 7.0})
    assert sized.scales == (1.0, 1.0, 0.5, 2.0)
    assert sized.scale("side") == 0.5
    assert sized.sized({"side": 1.0, "threshold": 1.0}) == terms


def test_the_reference_is_that_of_the_sharpness_and_no_reason_to_lay_out_votes_anew():
    terms, scores = Terms.named("all"), np.array([0.5, -0.5, 1.0, 0.0])
    assert terms.reference is None
    referring = terms.referring(scores)
    np.testing.assert_array_equal(referring.reference, scores)
    assert referring.all == terms.all and hash(referring.all) == hash(terms.all)
    votes = random_votes(0)
    assert referring.layout(votes).slots is terms.layout(votes).slots
    assert Terms.named("taste,threshold").referring(scores).reference is None


# --- the consensus -------------------------------------------------------------------------


def test_a_path_starts_at_no_opinion():
    vector = Vector(3, ("leftmost", "newest", THRESHOLD))
    terms = terms_with(Leftmost(), Newest())
    np.testing.assert_array_equal(terms.start(vector, 1e-3), [0, 0, 0, 0, 0, 1.0])
    np.testing.assert_array_equal(terms.start(vector, 2.5), [0, 0, 0, 0, 0, 2.5])
    np.testing.assert_array_equal(PAPER.start(Vector(2, (THRESHOLD,)), 1e-3), [0, 0, 1.0])


@every_model
def test_by_its_logarithm_a_threshold_starts_at_one(terms):
    vector = terms.layout(random_votes(0, features=("length", "price"))).vector
    assert not terms.start(vector, 1e-3).any()


def test_the_paper_has_no_prior_on_the_consensus():
    vector = Layout.of(random_votes(0)).vector
    assert not PAPER.precision(vector).any()
    assert PAPER.is_common(vector).all()


@every_model
def test_a_prior_holds_all_of_the_consensus(terms):
    vector = terms.layout(random_votes(0, features=("length", "price"))).vector
    precision, common = terms.precision(vector), terms.is_common(vector)
    assert np.all(precision[vector.scores] == 1.0 / terms.score_variance)
    assert np.all(precision[vector.habits] == 1.0 / terms.habit_variance)
    for trait in terms.traits:
        assert precision[vector.place(trait.name)] == 1.0 / trait.consensus_variance
    assert np.all(precision[common > 0.0] > 0.0) and np.isfinite(precision).all()
    own = {"sharpness"} if terms.has_sharpness else set()
    own |= set() if terms.has_ties else {THRESHOLD}
    assert {vector.place(name) for name in own} == set(np.flatnonzero(common == 0.0))
    if terms.has_ties:
        assert precision[vector.threshold] == 1.0 / LOG_THRESHOLD_VARIANCE


@every_model
def test_only_a_taste_that_nobody_has_is_held_fast(terms):
    assert terms.holds[0] == (1.0 if terms.scales[0] > 0.0 else HELD_FAST)
    assert len(terms.holds) == len(terms.names) and np.all(terms.holds[1:] == 1.0)


# --- plain values --------------------------------------------------------------------------


@pytest.mark.parametrize("terms", [PAPER, *SIZED.values()], ids=["paper", *SIZED])
def test_terms_come_back_from_plain_values(terms):
    told = json.loads(json.dumps(terms.as_dict()))
    found = Terms.from_dict(told)
    assert found == terms
    assert found.as_dict() == told
    if terms.reference is None:
        assert found.reference is None
    else:
        np.testing.assert_array_equal(found.reference, terms.reference)


def test_a_feature_may_have_the_place_of_any_and_comes_back_there():
    terms = sized_terms("side", features=("price", "length"))
    assert Terms.from_dict(terms.as_dict()).traits == (
        Side(), Feature("price", 0), Feature("length", 1),
    )  # fmt: skip


def test_equal_terms_of_other_references_are_told_apart_by_their_values():
    one, other = (sized_terms("all").referring(np.full(6, value)) for value in (0.0, 1.0))
    assert one.as_dict() != other.as_dict()
    assert Sharpness(np.zeros(2)) == Sharpness(np.ones(2))
