"""How people differ, and what features count for: two sections of the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isplitlbi.data.layout import SHARPNESS
from isplitlbi.data.vocabulary import counted
from isplitlbi.estimators import ScoreEstimator
from isplitlbi.output.report.strips import Strip, strip_of
from isplitlbi.output.words import (
    NO_TIES,
    name_of_term,
    side_in_words,
    sorted_spreads,
    spread_in_words,
)

if TYPE_CHECKING:
    from isplitlbi.estimators.cards import Measured, UserCard

__all__ = ["features_of", "people_of"]

# What a logit is, for who has never seen one: the odds of a pair that is even otherwise.
LOGIT = "One logit turns a pair that is even, 50 : 50, into 73 : 27"


def people_of(model: ScoreEstimator) -> dict[str, Any] | None:
    """Return in what people differ: words, a table and pictures; nothing for the paper's model."""
    if model.terms_.ties == "bounded":
        return None
    spreads = sorted_spreads(model.spreads_)
    most = max(spreads.values(), default=0.0) or 1.0
    sentences = [LOGIT]
    if "side" in model.terms_.names:
        sentences.append(side_in_words(model.side_))
    if model.threshold_ is None:
        sentences.append(NO_TIES)
    return {
        "sentence": _capital(spread_in_words(spreads)) if spreads else "",
        "more": " ".join(f"{_capital(each)}." for each in sentences),
        "spreads": [
            {
                "name": name_of_term(name),
                "spread": f"{spread:.2f}",
                "width": f"{100 * spread / most:.1f}",
            }
            for name, spread in spreads.items()
        ],
        "strips": _strips(model),
    }


def _strips(model: ScoreEstimator) -> list[dict[str, Any]]:
    """Return a picture for every term of one number per user."""
    cards = model.user_cards()
    asked: list[tuple[str, str, Callable[[UserCard], Measured | None], dict[str, Any]]] = []
    if SHARPNESS in model.terms_.names:
        told = "How clearly users tell apart what the group tells apart: 1 like the group, 0 by "
        told += "chance, below 0 the other way round."
        asked.append(("Sharpness.", told, lambda card: card.slope, {"marks": (0.0, 1.0)}))
    asked += [
        ("Side.", "What users add to whatever is on the left, in logits; 0 leans to neither side.",
         lambda card: card.side, {"marks": (0.0,)}),
        ("Ties.", "How wide users' tie thresholds are beside the group's: with x2, twice as wide.",
         lambda card: card.tie_factor, {"marks": (1.0,), "is_factor": True}),
    ]  # fmt: skip
    for effect in model.features() if model.summary_.units is not None else ():
        told = f"What one unit more of {effect.name} counts for with users, in logits."
        asked.append(
            (f"{effect.name}.", told, _feature(effect.name), {"marks": (0.0, effect.effect)})
        )
    strips = []
    for title, told, of_card, look in asked:
        found = [(card.user, of_card(card)) for card in cards]
        known = [(user, measured) for user, measured in found if measured is not None]
        if known:
            values = np.array([measured.value for _, measured in known])
            strip = Strip([user for user, _ in known], values, **look)
            strips.append({"title": title, "told": told, "picture": strip_of(strip, _label(strip))})
    return strips


def _feature(name: str) -> Callable[[UserCard], Measured | None]:
    return lambda card: card.features.get(name)


def _label(strip: Strip) -> str:
    """Say what there is to see for who cannot see it."""
    low, first, third, high = np.quantile(strip.values, (0.0, 0.25, 0.75, 1.0))
    sign = "x" if strip.is_factor else ""
    return (
        f"{counted(len(strip.values), 'user')}, from {sign}{low:.2f} to {sign}{high:.2f}; half of "
        f"them lie between {sign}{first:.2f} and {sign}{third:.2f}."
    )


# --- features ------------------------------------------------------------------------------


def features_of(model: ScoreEstimator) -> dict[str, Any] | None:
    """Return what features count for, and the ranking with them alike and as they were shown."""
    effects = model.features()
    if not effects:
        return None
    alike, as_shown = model.ranking(), model.ranking_as_shown()
    names = joined([effect.name for effect in effects])
    rank_as_shown = {item: place for place, item in enumerate(as_shown.items.tolist(), start=1)}
    score_as_shown = dict(zip(as_shown.items.tolist(), as_shown.scores.tolist(), strict=True))
    return {
        "names": names,
        "sentence": _first_in_words(names, alike.items[0], as_shown.items[0]),
        "effects": effects,
        "rows": [
            {
                "item": item,
                "rank": place,
                "rank_as_shown": rank_as_shown[item],
                "score": alike.scores[place - 1],
                "score_as_shown": score_as_shown[item],
            }
            for place, item in enumerate(alike.items.tolist(), start=1)
        ],
    }


def _first_in_words(names: str, alike: Any, as_shown: Any) -> Any:
    """Say which item is first with equal features, and which as they were shown."""
    from markupsafe import Markup

    from isplitlbi.output.report.ids import shown_id

    if alike == as_shown:
        sentence = Markup("With equal {}, <strong>{}</strong> is first, and so it is as shown.")
        return sentence.format(names, shown_id(alike))
    sentence = Markup(
        "With equal {}, <strong>{}</strong> is first; as the items were shown, "
        "<strong>{}</strong> is."
    )
    return sentence.format(names, shown_id(alike), shown_id(as_shown))


def joined(names: Sequence[str]) -> str:
    """Join names in a sentence.

    >>> joined(["length", "style", "price"])
    'length, style and price'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _capital(sentence: str) -> str:
    return f"{sentence[0].upper()}{sentence[1:]}"
