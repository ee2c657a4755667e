"""In which way a user departs from the consensus, and how carefully the user votes.

A user's votes are explained by the consensus margin through three numbers: a slope (1 for the
consensus, 0 for votes that do not depend on the items, negative for reversed ones), a preference
for the left side, and a tie threshold. The kind is the explanation that is worth its numbers, or
"different taste" where scores of the user's own predict that user's held-out votes better still.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from isplitlbi.abnormal.expectation import Ballots, Expectation
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.model.links import Link
from isplitlbi.model.metrics import most_probable
from isplitlbi.model.parameters import Parameters
from isplitlbi.selection import held_out_parts
from isplitlbi.solvers import Dynamics, Share, fit_before_entries
from isplitlbi.typing import Floats, Mask

KINDS = (
    "reversed",
    "careless",
    "position-biased",
    "tie-happy",
    "never-tie",
    "sharper",
    "blunter",
    "different taste",
)
# What spoils a result, in contrast to what is only another opinion or another way to answer.
UNTRUSTWORTHY = ("reversed", "careless", "position-biased")

SLOPE, SIDE, THRESHOLD = 0, 1, 2

# A slope between these: the votes hardly depend on the items.
REVERSED, FLAT = -0.5, 0.25
# Who votes less than this share of decided votes to one side is not called position-biased.
LOPSIDED = 2 / 3

# Wide priors around the consensus keep the three numbers finite.
PRIOR_VARIANCE = np.array([25.0, 25.0, 25.0])
MOST_STEPS, MOST_HALVINGS, ACCURACY = 50, 30, 1e-3  # in nats

# Scores of one's own are those of the model before anybody leaves it, with deviations of this
# variance, fitted without the votes that they are to predict.
OWN_VARIANCE, OWN_ACCURACY, N_FOLDS = 3.0, 1e-2, 5

# Quality starts from one half, as if so much had been seen already (in nats).
QUALITY_PRIOR, QUALITY_START = 2.0, 0.5


class Kinds(NamedTuple):
    """What is known of every user; explanations and kinds are empty for those not asked about."""

    kind: list[str]
    explanation: list[str]
    quality: Floats
    slope: Floats
    side: Floats
    threshold: Floats


class _Explanation(NamedTuple):
    """One way to explain votes: which of the three numbers are free, and where the others stand."""

    free: tuple[int, ...]
    slope: float = 1.0
    cost: int = 1  # numbers that it takes

    def name(self, numbers: Floats, consensus_threshold: float) -> str:
        """Return the kind that these numbers stand for."""
        slope, _, threshold = numbers
        if SIDE in self.free:
            return "position-biased"
        if self.slope == 0.0 or (SLOPE in self.free and REVERSED <= slope <= FLAT):
            return "careless"
        if SLOPE in self.free:
            return "reversed" if slope < 0 else "sharper" if slope > 1 else "blunter"
        return "tie-happy" if threshold > consensus_threshold else "never-tie"


EXPLANATIONS = (
    _Explanation((SLOPE,)),
    _Explanation((SIDE,)),
    _Explanation((THRESHOLD,)),
    _Explanation((THRESHOLD,), slope=0.0, cost=2),
    _Explanation((SIDE, THRESHOLD), slope=0.0, cost=3),
)


def find_kinds(
    votes: Comparisons,
    link: Link,
    consensus: Floats,
    asked: Mask,
    delta: float,
    seed: int = 0,
    share: Share | None = None,
) -> Kinds:
    """Explain the votes of the users asked about, and rate everybody's carefulness."""
    share = share or Share.alone(votes)
    ballots = Ballots.of(votes)
    expected = Expectation.of(ballots, consensus, link)
    by_consensus = _log_likelihood(ballots, np.log(expected.probability))
    best, seen, numbers, names = _best_explanations(
        ballots, expected, link, consensus[-1], asked, delta, share
    )
    own = _Taste.of(votes, link, consensus, asked, delta, seed, share)
    explained, n_votes = by_consensus.copy(), np.maximum(votes.votes_per_user, 1)
    kind, explanation = [""] * votes.n_users, [""] * votes.n_users
    for user in np.flatnonzero(asked):
        # A taste must be worth more than an explanation by a few numbers, beyond chance; or more
        # than the consensus, where no such explanation is.
        taste, common = own.log_likelihood[user], by_consensus[user]
        taste_is_better = taste > max(seen[user], common) + np.log(n_votes[user])
        taste_is_better |= best[user] <= common < taste
        kind[user] = "different taste" if taste_is_better else names[user]
        if kind[user] not in UNTRUSTWORTHY:  # votes that do not depend on the items explain nothing
            explained[user] = max(explained[user], best[user], own.log_likelihood[user])
        explanation[user] = _sentence(kind[user], _Figures.of(ballots, expected, own, int(user)))
    quality = _quality(ballots, expected, explained)
    quality[[name == "reversed" for name in kind]] = 0.0
    return Kinds(kind, explanation, quality, *numbers.T)


# --- three numbers per user ----------------------------------------------------------------------


def _best_explanations(
    ballots: Ballots,
    expected: Expectation,
    link: Link,
    threshold: float,
    asked: Mask,
    delta: float,
    share: Share,
) -> tuple[Floats, Floats, Floats, list[str]]:
    """Return each user's best log-likelihood, less its cost and as it is; the numbers; the name."""
    n_users = len(ballots.start) - 1
    best, seen, names = np.full(n_users, -np.inf), np.full(n_users, -np.inf), [""] * n_users
    numbers = np.tile([1.0, 0.0, threshold], (n_users, 1))
    mine = asked[ballots.user]
    some = ballots._replace(**{name: getattr(ballots, name)[mine] for name in ballots._fields[1:]})
    cost = 0.5 * np.log(np.maximum(ballots.sum_by_user(ballots.n_votes.astype(float)), 1.0))
    to_left, _, to_right = (ballots.sum_by_user(column * 1.0) for column in ballots.counts.T)
    is_lopsided = np.maximum(to_left, to_right) >= LOPSIDED * np.maximum(to_left + to_right, 1.0)
    for each in EXPLANATIONS:
        start = np.tile([each.slope, 0.0, threshold], (n_users, 1))
        fitted, likelihood = _fit_numbers(
            some, expected.margin[mine], link, start, each.free, delta, share
        )
        value = likelihood - each.cost * cost
        if SIDE in each.free:
            value[~is_lopsided] = -np.inf
        for user in np.flatnonzero(asked & (value > best)):
            best[user], seen[user], numbers[user] = value[user], likelihood[user], fitted[user]
            names[user] = each.name(fitted[user], threshold)
    return best, seen, numbers, names


def _fit_numbers(
    ballots: Ballots,
    margin: Floats,
    link: Link,
    start: Floats,
    free: tuple[int, ...],
    delta: float,
    share: Share,
) -> tuple[Floats, Floats]:
    """Fit some of the three numbers of all users at once, by Newton's method."""
    counts, place = (ballots.counts * ballots.weight[:, None]).T, list(free)
    in_margin = {SLOPE: margin, SIDE: np.ones_like(margin)}

    def evaluate(at: Floats) -> tuple[Floats, Floats, Floats]:
        """Return value, gradient and curvature of minus the posterior in what is free, by user."""
        slope, side, threshold = at[ballots.user].T
        loss, by_margin, by_threshold, mm, mt, tt = link.vote_terms(
            slope * margin + side, threshold, *counts
        )
        away, variance = (at - start)[:, place], PRIOR_VARIANCE[place]
        gradient, bend = away / variance, np.empty((len(at), len(place), len(place)))
        for i, one in enumerate(place):
            slopes = by_threshold if one == THRESHOLD else by_margin * in_margin[one]
            gradient[:, i] += ballots.sum_by_user(slopes)
            for j, other in enumerate(place[: i + 1]):
                both = [in_margin[each] for each in (one, other) if each != THRESHOLD]
                terms = (tt, mt, mm)[len(both)] * np.prod(both, axis=0)
                bend[:, i, j] = bend[:, j, i] = ballots.sum_by_user(terms)
            bend[:, i, i] += 1.0 / variance[i]
        value = ballots.sum_by_user(loss) + 0.5 * np.sum(away**2 / variance, axis=1)
        return value, gradient, bend

    at = start.copy()
    value, gradient, bend = evaluate(at)
    diagonal = np.eye(len(place), dtype=np.bool_)
    for _ in range(MOST_STEPS):
        held = np.zeros(gradient.shape, dtype=np.bool_)
        if THRESHOLD in place:  # the last of them
            held[:, -1] = (at[:, THRESHOLD] <= delta) & (gradient[:, -1] > 0)
        matrix = np.where((held[:, :, None] | held[:, None, :]) & ~diagonal, 0.0, bend)
        step = np.zeros_like(at)
        step[:, place] = -np.linalg.solve(matrix, np.where(held, 0.0, gradient)[:, :, None])[
            :, :, 0
        ]
        length = np.ones(len(at))
        for _ in range(MOST_HALVINGS):
            trial = at + length[:, None] * step
            trial[:, THRESHOLD] = np.maximum(trial[:, THRESHOLD], delta)
            new = evaluate(trial)
            worse = new[0] > value + 1e-12 * np.abs(value)
            if not worse.any():
                break
            length[worse] *= 0.5
        gained = np.max(value - new[0], initial=0.0)
        at, (value, gradient, bend) = trial, new
        # Everybody takes as many steps, wherever the others are.
        if not share.any(not gained <= ACCURACY):
            break
    slope, side, threshold = at[ballots.user].T
    log_probability = link.log_probabilities(slope * margin + side, threshold)
    return at, _log_likelihood(ballots, log_probability)


def _log_likelihood(ballots: Ballots, log_probability: Floats) -> Floats:
    said = np.sum(ballots.counts * log_probability, axis=1) * ballots.weight
    return ballots.sum_by_user(said)


# --- scores of one's own -------------------------------------------------------------------------


class _Taste(NamedTuple):
    """How well scores of their own predict the held-out votes of the users asked about."""

    log_likelihood: Floats  # -inf for the others
    own_right: Floats  # share of held-out votes that they predict right
    consensus_right: Floats  # and the consensus

    @classmethod
    def of(
        cls,
        votes: Comparisons,
        link: Link,
        consensus: Floats,
        asked: Mask,
        delta: float,
        seed: int,
        share: Share,
    ) -> _Taste:
        n_users = votes.n_users
        likelihood, own_right, consensus_right = np.zeros((3, n_users))
        if not share.any(bool(asked.any())):
            return cls(np.full(n_users, -np.inf), own_right, consensus_right)
        nobody = Parameters(votes.slots, consensus, np.zeros(len(votes.slots.coordinate)))
        dynamics = Dynamics(OWN_VARIANCE, 1.0, delta)
        n_folds = min(N_FOLDS, share.n_votes)
        parts = held_out_parts(votes, n_folds, share.numbers(seed), share=share)
        while parts:
            training, held_out = parts.pop(0)  # what a fit lays out of its votes goes with them
            theirs = held_out.subset(asked[held_out.user])
            fitted = fit_before_entries(
                training, link, dynamics, tol=OWN_ACCURACY, exchange=share.exchange
            )
            own = Parameters(votes.slots, *fitted)
            for model, right in ((own, own_right), (nobody, consensus_right)):
                known = model.margin_and_threshold(theirs.user, theirs.left, theirs.right)
                said = link.log_probabilities(*known)
                right += np.bincount(theirs.user, most_probable(said) == theirs.outcome, n_users)
                if model is own:
                    happened = said[np.arange(len(said)), 1 - theirs.outcome]
                    weight = 1.0 if theirs.weight is None else theirs.weight
                    likelihood += np.bincount(theirs.user, weight * happened, n_users)
        n_votes = np.maximum(votes.votes_per_user, 1)
        return cls(
            np.where(asked, likelihood, -np.inf), own_right / n_votes, consensus_right / n_votes
        )


# --- carefulness ---------------------------------------------------------------------------------


def _quality(ballots: Ballots, expected: Expectation, explained: Floats) -> Floats:
    """Rate how far votes depend on the items, from 0 to 1, beside what a careful voter would show.

    The yardstick is what the votes would be worth if they did not depend on the items at all, only
    on how often the user says left, tie and right; a careful voter of the consensus is worth so
    much more on the same pairs.
    """
    weighted = ballots.counts * ballots.weight[:, None]
    amount = ballots.n_votes * ballots.weight
    shares = np.stack([ballots.sum_by_user(column) for column in weighted.T], axis=1)
    total = shares.sum(axis=1)
    # Shares that are not known beforehand: all sequences of answers with the same shares.
    without_items = gammaln(shares + 1.0).sum(axis=1) - gammaln(total + 3.0) + gammaln(3.0)
    careful = ballots.sum_by_user(
        amount * np.sum(expected.probability * np.log(expected.probability), axis=1)
    )
    mean = np.stack(
        [ballots.sum_by_user(amount * column) for column in expected.probability.T], axis=1
    )
    careful_without = gammaln(mean + 1.0).sum(axis=1) - gammaln(total + 3.0) + gammaln(3.0)
    gain, possible = explained - without_items, np.maximum(careful - careful_without, 0.0)
    share = (gain + QUALITY_PRIOR * QUALITY_START) / (possible + QUALITY_PRIOR)
    return np.where(total > 0, np.clip(share, 0.0, 1.0), np.nan)


# --- in words ------------------------------------------------------------------------------------


class _Figures(NamedTuple):
    """What is said of one user: shares of votes, and what the consensus would expect."""

    n_votes: int
    left: float  # share of decided votes
    ties: float
    expected_ties: float
    against: float  # share of decided votes for the item that the consensus ranks lower
    expected_against: float
    own_right: float
    consensus_right: float

    @classmethod
    def of(cls, ballots: Ballots, expected: Expectation, own: _Taste, user: int) -> _Figures:
        mine = slice(*ballots.start[user : user + 2])
        counts, n_votes = ballots.counts[mine], ballots.n_votes[mine]
        foreseen = n_votes[:, None] * expected.probability[mine]
        left_is_lower = expected.margin[mine] < 0

        def against(amounts: NDArray[np.generic]) -> float:
            decided = float(amounts[:, [0, 2]].sum())
            lower = np.where(left_is_lower, amounts[:, 0], amounts[:, 2]).sum()
            return float(lower) / decided if decided else 0.0

        total = int(n_votes.sum())
        return cls(
            total,
            float(counts[:, 0].sum()) / max(int(counts[:, [0, 2]].sum()), 1),
            float(counts[:, 1].sum()) / total,
            float(foreseen[:, 1].sum()) / total,
            against(counts),
            against(foreseen),
            float(own.own_right[user]),
            float(own.consensus_right[user]),
        )


def _sentence(kind: str, figures: _Figures) -> str:
    """Say it plainly."""
    n, left, ties, expected_ties, against, expected_against, own, common = figures
    beside = (
        f"{_percent(against)} of decided votes against it ({_percent(expected_against)} expected)"
    )
    if kind == "reversed":
        return f"turns the consensus upside down: {beside}"
    if kind == "careless":
        return f"votes hardly depend on the items, nor on the consensus: {beside}"
    if kind == "position-biased":
        side = "left" if left >= 0.5 else "right"
        share = _percent(max(left, 1.0 - left))
        return f"votes {side} in {share} of decided votes, whatever is shown"
    if kind in ("tie-happy", "never-tie"):
        said = "never declares a tie" if ties == 0 else f"declares {_percent(ties)} ties"
        return f"{said} in {n} votes ({_percent(expected_ties)} expected)"
    if kind in ("sharper", "blunter"):
        how = "surer" if kind == "sharper" else "less sure"
        return f"has the order of the consensus but is {how} of it: {beside}"
    return (
        f"own ranking predicts {_percent(own)} of held-out votes, the consensus {_percent(common)}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
