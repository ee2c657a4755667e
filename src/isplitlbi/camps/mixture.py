"""Camps as a mixture: every camp has scores, and its members scatter around them.

A user of camp k has the scores::

    scale * m_k + a_1 z_1 + a_2 z_2 + ... + taste

where m_k are the scores of the camp; ``scale`` is normal around 1, because people of one opinion
tell items apart more or less sharply; the taste is normal and independent from item to item; and
the a are *axes* along which users differ without forming camps. Besides, there are the careless,
all of whose scores are equal: they are in every mixture, and are no camp. So camps are what is left
when people differ by degrees, in sharpness and in care.

Everything is normal given the camp, so that one user's part has a closed form. What is common is
found by the EM algorithm.

Conventions
-----------
factor     what users have a number of their own for: the scale, and each axis
residual   a reading minus what the camp expects of it
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from isplitlbi.camps.told import Told
from isplitlbi.typing import Floats

__all__ = ["Mixture", "Shares", "improved", "shares_of"]

CARELESS_VARIANCE = 0.01  # how far scores of the careless are from equal
LEAST_VARIANCE = 1e-4
MOST_OF_SCALE = 0.25  # a variance: beyond half of its scores, a user is of another mind
HOLD_OF_AXES = 1e-2  # a precision, which keeps axes finite
LEAST_SHARE = 1e-4
HELD_SHARE = 1.0  # users that every camp is given beforehand, so that none is empty
SLOWEST, FASTEST = 0.5, 2.0  # by which factor a variance changes in a step
MOST_STEPS = 60
ABOUT_THE_SAME = 0.02  # a variance that has changed by less need not be looked at anew
ENOUGH = 1e-3  # gain of a step per user, below which it was the last


@dataclass(frozen=True, eq=False)
class Mixture:
    """What is common to all users: the camps, their shares, and how far users scatter."""

    scores: Floats  # (n_camps, n_items)
    shares: Floats  # (n_camps + 1,): those of the camps, and that of the careless
    taste: float  # variances: of taste, of the scale, and of camps around the common ranking
    scale: float
    apart: float
    axes: Floats  # (n_axes, n_items)
    errors: Floats  # (n_camps, n_items, n_items): covariance of the errors of the scores

    @property
    def n_camps(self) -> int:
        """How many camps there are."""
        return len(self.scores)

    @classmethod
    def starting(cls, scores: Floats, axes: Floats | None = None) -> Mixture:
        """Begin with the scores of camps, all of a size."""
        n_camps, n_items = scores.shape
        shares = np.append(np.full(n_camps, 0.98 / n_camps), 0.02)
        axes = np.zeros((0, n_items)) if axes is None else axes
        nothing = np.zeros((n_camps, n_items, n_items))
        return cls(scores, shares, 0.1, 0.05, 1.0, axes, nothing)


class Shares(NamedTuple):
    """What is known of every user, given a mixture."""

    of_camps: Floats  # (n_users, n_camps + 1): how probable each camp is; careless in the end
    log_density: Floats  # (n_users,)
    factors: Floats  # (n_camps, n_users, n_factors): means of what users have of their own
    spread: Floats  # (n_camps, n_users, n_factors, n_factors): their covariance


def shares_of(told: Told, mixture: Mixture) -> Shares:
    """Return which camp each user belongs to, how probably, and how far along the axes."""
    variance = 1.0 / told.precision + mixture.taste
    common = told.per_user(np.log(variance))
    along_axes = told.along @ mixture.axes.T
    n_factors = 1 + len(mixture.axes)
    log_density, factors, spread = [], [], []
    for expected in (told.along @ mixture.scores.T).T:
        columns = np.column_stack([np.sqrt(mixture.scale) * expected, along_axes])
        residual = told.value - expected
        weighted = columns / variance[:, None]
        system = told.per_user(weighted[:, :, None] * columns[:, None, :]) + np.eye(n_factors)
        pull = told.per_user(weighted * residual[:, None])
        covariance, log_size = _inverted(system)
        mean = np.einsum("uab,ub->ua", covariance, pull)
        square = told.per_user(residual**2 / variance) - np.sum(mean * pull, axis=1)
        log_density.append(-0.5 * (common + log_size + square))
        factors.append(mean)
        spread.append(covariance)
    variance = 1.0 / told.precision + CARELESS_VARIANCE
    log_density.append(-0.5 * told.per_user(np.log(variance) + told.value**2 / variance))
    joint = np.log(np.maximum(mixture.shares, LEAST_SHARE)) + np.stack(log_density, axis=1)
    most = joint.max(axis=1, keepdims=True)
    density = most[:, 0] + np.log(np.exp(joint - most).sum(axis=1))
    return Shares(np.exp(joint - density[:, None]), density, np.stack(factors), np.stack(spread))


def _inverted(systems: Floats) -> tuple[Floats, Floats]:
    """Return the inverses of small matrices, and the logarithms of their determinants."""
    if systems.shape[1] == 1:  # most often
        return 1.0 / systems, np.log(systems[:, 0, 0])
    return np.asarray(np.linalg.inv(systems)), np.asarray(np.linalg.slogdet(systems)[1])


def improved(told: Told, mixture: Mixture, n_steps: int = MOST_STEPS) -> tuple[Mixture, float]:
    """Take steps of the EM algorithm until they gain next to nothing; return the log-density."""
    before, n_users = -np.inf, max(len(told.present), 1)
    information, taste = told.information(mixture.taste), mixture.taste
    for _ in range(n_steps):
        shares = shares_of(told, mixture)
        now = float(shares.log_density.sum())
        if abs(now - before) < ENOUGH * n_users:
            break
        if abs(mixture.taste - taste) > ABOUT_THE_SAME * taste:
            information, taste = told.information(mixture.taste), mixture.taste
        before, mixture = now, _step(told, mixture, shares, information)
    return mixture, float(shares_of(told, mixture).log_density.sum())


def _step(told: Told, mixture: Mixture, shares: Shares, information: Floats) -> Mixture:
    """Return the mixture that fits best what is known of the users."""
    mixture = _with_scores(told, mixture, shares, information)
    for axis in range(len(mixture.axes)):
        mixture = _with_axis(told, mixture, shares, information, axis)
    mixture = _with_taste(told, mixture, shares)
    here = shares.of_camps[told.present]
    size = here.sum(axis=0) + HELD_SHARE
    scale = mixture.scale
    if scale > 0.0:
        weight = here[:, :-1].T
        second = shares.factors[:, told.present, 0] ** 2 + shares.spread[:, told.present, 0, 0]
        factor = np.sum(weight * second) / max(np.sum(weight), 1e-9)
        scale = min(scale * factor, MOST_OF_SCALE)
    return replace(mixture, shares=size / size.sum(), scale=float(scale))


def _with_scores(told: Told, mixture: Mixture, shares: Shares, information: Floats) -> Mixture:
    """Fit the scores of every camp, held towards what is common to all camps."""
    variance = 1.0 / told.precision + mixture.taste
    along_axes, root = told.along @ mixture.axes.T, np.sqrt(mixture.scale)
    n_camps, n_items = mixture.scores.shape
    common = mixture.scores.mean(axis=0) if n_camps > 1 else np.zeros(n_items)
    scores, errors = np.empty_like(mixture.scores), np.empty_like(mixture.errors)
    for camp in range(n_camps):
        mean, spread = shares.factors[camp], shares.spread[camp]
        slope = 1.0 + root * mean[:, 0]
        square = slope**2 + mixture.scale * spread[:, 0, 0]
        # What axes explain goes with the scale, as far as the two are known together.
        both = slope[:, None] * mean[:, 1:] + root * spread[:, 0, 1:]
        weight = shares.of_camps[:, camp][told.owner] / variance
        reading = slope[told.owner] * told.value
        reading = reading - np.sum(along_axes * both[told.owner], axis=1)
        system = told.together(information, shares.of_camps[:, camp] * square)
        system[np.diag_indices(n_items)] += 1.0 / mixture.apart
        errors[camp] = np.linalg.inv(system)
        scores[camp] = errors[camp] @ (told.along.T @ (weight * reading) + common / mixture.apart)
    off = scores - (scores.mean(axis=0) if n_camps > 1 else 0.0)
    freedom = n_items * max(n_camps - 1, 1)
    own = np.einsum("kii->", errors) * max(n_camps - 1, 1) / n_camps
    apart = float((np.sum(off**2) + own) / freedom)
    return replace(mixture, scores=scores, errors=errors, apart=max(apart, LEAST_VARIANCE))


def _with_axis(
    told: Told, mixture: Mixture, shares: Shares, information: Floats, axis: int
) -> Mixture:
    """Fit one of the axes, the others given."""
    variance = 1.0 / told.precision + mixture.taste
    along_axes, root = told.along @ mixture.axes.T, np.sqrt(mixture.scale)
    n_items = mixture.scores.shape[1]
    system, pull = np.eye(n_items) * HOLD_OF_AXES, np.zeros(n_items)
    others = [each for each in range(len(mixture.axes)) if each != axis]
    for camp, expected in enumerate((told.along @ mixture.scores.T).T):
        mean, spread = shares.factors[camp], shares.spread[camp]
        second = mean[:, :, None] * mean[:, None, :] + spread
        own = 1 + axis
        weight = shares.of_camps[:, camp][told.owner] / variance
        reading = mean[:, own][told.owner] * (told.value - expected)
        reading = reading - root * second[:, own, 0][told.owner] * expected
        for other in others:
            reading = reading - second[:, own, 1 + other][told.owner] * along_axes[:, other]
        square = second[:, own, own]
        system += told.together(information, shares.of_camps[:, camp] * square)
        pull += told.along.T @ (weight * reading)
    axes = mixture.axes.copy()
    axes[axis] = np.linalg.solve(system, pull)
    return replace(mixture, axes=axes)


def _with_taste(told: Told, mixture: Mixture, shares: Shares) -> Mixture:
    """Fit how far users scatter around their camp: one step of scoring."""
    variance = 1.0 / told.precision + mixture.taste
    along_axes, root = told.along @ mixture.axes.T, np.sqrt(mixture.scale)
    above = below = 0.0
    for camp, expected in enumerate((told.along @ mixture.scores.T).T):
        columns = np.column_stack([root * expected, along_axes])
        mean = shares.factors[camp][told.owner]
        spread = shares.spread[camp][told.owner]
        residual = told.value - expected - np.sum(columns * mean, axis=1)
        square = residual**2 + np.einsum("ra,rab,rb->r", columns, spread, columns)
        weight = shares.of_camps[:, camp][told.owner] / variance**2
        above += float(np.sum(weight * (square - variance)))
        below += float(np.sum(weight))
    now = mixture.taste
    taste = now + above / max(below, 1e-12)
    taste = min(max(taste, SLOWEST * now, LEAST_VARIANCE), FASTEST * now)
    return replace(mixture, taste=float(taste))
