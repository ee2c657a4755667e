"""How reliable the scores of the items are: for other people, and beside their own errors.

Scores are those of one ranking for all (`fit_common`), a little held: an item that wins whenever it
is shown would have no score otherwise. A vote of twice the average weight counts as two votes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy

from isplitlbi.data.columns import CROWD
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Tally
from isplitlbi.diagnostics.answered import added
from isplitlbi.diagnostics.facts import runtime_for
from isplitlbi.model.links import Logistic
from isplitlbi.model.parameters import Consensus
from isplitlbi.model.terms import PAPER
from isplitlbi.runtime.base import Runtime
from isplitlbi.solvers.common import common_terms, fit_common
from isplitlbi.typing import Floats, Mask, Places

__all__ = ["Separation", "SplitHalf", "Tables", "separation", "split_half"]

# Of a score before any vote, in logits: far wider than scores usually are.
SCORE_VARIANCE = 10.0
FEWEST_ITEMS = 3  # of fewer, a correlation says nothing
FEWEST_USERS = 4  # to be split in halves
MOST_ITEMS = 2_500  # whose covariance is found
NUMBERS_AT_ONCE = 1 << 22  # of users and items


class SplitHalf(NamedTuple):
    """Do other people give the same scores? People are split at random in halves, many times.

    Attributes
    ----------
    reliability : float
        Of the scores of all people (Spearman and Brown): the mean over the splits.
    low, high : float
        Between these lie 95 % of the splits. It is no interval for other people.
    correlation : float
        Of the scores of one half with those of the other: the mean over the splits.
    n_splits : int
        In how many splits the votes of both halves connected the items.
    """

    reliability: float
    low: float
    high: float
    correlation: float
    n_splits: int


class Separation(NamedTuple):
    """How much of the variance of the scores is not error (scale separation reliability, SSR).

    Attributes
    ----------
    of_votes : float
        If every vote were independent of all others. This is the SSR of comparative judgement.
    of_people : float or None
        If people are drawn, each with all of their votes. Nothing of a single user.
    variance, error_of_votes, error_of_people : float
        Of the scores, and their mean squared errors, in squared logits.
    """

    of_votes: float
    of_people: float | None
    variance: float
    error_of_votes: float
    error_of_people: float | None


@dataclass(frozen=True, eq=False)
class Tables:
    """Votes by user and pair of items, and the number of the pair of each."""

    votes: Comparisons
    cells: Tally
    pair: Places
    runtime_of: Callable[[Comparisons], Runtime] = runtime_for  # who fits votes

    @property
    def counts(self) -> Floats:
        """Amounts of first, tie and second, (3, n_cells)."""
        return np.array(self.cells.counts)

    def of_pairs(self, counts: Floats) -> Floats:
        """Add up counts of cells over all users, (3, n_pairs)."""
        n_pairs = int(self.pair.max(initial=-1)) + 1
        return np.stack([added(self.pair, each, n_pairs) for each in counts])

    def items_of_pairs(self) -> tuple[Places, Places]:
        """Return the first and second items of all pairs."""
        _, at = np.unique(self.pair, return_index=True)
        return self.cells.first[at].astype(np.int64), self.cells.second[at].astype(np.int64)


def split_half(
    tables: Tables, n_splits: int, seed: int, progress: Callable[[float], None]
) -> SplitHalf | str:
    """Split people at random in halves, and correlate the scores that both halves give.

    Where that cannot be done, the answer is a sentence that says why.
    """
    users = np.unique(tables.cells.user)
    if len(users) < FEWEST_USERS:
        return f"Split halves need at least {FEWEST_USERS} users, and {len(users)} voted."
    first, second = tables.items_of_pairs()
    rng, found = np.random.default_rng(seed), list[float]()
    counts = tables.counts
    total = tables.of_pairs(counts)
    for done in range(n_splits):
        is_first = np.zeros(tables.votes.n_users)
        is_first[rng.permutation(users)[: len(users) // 2]] = 1.0
        one = tables.of_pairs(counts * is_first[tables.cells.user])
        other = np.where(total - one > 1e-9 * total, total - one, 0.0)
        correlation = _correlation(tables, first, second, one, other)
        if np.isfinite(correlation):
            found.append(correlation)
        progress((done + 1) / n_splits)
    if 2 * len(found) < n_splits or not found:
        return (
            "In most splits, the votes of a half do not connect at least "
            f"{FEWEST_ITEMS} items, so that its scores cannot be compared with those of the other."
        )
    halves = np.array(found)
    whole = 2.0 * halves / (1.0 + np.abs(halves))
    low, high = np.quantile(whole, (0.025, 0.975))
    return SplitHalf(float(whole.mean()), float(low), float(high), float(halves.mean()), len(found))


def _correlation(
    tables: Tables, first: Places, second: Places, one: Floats, other: Floats
) -> float:
    """Return the correlation of the scores of both halves, over items that both have judged."""
    scores, is_there = [], np.ones(tables.votes.n_items, dtype=np.bool_)
    for counts in (one, other):
        judged = _judged(tables.votes.n_items, first, second, counts)
        if judged is None:
            return float("nan")
        is_there &= judged
        scores.append(_consensus(tables, first, second, counts).scores)
    here, there = (each[is_there] for each in scores)
    if len(here) < FEWEST_ITEMS or min(np.ptp(here), np.ptp(there)) < 1e-9:
        return float("nan")
    return float(np.corrcoef(here, there)[0, 1])


def separation(tables: Tables) -> Separation | str:
    """Compare the variance of the scores with their errors, or say why that cannot be done."""
    first, second = tables.items_of_pairs()
    counts, n_items = tables.of_pairs(tables.counts), tables.votes.n_items
    is_there = _judged(n_items, first, second, counts)
    if is_there is None:
        return "The votes do not connect all items, so that their scores have no common scale."
    n_judged = int(np.count_nonzero(is_there))
    if n_judged < FEWEST_ITEMS:
        return f"Scale separation needs at least {FEWEST_ITEMS} items, and {n_judged} were judged."
    if n_judged > MOST_ITEMS:
        return f"Scale separation takes too long for {n_judged:,} items: {MOST_ITEMS:,} at most."
    consensus = _consensus(tables, first, second, counts)
    variance = float(np.var(consensus.scores[is_there], ddof=1))
    if variance < 1e-12:
        return "All items have the same score, so that there is nothing to separate."
    bent = _curvature(consensus, first, second, counts)
    holds = np.append(np.full(n_items, 1.0 / SCORE_VARIANCE), 0.0 if bent[-1, -1] > 0.0 else 1.0)
    inverse: Floats = np.linalg.inv(bent + np.diag(holds)).astype(np.float64, copy=False)
    of_votes = _mean_error(inverse, is_there)
    of_people = None
    if len(np.unique(tables.cells.user)) > 1:
        squares, n_users = _squares_of_users(tables, consensus)
        spread = inverse @ squares @ inverse * (n_users / (n_users - 1))
        of_people = _mean_error(spread, is_there)
    return Separation(
        1.0 - of_votes / variance, None if of_people is None else 1.0 - of_people / variance,
        variance, of_votes, of_people,
    )  # fmt: skip


def _judged(n_items: int, first: Places, second: Places, counts: Floats) -> Mask | None:
    """Return which items were judged; nothing where votes do not connect them."""
    there = np.flatnonzero(counts.sum(axis=0) > 0.0)
    judged = np.zeros(n_items, dtype=np.bool_)
    judged[first[there]] = judged[second[there]] = True
    graph = scipy.sparse.coo_array(
        (np.ones(len(there)), (first[there], second[there])), shape=(n_items, n_items)
    ).tocsr()
    _, component = scipy.sparse.csgraph.connected_components(graph, directed=False)
    return judged if len(np.unique(component[judged])) == 1 else None


def _consensus(tables: Tables, first: Places, second: Places, counts: Floats) -> Consensus:
    """Fit one ranking to the votes on each pair."""
    said, pair = np.nonzero(counts)
    rows = replace(
        tables.votes,
        users=np.array([CROWD], dtype=object), user=np.zeros(len(pair), dtype=np.int32),
        left=first[pair].astype(np.int32), right=second[pair].astype(np.int32),
        outcome=(1 - said).astype(np.int8), weight=counts[said, pair], given_weight=None,
        group=None, groups=None, features=None, time=None, duration=None, id=None, whole=None,
    )  # fmt: skip
    terms = common_terms(PAPER, has_ties=bool((said == 1).any()))
    runtime = tables.runtime_of(rows)
    return fit_common(rows, Logistic(), terms, variance=SCORE_VARIANCE, runtime=runtime)


def _bends(
    consensus: Consensus, first: Places, second: Places, counts: Floats
) -> tuple[Floats, ...]:
    """Return by how much votes pull at margin and threshold, and how they bend: mm, mt, tt."""
    margin = consensus.scores[first] - consensus.scores[second]
    level = np.full(len(margin), consensus.threshold or 0.0)
    found = consensus.terms.answering(Logistic()).vote_terms(margin, level, *counts)[1:]
    return tuple(np.broadcast_to(each, margin.shape) for each in found)


def _curvature(consensus: Consensus, first: Places, second: Places, counts: Floats) -> Floats:
    """Return how the votes bend by every score and, last, by the threshold."""
    _, _, mm, mt, tt = _bends(consensus, first, second, counts)
    n = len(consensus.scores)
    bent = np.zeros((n + 1, n + 1))
    np.add.at(bent, (first, second), -mm)
    bent += bent.T
    bent[np.arange(n), np.arange(n)] = added(first, mm, n) + added(second, mm, n)
    bent[n, :n] = bent[:n, n] = added(first, mt, n) - added(second, mt, n)
    bent[n, n] = tt.sum()
    return bent


def _squares_of_users(tables: Tables, consensus: Consensus) -> tuple[Floats, int]:
    """Return the squares of all users' pulls, added up, and how many users there are."""
    cells, n = tables.cells, len(consensus.scores)
    first, second = (side.astype(np.int64) for side in (cells.first, cells.second))
    by_margin, by_level, *_ = _bends(consensus, first, second, tables.counts)
    users, owner = np.unique(cells.user, return_inverse=True)
    squares, at_once = np.zeros((n + 1, n + 1)), max(NUMBERS_AT_ONCE // (n + 1), 1)
    for begin in range(0, len(users), at_once):
        size = min(at_once, len(users) - begin)
        here = slice(*np.searchsorted(owner, (begin, begin + size)))  # cells are in order of users
        row = (owner[here] - begin) * (n + 1)
        pulls = added(row + first[here], by_margin[here], size * (n + 1))
        pulls -= added(row + second[here], by_margin[here], size * (n + 1))
        pulls += added(row + n, by_level[here], size * (n + 1))
        pulls = pulls.reshape(size, n + 1)
        squares += pulls.T @ pulls
    return squares, len(users)


def _mean_error(covariance: Floats, is_there: Mask) -> float:
    """Return the mean squared error of the scores beside their mean, as the variance is taken."""
    there = np.flatnonzero(is_there)
    found = covariance[np.ix_(there, there)]
    return float((np.trace(found) - len(there) * found.mean()) / (len(there) - 1))
