"""The contract of a term: what the layout, the kernels and a path ask of every one."""

import numpy as np
import pytest

from isplitlbi.data.layout import TASTE, THRESHOLD, Layout, Sees, Shown, Vector
from isplitlbi.errors import InvalidSetting
from isplitlbi.model.terms import PAPER, TERMS, Taste, Terms, Threshold, Trait
from traits import Leftmost, Newest, terms_with
from votes import random_votes, rebuilt

# Those that a model may have, and those of the tests.
EVERY = TERMS | {each.name: each for each in (Leftmost, Newest)}

every_term = pytest.mark.parametrize("term", EVERY.values(), ids=EVERY)
every_trait = pytest.mark.parametrize(
    "trait",
    [each for each in EVERY.values() if issubclass(each, Trait)],
    ids=lambda each: each.name,
)


@every_term
def test_a_term_is_known_by_its_name(term):
    assert EVERY[term.name] is term
    assert term.name.isidentifier() and term.name != "paper"


@every_term
def test_a_term_is_frozen_and_those_of_a_kind_are_the_same(term):
    assert term() == term()
    assert hash(term()) == hash(term())
    with pytest.raises(AttributeError):
        term().name = "another"


@every_term
def test_the_start_of_a_term_is_finite_and_within_its_bound(term):
    assert np.isfinite(term.start)
    assert not term.is_bounded or term.start > 0.0
    assert isinstance(term.sees, Sees)


@every_trait
def test_exchanging_two_items_turns_the_column_around_unless_the_side_is_seen(trait):
    rng = np.random.default_rng(0)
    first = rng.integers(9, size=40)
    second = (first + rng.integers(1, 9, size=40)) % 9
    votes = random_votes(0, n_items=9, n_votes=40)
    rows = (votes, np.arange(40)) if trait.sees is Sees.VOTE else ()
    column = trait().column(Shown(first, second, *rows))
    assert column.shape == (40,)
    assert np.isfinite(column).all() and column.any()
    if trait.sees is Sees.PAIR:
        np.testing.assert_array_equal(trait().column(Shown(second, first)), -column)


@every_trait
def test_a_trait_has_a_slot_of_every_user_and_a_column_of_every_edge(trait):
    votes = random_votes(1, n_users=6)
    layout = Layout.of(votes, (trait(),))
    place = layout.vector.place(trait.name)
    assert layout.vector.traits == (trait.name, THRESHOLD)
    assert layout.terms == (TASTE, trait.name, THRESHOLD)
    assert np.sum(layout.slots.coordinate == place) == votes.n_users
    assert layout.edges.columns.shape == (1, len(layout.edges.first))
    assert layout is Layout.of(votes, (trait(),))  # found once
    # As many edges as the term can tell apart.
    swapped = Layout.of(rebuilt(votes, swapped=True), (trait(),))
    if trait.sees is Sees.PAIR:
        assert len(layout.edges.first) == len(Layout.of(votes).edges.first)
        np.testing.assert_array_equal(swapped.edges.first_wins, layout.edges.first_wins)
    else:
        assert len(layout.edges.first) > len(Layout.of(votes).edges.first)


# --- the terms of a model ------------------------------------------------------------------


def test_the_paper_has_taste_and_a_threshold():
    assert PAPER == Terms.named("paper") == Terms.named(["taste", "threshold"])
    assert PAPER.all == (Taste(), Threshold())
    assert PAPER.names == (TASTE, THRESHOLD)
    assert PAPER.traits == ()


def test_terms_are_found_by_their_names_each_once(monkeypatch):
    monkeypatch.setitem(TERMS, Leftmost.name, Leftmost)
    found = Terms.named(["taste", "leftmost", "threshold", "leftmost"])
    assert found == terms_with(Leftmost())
    assert found.names == ("taste", "leftmost", "threshold")
    assert found.traits == (Leftmost(),)
    assert len({found, terms_with(Leftmost()), PAPER}) == 2


@pytest.mark.parametrize("names", ["mood", ["taste", "threshold", "mood"]])
def test_an_unknown_term_is_refused_with_the_known_ones(names):
    with pytest.raises(InvalidSetting, match="term 'mood' is not one of paper, taste, threshold"):
        Terms.named(names)


@pytest.mark.parametrize(
    ("names", "missing"), [(["taste"], "threshold"), (["threshold"], "taste"), ([], "taste")]
)
def test_a_model_needs_taste_and_a_threshold(names, missing):
    with pytest.raises(InvalidSetting, match=f"cannot do without the term '{missing}'"):
        Terms.named(names)


def test_a_path_starts_where_the_terms_say():
    vector = Vector(3, ("leftmost", "newest", THRESHOLD))
    terms = terms_with(Leftmost(), Newest())
    np.testing.assert_array_equal(terms.start(vector, 1e-3), [0, 0, 0, 0.25, 0.0, 1.0])
    np.testing.assert_array_equal(terms.start(vector, 2.5), [0, 0, 0, 0.25, 0.0, 2.5])
    np.testing.assert_array_equal(PAPER.start(Vector(2, (THRESHOLD,)), 1e-3), [0, 0, 1.0])
