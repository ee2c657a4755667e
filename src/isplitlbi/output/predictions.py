"""Predictions in bulk: batches of pairs in, batches of rows out, and what to say of the users."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from isplitlbi.data.pairs import PairBatch
from isplitlbi.data.vocabulary import Vocabulary
from isplitlbi.errors import InvalidRows
from isplitlbi.estimators import ScoreEstimator
from isplitlbi.lazy import pl
from isplitlbi.markup import printable
from isplitlbi.output.tables import predictions_table
from isplitlbi.selection import Estimate

__all__ = ["InBulk", "UnknownUsers", "predict_in_bulk"]

MOST = 100_000  # unknown users that are counted one by one
FIRST = 3  # of them that are named


class InBulk(NamedTuple):
    """What was predicted."""

    n_pairs: int
    unknown: UnknownUsers


def predict_in_bulk(
    model: ScoreEstimator,
    batches: Iterable[PairBatch],
    write: Callable[[pl.DataFrame], None],
    progress: Callable[[float | None, str], None] | None = None,
    estimate: Estimate | None = None,
) -> InBulk:
    """Predict pairs, and write the rows of `predictions_table` batch by batch.

    Parameters
    ----------
    batches
        As `isplitlbi.data.pairs.stream_pairs` gives them. An unknown item is an error that names
        the row of the file.
    write
        Called with the rows of every batch.
    progress
        Called after every batch with the share of the file that was read, and how many pairs were
        predicted.
    estimate
        See `ScoreEstimator.predict`.
    """
    n_pairs, unknown = 0, UnknownUsers(model)
    for batch in batches:
        try:
            pairs = _spelled_as_in(model, batch.pairs)
            write(predictions_table(model, pairs, estimate))
        except InvalidRows as error:
            raise error.after(batch.first_row - 1, batch.source) from None
        unknown.look_for(pairs)
        n_pairs += pairs.height
        if progress is not None:
            progress(batch.share, f"{n_pairs:,} pairs")
    return InBulk(n_pairs, unknown)


class UnknownUsers:
    """Users of pairs who have no votes in a model; many of them are not counted to the end."""

    def __init__(self, model: ScoreEstimator) -> None:
        self._known = pl.DataFrame({"user": model.users_.tolist()})
        self.users = self._known["user"].clear()  # sorted
        self.are_all = True
        self._has_users, self._are_named = model.has_users, False

    def look_for(self, pairs: pl.DataFrame) -> None:
        """Take note of those among some pairs."""
        self._are_named = "user" in pairs.columns
        if not (self._are_named and self._has_users):
            return
        found = pairs.select(pl.col("user").unique()).join(self._known, on="user", how="anti")
        if found.height:
            users = pl.concat([self.users, found["user"]]).unique().sort()
            self.are_all = self.are_all and len(users) <= MOST
            self.users = users.head(MOST)

    def sentence(self) -> str | None:
        """Name the first of them; nothing where there are none."""
        if self._are_named and not self._has_users:
            return "The votes of this model have no users, so the consensus predicts for everybody."
        if not len(self.users):
            return None
        first = ", ".join(printable(str(user)) for user in self.users.head(FIRST).to_list())
        n_more = len(self.users) - FIRST
        least = "" if self.are_all else "more than "
        more = f" and {least}{n_more} more" if n_more > 0 else ""
        why = "Not in the votes of this model, so the average over its users predicts for"
        return f"{why}: {first}{more}."


def _spelled_as_in(model: ScoreEstimator, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return pairs with ids that are numbers where those of the model are."""
    if "user" in pairs.columns and model.users_.dtype.kind in "iu":
        nobody = min(int(model.users_.min()), 0) - 1  # what is no number is nobody's id
        pairs = pairs.with_columns(pl.col("user").cast(pl.Int64, strict=False).fill_null(nobody))
    if model.items_.dtype.kind in "iu":
        texts = pairs
        pairs = pairs.with_columns(pl.col("left", "right").cast(pl.Int64, strict=False))
        for side in ("left", "right"):
            if (unknown := pairs[side].is_null()).any():
                error = Vocabulary(model.items_, "item").unknown(
                    texts[side].filter(unknown)[0], "this model"
                )
                problem = str(error).rstrip(".")
                raise InvalidRows.of("pairs", unknown, problem, "Correct it or remove the row")
    return pairs
