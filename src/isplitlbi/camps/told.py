"""What the votes of every user tell of that user's scores, as if scores had been measured.

Around the scores that fit a user best, the loss of the votes is nearly a bowl: along its axes,
votes tell of the user's scores what measurements with normal errors would. Such measurements are
all that a mixture of camps needs, and they take no more room than the items a user compared.

Conventions
-----------
reading    one such measurement: a combination of scores, its value and its precision
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isplitlbi.camps.ballots import Ballots, Batch
from isplitlbi.typing import Floats, Places

__all__ = ["Bowl", "Told", "told_by"]

N_STEPS = 12
NEAR = 1e-5  # the largest change of a score in the last step
FARTHEST = 3.0  # logits that a score moves in a step
LEAST_PRECISION = 1e-4  # of a reading that is worth keeping


class Bowl(NamedTuple):
    """What the votes of the users of a batch tell: axes, precisions and values, padded."""

    batch: Batch
    axes: Floats  # (n_users, n_slots, n_readings)
    precision: Floats  # (n_users, n_readings); zero where nothing is told
    value: Floats


@dataclass(frozen=True, eq=False)
class Told:
    """All readings, user after user."""

    n_users: int
    bowls: tuple[Bowl, ...]
    along: Floats  # (n_readings, n_items) which combination of scores
    value: Floats
    precision: Floats
    owner: Places  # whose each is
    present: Places  # users who have readings
    start: Places  # the first reading of each
    pair: Places  # of the numbers of `information`: which two items, as one number
    of_pair: Places  # and whose each is

    @classmethod
    def of(cls, n_users: int, n_items: int, bowls: tuple[Bowl, ...]) -> Told:
        """Bring readings of batches in one order."""
        owner, parts = [], []
        for batch, axes, precision, _ in bowls:
            row, reading = np.nonzero(precision > 0.0)
            along = np.zeros((len(row), n_items + 1))
            along[np.arange(len(row))[:, None], batch.items[row]] = axes[row, :, reading]
            owner.append(batch.users[row])
            parts.append(along[:, :n_items])
        of_user = np.concatenate(owner) if owner else np.zeros(0, dtype=np.int64)
        order = np.argsort(of_user, kind="stable")
        present, start = np.unique(of_user[order], return_index=True)
        precision = np.concatenate([each.precision[each.precision > 0.0] for each in bowls])
        value = np.concatenate([each.value[each.precision > 0.0] for each in bowls])
        along = np.concatenate(parts)[order]
        pair = [_pairs(each.batch, n_items) for each in bowls]
        of_pair = [np.repeat(each.batch.users, each.axes[0].size) for each in bowls]
        return cls(
            n_users, bowls, along, value[order], precision[order], of_user[order], present, start,
            np.concatenate(pair), np.concatenate(of_pair),
        )  # fmt: skip

    def per_user(self, values: Floats) -> Floats:
        """Add up what belongs to readings, user by user."""
        found = np.zeros((self.n_users, *values.shape[1:]))
        if len(self.present):
            found[self.present] = np.add.reduceat(values, self.start, axis=0)
        return found

    def information(self, taste: float) -> Floats:
        """Return what all readings tell of two items each, if scores scatter by a variance."""
        parts = []
        for bowl in self.bowls:
            weight = bowl.precision / (1.0 + taste * bowl.precision)
            parts.append((bowl.axes * weight[:, None, :]) @ bowl.axes.transpose(0, 2, 1))
        return np.concatenate([part.ravel() for part in parts])

    def together(self, information: Floats, weight: Floats) -> Floats:
        """Return the sum of the users' information, times a weight of each, as a matrix."""
        n_items = self.along.shape[1]
        size = n_items + 1
        found = np.bincount(self.pair, information * weight[self.of_pair], size * size)
        return np.array(found.reshape(size, size)[:n_items, :n_items], dtype=np.float64)


def _pairs(batch: Batch, n_items: int) -> Places:
    items = batch.items
    return (items[:, :, None] * (n_items + 1) + items[:, None, :]).ravel()


def told_by(
    ballots: Ballots,
    counts: Floats,
    centre: Floats,
    variance: Floats | float,
    part: Floats | float = 1.0,
) -> Told:
    """Return what votes tell, near the scores that fit each user best beside a centre.

    The variance says how far users are from the centre: it keeps scores finite. The part says how
    much of the centre's scores is theirs. Both are one number, or one for each user.
    """
    variances = np.broadcast_to(variance, ballots.n_users)
    parts, padded = np.broadcast_to(part, ballots.n_users), np.append(centre, 0.0)
    bowls = tuple(
        _bowl(
            ballots, counts, batch, parts[batch.users, None] * padded[batch.items],
            variances[batch.users],
        )
        for batch in ballots.batches()
    )  # fmt: skip
    return Told.of(ballots.n_users, ballots.n_items, bowls)


def _bowl(
    ballots: Ballots, counts: Floats, batch: Batch, centre: Floats, variances: Floats
) -> Bowl:
    """Find the best scores of some users by Newton's method, and the bowl around them."""
    variance = variances[:, None]
    own, eye = np.zeros_like(centre), np.eye(centre.shape[1]) / variance[..., None]
    for _ in range(N_STEPS):
        slope, bend = _derivatives(ballots, counts, batch, centre + own)
        step = np.linalg.solve(bend + eye, -(slope + own / variance)[..., None])[..., 0]
        own += np.clip(step, -FARTHEST, FARTHEST)
        if np.abs(step).max(initial=0.0) < NEAR:
            break
    slope, bend = _derivatives(ballots, counts, batch, centre + own)
    precision, axes = np.linalg.eigh(bend)
    precision = np.where(precision > LEAST_PRECISION, precision, 0.0)
    down = np.einsum("usr,us->ur", axes, slope) / np.where(precision > 0.0, precision, np.inf)
    return Bowl(batch, axes, precision, np.einsum("usr,us->ur", axes, centre + own) - down)


def _derivatives(
    ballots: Ballots, counts: Floats, batch: Batch, scores: Floats
) -> tuple[Floats, Floats]:
    """Return the first two derivatives of the loss of users by their scores."""
    _, _, edges, row, left, right = batch
    margin = ballots.offset[edges] + scores[row, left] - scores[row, right]
    by_margin, curvature = ballots.bend(margin, counts, edges)
    (n_users, n_slots), size = scores.shape, scores.size
    at_left, at_right = row * n_slots + left, row * n_slots + right
    slope = np.bincount(at_left, by_margin, size) - np.bincount(at_right, by_margin, size)
    together = np.bincount(at_left * n_slots + right, curvature, size * n_slots)
    bend: Floats = -np.asarray(together.reshape(n_users, n_slots, n_slots), dtype=np.float64)
    bend = bend + bend.transpose(0, 2, 1)
    at = np.arange(n_slots)
    bend[:, at, at] -= bend.sum(axis=2)
    return np.asarray(slope, dtype=np.float64).reshape(n_users, n_slots), bend
