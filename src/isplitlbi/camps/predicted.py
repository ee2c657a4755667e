"""What a mixture of camps predicts of votes it has not seen.

Of every camp that a user may belong to, the user's own scores follow from the votes that were seen;
the margin of a pair is then normal, and the probability of a vote is the mean over it.
"""

from __future__ import annotations

import numpy as np

from isplitlbi.camps.ballots import Ballots
from isplitlbi.camps.mixture import CARELESS_VARIANCE, Mixture, shares_of
from isplitlbi.camps.told import Bowl, Told
from isplitlbi.typing import Floats

__all__ = ["loss_of_users"]

N_NODES = 7
LEAST_PROBABILITY = 1e-12


def loss_of_users(ballots: Ballots, told: Told, mixture: Mixture, counts: Floats) -> Floats:
    """Return the loss of some votes, user by user, after what other votes have told.

    ``counts`` are the votes to predict; ``told`` is what others have told.
    """
    shares, found = shares_of(told, mixture), np.zeros(ballots.n_users)
    nodes, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
    weights = weights / weights.sum()
    for bowl in told.bowls:
        batch = bowl.batch
        of_camps = shares.of_camps[batch.users]
        asked = counts[:, batch.edges].sum(axis=0) > 0.0
        row, edges = batch.row[asked], batch.edges[asked]
        chance = np.zeros((3, len(edges)))
        for camp in range(mixture.n_camps + 1):
            mean, variance = _margins(bowl, mixture, shares.factors, shares.spread, camp)
            at = ballots.offset[edges] + mean[asked]
            margin = at[:, None] + np.sqrt(np.maximum(variance[asked], 0.0))[:, None] * nodes
            of_votes = np.exp(ballots.log_probabilities(margin, edges)) @ weights
            chance += of_camps[row, camp] * of_votes
        loss = -np.log(np.maximum(chance, LEAST_PROBABILITY))
        loss = np.sum(np.where(counts[:, edges] > 0.0, counts[:, edges] * loss, 0.0), axis=0)
        found[batch.users] += np.bincount(row, loss, len(batch.users))
    return found


def _margins(
    bowl: Bowl, mixture: Mixture, factors: Floats, spread: Floats, camp: int
) -> tuple[Floats, Floats]:
    """Return means and variances of the margins of all edges, if users were of one camp."""
    batch, axes, precision, value = bowl
    is_careless = camp == mixture.n_camps
    taste = CARELESS_VARIANCE if is_careless else mixture.taste
    gain = taste * precision / (1.0 + taste * precision)
    known = (axes * gain[:, None, :]) @ axes.transpose(0, 2, 1)
    row, left, right = batch.row, batch.left, batch.right
    at_left, at_right = known[row, left, left], known[row, right, right]
    variance = taste * (2.0 - at_left - at_right + 2.0 * known[row, left, right])
    if is_careless:
        own = np.einsum("usr,ur->us", axes, gain * value)
        return own[row, left] - own[row, right], variance
    padded = np.concatenate([mixture.scores[camp], [0.0]])[batch.items]
    columns = [np.sqrt(mixture.scale) * padded]
    columns += [np.append(axis, 0.0)[batch.items] for axis in mixture.axes]
    mean, covariance = factors[camp][batch.users], spread[camp][batch.users]
    expected = padded + sum(column * mean[:, [at]] for at, column in enumerate(columns))
    residual = value - np.einsum("usr,us->ur", axes, expected)
    own = expected + np.einsum("usr,ur->us", axes, gain * residual)
    # What is not known of the factors enters the margin as far as readings do not correct it.
    left_over = np.stack(columns, axis=2)
    left_over = left_over - known @ left_over
    apart = left_over[row, left] - left_over[row, right]
    variance = variance + np.einsum("ea,eab,eb->e", apart, covariance[row], apart)
    return own[row, left] - own[row, right], variance
