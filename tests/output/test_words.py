"""What a model found, in words."""

import pytest

from isplitlbi.output.words import (
    chosen_in_words,
    factor,
    side_in_words,
    sorted_spreads,
    spread_in_words,
    threshold_in_words,
)


@pytest.mark.parametrize(
    ("spreads", "sentence"),
    [
        ({"taste": 0.3, "sharpness": 1.1}, "people here differ mostly in sharpness"),
        ({"taste": 1.0, "side": 0.9, "sharpness": 0.1},
         "people here differ mostly in taste and the side they lean to"),
        ({"taste": 0.1, "threshold": 0.4},
         "people here differ mostly in readiness to call a tie"),
        ({"taste": 0.1, "length": 0.4}, "people here differ mostly in the effect of length"),
        ({"taste": 0.02, "sharpness": 0.01}, "people here hardly differ"),
        ({"taste": 1.0, "sharpness": 0.95, "side": 0.9},
         "people here differ about equally in everything"),
        ({"taste": 1.0}, "people here differ mostly in taste"),
        ({}, "people here hardly differ"),
    ],
)  # fmt: skip
def test_what_people_differ_in_most_is_said(spreads, sentence):
    assert spread_in_words(spreads) == sentence


def test_spreads_stand_from_the_largest_down():
    assert list(sorted_spreads({"a": 0.1, "b": 2.0, "c": 1.0})) == ["b", "c", "a"]


@pytest.mark.parametrize(
    ("side", "sentence"),
    [
        (0.12, "the left side is favoured by 0.12 logits"),
        (-0.3, "the right side is favoured by 0.30 logits"),
        (0.0, "neither side is favoured"),
    ],
)
def test_the_side_of_the_group_is_said(side, sentence):
    assert side_in_words(side) == sentence


@pytest.mark.parametrize(("value", "shown"), [(1.3, "x1.3"), (0.96, "x1.0"), (0.03, "x0.03")])
def test_a_factor_is_short(value, shown):
    assert factor(value) == shown


def test_when_items_tie_is_said_as_the_model_decides_it():
    plain, habits = (threshold_in_words(0.5, has) for has in (False, True))
    assert plain == "Two items tie when their scores differ by at most 0.50."
    assert habits == plain[:-1] + ", multiplied by the tie factors of both."
    assert threshold_in_words(None, False).startswith("Nobody ever declared a tie")


def test_what_was_chosen_and_what_was_given_is_told_apart(featured, papers):
    assert chosen_in_words(featured).endswith(", chosen from the votes")
    assert chosen_in_words(papers) == "nu 0.3, kappa 30"
    featured.set_params(nu=featured.nu_)
    assert chosen_in_words(featured).endswith("; nu was given")
    featured.set_params(nu=None)
