"""How people differ, and what features count for: two sections of the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from isplitlbi.data.layout import SHARPNESS, THRESHOLD
from isplitlbi.estimators import ScoreEstimator
from isplitlbi.estimators.cards import Measured, UserCard
from isplitlbi.model.terms import Feature, Side
from isplitlbi.nouns import Nouns
from isplitlbi.output.report.strips import Strip, strip_of
from isplitlbi.output.words import (
    NO_TIES,
    name_of_term,
    side_in_words,
    sorted_spreads,
    spread_in_words,
)
from isplitlbi.typing import Floats

__all__ = ["Cards", "cards_of", "features_of", "people_of"]

Cards = tuple[UserCard, ...]
MOST_CARDS = 10_000  # each takes a millisecond or two

# What a logit is, for who has never seen one: the odds of a pair that is even otherwise.
LOGIT = "One logit turns a pair that is even, 50 : 50, into 73 : 27"


def cards_of(model: ScoreEstimator) -> Cards:
    """Return the cards of all who have voted.

    There are none where a model has no such terms, or so many users that it would take long.
    """
    is_without = model.terms_.ties == "bounded" or not model.has_users
    if is_without or len(model.users_) > MOST_CARDS:
        return ()
    return model.user_cards()


def people_of(model: ScoreEstimator, cards: Cards) -> dict[str, Any] | None:
    """Return in what people differ: words, a table and pictures.

    There is nothing of the paper's model, nor of an anonymous crowd.
    """
    if model.terms_.ties == "bounded" or not model.has_users:
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
        "strips": _strips(model, cards),
    }


class _Asked(NamedTuple):
    """A term of one number per user, and how to draw it."""

    title: str
    told: str
    of_card: Callable[[UserCard], Measured | None]
    of_model: Callable[[ScoreEstimator], Floats]
    marks: tuple[float, ...]
    is_factor: bool = False


def _strips(model: ScoreEstimator, cards: Cards) -> list[dict[str, Any]]:
    """Return a picture for every term of one number per user."""
    voted = np.flatnonzero(model.summary_.votes_per_user)
    strips = []
    for each in _asked(model):
        if cards:
            measured = [each.of_card(card) for card in cards]
            values = np.array([np.nan if one is None else one.value for one in measured])
        else:
            values = each.of_model(model)[voted]
        strip = Strip(model.users_[voted].tolist(), values, each.marks, each.is_factor)
        picture = strip_of(strip, _label(strip, model.nouns))
        strips.append({"title": each.title, "told": each.told, "picture": picture})
    return strips


def _asked(model: ScoreEstimator) -> list[_Asked]:
    """Return what there is to draw of a model."""
    terms, users, asked = model.terms_, model.nouns.users, []
    if terms.has_sharpness:
        told = f"How clearly {users} tell apart what the group tells apart: 1 is like the group, 0 "
        told += "is by chance, and below 0 is the opposite order."
        slopes = partial(_trait, SHARPNESS, 1.0)
        asked.append(_Asked("Sharpness.", told, lambda card: card.slope, slopes, (0.0, 1.0)))
    if Side.name in terms.names:
        told = f"How much {users} prefer the left side, in logits; 0 leans to neither side."
        sides = partial(_trait, Side.name, 0.0)
        asked.append(_Asked("Side.", told, lambda card: card.side, sides, (0.0,)))
    if terms.has_ties:
        told = f"Tie thresholds of {users}, compared with the group's: x2 is twice as wide."
        asked.append(_Asked("Ties.", told, lambda card: card.tie_factor, _factors, (1.0,), True))
    for term in terms.all:
        if isinstance(term, Feature):
            told = f"The effect of one more unit of {term.name} on {users}, in logits."
            marks = (0.0, model.parameters_.common.trait(term.name))
            of_card, of_model = partial(_of_feature, term.name), partial(_trait, term.name, 0.0)
            asked.append(_Asked(f"{term.name}.", told, of_card, of_model, marks))
    return asked


def _trait(name: str, more: float, model: ScoreEstimator) -> Floats:
    return more + model.parameters_.all_of(name)


def _factors(model: ScoreEstimator) -> Floats:
    return model.parameters_.all_of(THRESHOLD) / (model.threshold_ or 1.0)


def _of_feature(name: str, card: UserCard) -> Measured | None:
    return card.features.get(name)


def _label(strip: Strip, nouns: Nouns) -> str:
    """Say what there is to see for who cannot see it."""
    low, first, third, high = np.quantile(strip.values, (0.0, 0.25, 0.75, 1.0))
    sign = "x" if strip.is_factor else ""
    return (
        f"{nouns.n_users(len(strip.values))}, from {sign}{low:.2f} to {sign}{high:.2f}; half of "
        f"them lie between {sign}{first:.2f} and {sign}{third:.2f}."
    )


# --- features ------------------------------------------------------------------------------


def features_of(model: ScoreEstimator) -> dict[str, Any] | None:
    """Return what features count for, and the ranking with them alike and as they were shown."""
    effects = model.features()
    if not effects:
        return None
    board, as_shown = model.leaderboard(), model.ranking_as_shown()
    names = joined([effect.name for effect in effects])
    # Items with too few votes have no rank, either way.
    ranked = board.items[: board.n_ranked].tolist()
    among = set(ranked)
    shown = [item for item in as_shown.items.tolist() if item in among]
    rank_as_shown = {item: place for place, item in enumerate(shown, start=1)}
    score_as_shown = dict(zip(as_shown.items.tolist(), as_shown.scores.tolist(), strict=True))
    return {
        "names": names,
        "sentence": _first_in_words(names, ranked[0], shown[0], model.nouns),
        "effects": effects,
        "rows": [
            {
                "item": item,
                "rank": place,
                "rank_as_shown": rank_as_shown[item],
                "score": board.score[place - 1],
                "score_as_shown": score_as_shown[item],
            }
            for place, item in enumerate(ranked, start=1)
        ],
    }


def _first_in_words(names: str, alike: Any, as_shown: Any, nouns: Nouns) -> Any:
    """Say which item is first with equal features, and which as they were shown."""
    from markupsafe import Markup

    from isplitlbi.output.report.ids import shown_id

    if alike == as_shown:
        sentence = Markup("With equal {}, <strong>{}</strong> is first, and also as shown.")
        return sentence.format(names, shown_id(alike))
    sentence = Markup(
        "With equal {}, <strong>{}</strong> is first; as the {} were shown, <strong>{}</strong> is."
    )
    return sentence.format(names, shown_id(alike), nouns.items, shown_id(as_shown))


def joined(names: Sequence[str]) -> str:
    """Join names in a sentence.

    >>> joined(["length", "style", "price"])
    'length, style and price'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _capital(sentence: str) -> str:
    return f"{sentence[0].upper()}{sentence[1:]}"
