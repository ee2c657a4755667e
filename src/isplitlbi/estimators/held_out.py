"""How well two models predict the same votes, and whether one predicts better."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.vocabulary import counted
from isplitlbi.errors import InvalidVotes
from isplitlbi.estimators.overlap import Matched, rows_among
from isplitlbi.model.differences import LEVEL, student
from isplitlbi.nouns import NOUNS, Nouns
from isplitlbi.typing import Floats, Integers, Labels, Places

if TYPE_CHECKING:
    from isplitlbi.estimators.base import ScoreEstimator

__all__ = ["HeldOut", "Paired", "predict_both"]


class Paired(NamedTuple):
    """A mean over votes by both models, and the 95 % interval of its change, over users.

    There is no interval of a single user.
    """

    before: float
    after: float
    change: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, before: Floats, after: Floats, weight: Floats, user: Integers) -> Paired:
        """Compare one number per vote; users are drawn from many, their votes are not."""
        total = float(weight.sum())
        change = after - before
        mean = float(weight @ change) / total
        _, whose = np.unique(user, return_inverse=True)
        off = np.bincount(whose, weight * (change - mean)) / total
        n_users = len(off)
        ends: tuple[float | None, float | None] = (None, None)
        if n_users > 1:
            error = float(np.sqrt(np.sum(off**2) * n_users / (n_users - 1)))
            reach = student(float(n_users - 1), 0.5 + 0.5 * LEVEL) * error
            ends = mean - reach, mean + reach
        then, now = (float(weight @ each) / total for each in (before, after))
        return cls(then, now, mean, *ends)


@dataclass(frozen=True)
class HeldOut:
    """How well two models predict the same votes.

    Attributes
    ----------
    n_votes, n_users : int
        That are predicted. Users whom a model does not know are predicted as unknown users.
    n_unknown_items : int
        Votes left out because a model does not know one of the items.
    n_ties : int
        Ties left out because a model has no ties.
    n_trained_before, n_trained_after : int
        Of the votes that are predicted: how many the model was fitted on, row by row.
    n_unknown_before, n_unknown_after : int
        Of the users: whom the model does not know.
    log_loss, accuracy : Paired
    """

    n_votes: int
    n_users: int
    n_unknown_items: int
    n_ties: int
    n_trained_before: int
    n_trained_after: int
    n_unknown_before: int
    n_unknown_after: int
    log_loss: Paired
    accuracy: Paired

    def as_dict(self) -> dict[str, Any]:
        """Return all of it by name."""
        paired = {"log_loss": self.log_loss._asdict(), "accuracy": self.accuracy._asdict()}
        return asdict(self) | paired

    def sentence(self) -> str:
        """Say which model predicts better, or that it cannot be told."""
        loss = self.log_loss
        figures = f"log-loss {loss.before:.3f} before, {loss.after:.3f} after"
        if loss.change == 0.0 and loss.low in (None, 0.0):
            return f"Both fits predict these votes alike ({figures})."
        if loss.low is None or loss.high is None:
            return f"Of a single user there is no telling which fit predicts better ({figures})."
        told = f"{figures}; change {loss.change:+.3f}, 95 % {loss.low:+.3f} to {loss.high:+.3f}"
        if loss.low <= 0.0 <= loss.high:
            return f"It cannot be told which fit predicts these votes better ({told})."
        better = "after" if loss.change < 0.0 else "before"
        return f"The fit {better} predicts these votes better ({told})."

    def remarks(self, nouns: Nouns = NOUNS) -> list[str]:
        """Say what was left out, and what is not held out."""
        said = []
        if self.n_unknown_items:
            said.append(
                f"{_were(self.n_unknown_items)} left out: a fit does not know one of the "
                f"{nouns.items}."
            )
        if self.n_ties:
            said.append(
                f"{_were(self.n_ties, 'tie')} left out: a fit without ties cannot predict one."
            )
        trained = {"before": self.n_trained_before, "after": self.n_trained_after}
        told = [f"{n:,} by that {which}" for which, n in trained.items() if n]
        if told:
            said.append(
                f"Some of the {counted(self.n_votes, 'vote')} were used in a fit "
                f"({' and '.join(told)}): a fit predicts its own votes too well."
            )
        return said


def _were(n: int, unit: str = "vote") -> str:
    return f"{counted(n, unit)} {'was' if n == 1 else 'were'}"


def predict_both(before: ScoreEstimator, after: ScoreEstimator, votes: Comparisons) -> HeldOut:
    """Predict votes by two models."""
    models = before, after
    known = [
        np.isin(np.arange(votes.n_items), _places(votes.items, model.items_)) for model in models
    ]
    has_items = np.all([each[votes.left] & each[votes.right] for each in known], axis=0)
    has_ties = all(model.terms_.has_ties for model in models)
    can_be = np.ones(len(votes), dtype=np.bool_) if has_ties else votes.outcome != 0
    kept = np.flatnonzero(has_items & can_be)
    if len(kept) == 0:
        raise InvalidVotes(
            "none of these votes can be predicted by both models: of each, a model does not know "
            "an item, or has no ties. Give votes on items that both models have."
        )
    some = votes.subset(kept)
    weight = np.ones(len(some)) if some.weight is None else some.weight
    if not weight.sum() > 0.0:
        raise InvalidVotes("the votes to predict have no weight. Give votes with a weight above 0.")
    then, now = (_predicted(model, some) for model in models)
    return HeldOut(
        n_votes=len(some),
        n_users=len(np.unique(some.user)),
        n_unknown_items=int(np.sum(~has_items)),
        n_ties=int(np.sum(has_items & ~can_be)),
        n_trained_before=then.n_trained,
        n_trained_after=now.n_trained,
        n_unknown_before=then.n_unknown,
        n_unknown_after=now.n_unknown,
        log_loss=Paired.of(then.losses, now.losses, weight, some.user),
        accuracy=Paired.of(then.hits, now.hits, weight, some.user),
    )


class _Predicted(NamedTuple):
    """What one model makes of votes: one number for each, and how many are not new to it."""

    losses: Floats
    hits: Floats
    n_unknown: int  # users
    n_trained: int  # votes


def _predicted(model: ScoreEstimator, votes: Comparisons) -> _Predicted:
    asked = _spelled_as_in(model, votes)
    outcomes = list(model.outcome_labels_.outcomes)
    column = np.array([outcomes.index(outcome) for outcome in votes.outcome.tolist()])
    losses = -model.predict_log_proba(asked)[np.arange(len(votes)), column]
    hits = (model.predict_outcomes(asked) == votes.outcome).astype(np.float64)
    is_known = np.isin(np.unique(votes.user), _places(votes.users, model.users_))
    return _Predicted(losses, hits, int(np.sum(~is_known)), _n_trained(model, votes))


def _places(ids: Labels, known: Labels) -> Places:
    """Return the places of ids that are known."""
    matched = Matched.of(ids, known)
    return np.asarray(matched.before[matched.in_both])


def _spelled_as_in(model: ScoreEstimator, votes: Comparisons) -> Comparisons:
    """Return votes with ids as a model spells them; users whom it does not know stay unknown."""
    spelled: dict[str, Any] = {}
    for name, known in (("users", model.users_), ("items", model.items_)):
        ids = getattr(votes, name)
        matched = Matched.of(ids, known)
        there = matched.in_both
        if known.dtype.kind == "i":
            labels: Labels = np.full(len(ids), min(int(known.min()), 0) - 1, dtype=np.int64)
        else:
            labels = np.array([str(each) for each in ids.tolist()], dtype=object)
        labels[matched.before[there]] = known[matched.after[there]]
        spelled[name] = labels
    return replace(votes, **spelled, whole=None)


def _n_trained(model: ScoreEstimator, votes: Comparisons) -> int:
    """Return how many votes are among those that a model was fitted on, row by row."""
    fitted, sides = model.votes(), {"has_sides": model.has_sides}
    users, items = Matched.of(fitted.users, votes.users), Matched.of(fitted.items, votes.items)
    keys = ["user", "left", "right", "outcome"]
    own = rows_among(fitted, users.before, items.before, **sides).select(keys).unique()
    found = rows_among(votes, users.after, items.after, **sides)
    return found.join(own, on=keys, how="semi").height
