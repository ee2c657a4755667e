"""What a model found, in words: the same sentences for the terminal and for the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from isplitlbi.abnormal import DIFFERENT, UNRELIABLE
from isplitlbi.data.layout import SHARPNESS, TASTE, THRESHOLD
from isplitlbi.markup import printable
from isplitlbi.model.terms import Side
from isplitlbi.nouns import NOUNS, Nouns

if TYPE_CHECKING:
    from isplitlbi.estimators import ScoreEstimator
    from isplitlbi.model.ranking import Ranking
    from isplitlbi.selection import Selection

__all__ = [
    "NO_TIES",
    "chance_in_words",
    "chosen_in_words",
    "effect_in_words",
    "factor",
    "habits_in_words",
    "held_out_in_words",
    "is_bound",
    "lists_in_words",
    "meaning_of_lists",
    "name_of_term",
    "p_in_words",
    "side_in_words",
    "sorted_spreads",
    "spread_in_words",
    "threshold_in_words",
]

# A margin that differs by less than this (in logits) makes no difference that anybody would see.
LITTLE = 0.05
AS_MUCH = 0.8  # of the largest: what is said in the same breath

NO_TIES = "Nobody ever declared a tie: there is no tie threshold"

_NAMES = {
    TASTE: "taste",
    SHARPNESS: "sharpness",
    Side.name: "the side they lean to",
    THRESHOLD: "readiness to call a tie",
}


def name_of_term(name: str) -> str:
    """Return what a term is called among people; features are called by their own names.

    >>> name_of_term("threshold"), name_of_term("length")
    ('readiness to call a tie', 'the effect of length')
    """
    return _NAMES.get(name, f"the effect of {name}")


def sorted_spreads(spreads: Mapping[str, float]) -> dict[str, float]:
    """Return how much people differ in each term, the most first."""
    return dict(sorted(spreads.items(), key=lambda each: -each[1]))


def spread_in_words(spreads: Mapping[str, float]) -> str:
    """Say in what people differ most.

    >>> spread_in_words({"taste": 0.3, "sharpness": 1.1})
    'people here differ mostly in sharpness'
    >>> spread_in_words({"taste": 1.0, "sharpness": 1.1, "side": 0.1})
    'people here differ mostly in sharpness and taste'
    >>> spread_in_words({"taste": 0.01})
    'people here hardly differ'
    """
    ordered = sorted_spreads(spreads)
    most = max(ordered.values(), default=0.0)
    if most < LITTLE:
        return "people here hardly differ"
    first = [name_of_term(name) for name, spread in ordered.items() if spread >= AS_MUCH * most]
    if len(first) == len(ordered) > 2:
        return "people here differ about equally in everything"
    return f"people here differ mostly in {_joined(first)}"


def side_in_words(side: float) -> str:
    """Say which side is favoured by everybody.

    >>> side_in_words(0.123)
    'the left side is favoured by 0.12 logits'
    >>> side_in_words(-0.004)
    'neither side is favoured'
    """
    if abs(side) < 0.005:
        return "neither side is favoured"
    return f"the {'left' if side > 0 else 'right'} side is favoured by {abs(side):.2f} logits"


def factor(value: float) -> str:
    """Return a factor as it is read.

    >>> factor(1.349), factor(0.72), factor(0.042)
    ('x1.3', 'x0.7', 'x0.04')
    """
    return f"x{value:.1f}" if value >= 0.095 else f"x{value:.2f}"


def threshold_in_words(threshold: float | None, has_habits: bool, nouns: Nouns = NOUNS) -> str:
    """Say when two items tie.

    >>> threshold_in_words(0.567, False)
    'Two items tie when their scores differ by at most 0.57.'
    """
    if threshold is None:
        return f"{NO_TIES}, and no tiers."
    habits = ", multiplied by the tie factors of both" if has_habits else ""
    return f"Two {nouns.items} tie when their scores differ by at most {threshold:.2f}{habits}."


def habits_in_words(ranking: Ranking) -> str:
    """Say between what the tie factors of items lie, or that they hardly differ."""
    least, most = int(np.argmin(ranking.habits)), int(np.argmax(ranking.habits))
    low, high = (
        f"{factor(ranking.habits[place])} ({printable(str(ranking.items[place]))})"
        for place in (least, most)
    )
    if factor(ranking.habits[least]) == factor(ranking.habits[most]):
        return f"All tie factors are about {factor(ranking.habits[most])}."
    return f"Tie factors go from {low} to {high}."


def chosen_in_words(model: ScoreEstimator) -> str:
    """Say which nu and kappa a fit has used, and where they come from."""
    settings = model.get_params()
    given = [name for name in ("nu", "kappa") if settings.get(name) is not None]
    figures = f"nu {model.nu_:.3g}, kappa {model.kappa_:g}"
    if len(given) == 2 or model.terms_.ties == "bounded":
        return figures
    return f"{figures}, chosen from the votes" if not given else f"{figures}; {given[0]} was given"


def held_out_in_words(selection: Selection) -> str:
    """Say how well a fit predicts held-out votes, and how sure its predictions are."""
    said = f"Held-out votes: log-loss {selection.log_loss:.3f}"
    if selection.one_ranking is not None:
        said += f", with one ranking for all {selection.one_ranking:.3f}"
    if selection.temperature is not None:
        said += f"; temperature {selection.temperature:.2f} (1 is right, more is too sure)"
    return f"{said}."


def meaning_of_lists(nouns: Nouns = NOUNS) -> dict[str, str]:
    """Say of every list what is true of the users on it."""
    return {
        UNRELIABLE: f"votes tell little about the {nouns.items}",
        DIFFERENT: "votes differ from the group more than is usual here",
    }


def lists_in_words(
    n_unreliable: int, n_different: int, n_users: int | None = None, nouns: Nouns = NOUNS
) -> str:
    """Say how many users are on each list.

    >>> lists_in_words(3, 5, 73)
    '3 of 73 users are unreliable, 5 are different'
    >>> lists_in_words(1, 0)
    '1 user is unreliable, 0 are different'
    """
    users = nouns.user if n_unreliable == 1 and n_users is None else nouns.users
    of_all = "" if n_users is None else f" of {n_users:,}"
    first, second = ("is" if n == 1 else "are" for n in (n_unreliable, n_different))
    return (
        f"{n_unreliable:,}{of_all} {users} {first} unreliable, {n_different:,} {second} different"
    )


def chance_in_words(fdr: float) -> str:
    """Say how many of those on a list may be there by chance.

    >>> chance_in_words(0.05)
    '5 % of the names on each list may be there by chance'
    """
    return f"{100 * fdr:g} % of the names on each list may be there by chance"


def effect_in_words(effect: float | None, low: float | None, high: float | None) -> str:
    """Return an effect with its interval.

    >>> effect_in_words(0.8213, 0.6149, 1.028), effect_in_words(None, None, None)
    ('0.82 (0.61-1.03)', '-')
    """
    if effect is None or low is None or high is None:
        return "-"
    return f"{effect:.2f} ({low:.2f}-{high:.2f})"


def is_bound(p: float) -> bool:
    """Say whether a p-value is as small as its draws let it be.

    >>> is_bound(1 / 301), is_bound(0.0033)
    (True, False)
    """
    from isplitlbi.abnormal.tests import ROUNDS

    return any(abs(p * (n_draws + 1) - 1.0) < 1e-9 for n_draws in ROUNDS)


def p_in_words(p: float) -> str:
    """Return a p-value, or the number that it is below.

    >>> p_in_words(1 / 301), p_in_words(0.0123)
    ('p < 0.0033', 'p = 0.012')
    """
    return f"p < {p / (1.0 - p):.2g}" if is_bound(p) else f"p = {p:.2g}"


def _joined(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"
