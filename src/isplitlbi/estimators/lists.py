"""Lists that are tables, too: items to recommend, votes that tell, cards, effects of features."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from isplitlbi.abnormal import TellingVote
from isplitlbi.data.frames import Tabular
from isplitlbi.data.outcomes import WINNERS
from isplitlbi.estimators.cards import FeatureEffect, Measured, UserCard
from isplitlbi.lazy import pl
from isplitlbi.typing import Floats, Indices, Labels, Mask

__all__ = ["FeatureEffects", "Recommendations", "UserCards", "VotesThatTell"]


class Recommendations(list[Any], Tabular):
    """Ids of items recommended in place of one, nearest first.

    Attributes
    ----------
    compared : list of bool
        Whether this user ever compared each of them; everywhere true for the consensus. An item
        that was not compared stands where the consensus puts it.
    """

    def __init__(
        self, items: Labels, scores: Floats, found: Indices, item: int, compared: Mask | None = None
    ) -> None:
        super().__init__(items[found].tolist())
        self._columns = {
            "item": pl.Series(items).gather(found),
            "score": scores[found],
            "difference": scores[found] - scores[item],
        }
        self.compared: list[bool] = [True] * len(self)
        if compared is not None:
            self.compared = compared[found].tolist()
            self._columns["compared"] = compared[found]

    def _table(self) -> pl.DataFrame:
        """Return the items, their scores, and by how much they differ from the one asked about.

        Of a user there is also whether the item was compared.
        """
        return pl.DataFrame(self._columns)

    def _said(self) -> list[str]:
        said = [f"{len(self)} item{'' if len(self) == 1 else 's'} recommended, nearest first."]
        if not all(self.compared):
            said.append("What this user never compared is placed by the consensus.")
        return said


class VotesThatTell(list[TellingVote], Tabular):
    """Votes of one user that the consensus least expected, the least likely first."""

    def _table(self) -> pl.DataFrame:
        """Return the two items, what the user said, how often, and how likely that was."""
        left, right, outcome, times, probability = (
            [list(column) for column in zip(*self, strict=True)] if self else [[]] * 5
        )
        return pl.DataFrame(
            {
                "left": left,
                "right": right,
                "winner": pl.Series([WINNERS[each] for each in outcome], dtype=pl.String),
                "times": pl.Series(times, dtype=pl.Int64),
                "probability": pl.Series(probability, dtype=pl.Float64),
            }
        )

    def _said(self) -> list[str]:
        return ["The votes that the consensus least expected, the least likely first."]


class FeatureEffects(tuple[FeatureEffect, ...], Tabular):
    """What every feature counts for in the consensus."""

    def _table(self) -> pl.DataFrame:
        """Return the features with their effects."""
        kinds = {"name": pl.String} | dict.fromkeys(FeatureEffect._fields[1:], pl.Float64)
        return pl.DataFrame(list(self), schema=kinds, orient="row")

    def _said(self) -> list[str]:
        return ["What one unit more on the left adds to its margin, in logits."]


class UserCards(tuple[UserCard, ...], Tabular):
    """The cards of several users."""

    def _table(self) -> pl.DataFrame:
        """Return what each user is like beside the group, with 95 % intervals.

        Sharpness is a slope on the consensus, 1 for the group; the tie factor is that on the
        group's threshold. Columns are those of the terms that the model has.
        """
        columns: dict[str, Any] = {"user": [card.user for card in self]}
        for name, measure in self._measures().items():
            values = [measure(card) or (None,) * 3 for card in self]
            for part, ending in enumerate(("", "_low", "_high")):
                each = [value[part] for value in values]
                columns[f"{name}{ending}"] = pl.Series(each, dtype=pl.Float64)
        columns["taste"] = pl.Series([card.taste for card in self], dtype=pl.Float64)
        return pl.DataFrame(columns)

    def __repr__(self) -> str:
        """Say of how many users they are; each card shows itself."""
        return f"UserCards: of {len(self)} users"

    def _measures(self) -> dict[str, Callable[[UserCard], Measured | None]]:
        """Return what cards tell of, by the name of the column; all tell of the same."""
        if not self:
            return {}
        first = self[0]
        found: dict[str, Callable[[UserCard], Measured | None]] = {}
        if first.slope is not None:
            found["sharpness"] = lambda card: card.slope
        if first.side is not None:
            found["side"] = lambda card: card.side
        if first.tie_factor is not None:
            found["tie_factor"] = lambda card: card.tie_factor
        return found | {f"feature_{name}": partial(_of_feature, name) for name in first.features}

    def _said(self) -> list[str]:
        return [f"What {len(self)} users are like, compared with the group."]


def _of_feature(name: str, card: UserCard) -> Measured | None:
    return card.features.get(name)
