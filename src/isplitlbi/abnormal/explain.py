"""Which kind explains a user's votes.

The kind is the explanation that is worth its numbers, or "different taste" where scores of the
user's own predict that user's held-out votes better still.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from isplitlbi.abnormal.expectation import Answers, Expectation, Inputs
from isplitlbi.abnormal.kinds import KINDS, Evidence, Figures
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Shown
from isplitlbi.data.splits import held_out_parts
from isplitlbi.model.answering import log_probabilities
from isplitlbi.model.metrics import most_probable
from isplitlbi.model.terms import Side, Terms
from isplitlbi.solvers.common import Numbers, fit_numbers
from isplitlbi.solvers.likelihood import fit_before_entries
from isplitlbi.solvers.settings import Dynamics
from isplitlbi.typing import Floats, Mask, Places

__all__ = ["explain"]

# A wide prior around the consensus keeps the three numbers finite.
PRIOR_VARIANCE = 25.0

# Scores of one's own are those of the model before anybody leaves it, with deviations of this
# variance, fitted without the votes that they are to predict.
OWN_VARIANCE, OWN_ACCURACY, N_FOLDS = 3.0, 1e-2, 5
# How large a unit of the threshold's logarithm is then: its variance is one.
LOG_THRESHOLD_UNIT = OWN_VARIANCE**-0.5

# Every way of explaining votes that some kind knows, the cheapest first.
EXPLANATIONS = sorted(
    dict.fromkeys(each for kind in KINDS.values() for each in kind.explanations),
    key=lambda explanation: explanation.cost,
)
(BY_OWN_SCORES,) = (name for name, kind in KINDS.items() if kind.by_own_scores)


class Explained(NamedTuple):
    """How users vote; kinds and sentences are empty for those not asked about."""

    kind: list[str]
    sentence: list[str]
    slope: Floats
    side: Floats
    threshold: Floats
    log_likelihood: Floats  # of the votes of every user, as far as they depend on the items


def explain(inputs: Inputs, expected: Expectation, asked: Mask) -> Explained:
    """Explain the votes of the users asked about."""
    answers, n_users = inputs.answers, inputs.votes.n_users
    common = answers.log_likelihood(expected.log_probability)
    few = _by_few_numbers(inputs, expected, asked)
    taste = _Taste.of(inputs, asked)
    explained, n_votes = common.copy(), np.maximum(inputs.votes.votes_per_user, 1)
    names, sentences = [""] * n_users, [""] * n_users
    for user in np.flatnonzero(asked).tolist():
        # A taste must be worth more than an explanation by a few numbers, beyond chance; or more
        # than the consensus, where no such explanation is.
        own = taste.log_likelihood[user]
        taste_is_better = own > max(few.seen[user], common[user]) + np.log(n_votes[user])
        taste_is_better |= few.best[user] <= common[user] < own
        names[user] = BY_OWN_SCORES if taste_is_better else few.name[user]
        kind = KINDS[names[user]]
        if not kind.is_untrustworthy:  # votes that do not depend on the items explain nothing
            explained[user] = max(explained[user], few.best[user], own)
        sentences[user] = kind.sentence(_figures(answers, expected, taste, user))
    slope, side, threshold = few.numbers.T
    return Explained(names, sentences, slope, side, threshold, explained)


# --- a few numbers per user ----------------------------------------------------------------------


class _FewNumbers(NamedTuple):
    """The best explanation by a few numbers, for every user."""

    best: Floats  # log-likelihood, less what the numbers cost; -inf for those not asked about
    seen: Floats  # and as it is
    numbers: Floats  # (n_users, 3)
    name: list[str]  # of the kind


def _by_few_numbers(inputs: Inputs, expected: Expectation, asked: Mask) -> _FewNumbers:
    answers, consensus = inputs.answers, inputs.consensus
    n_users, threshold = answers.n_users, consensus.threshold
    best, seen = np.full((2, n_users), -np.inf)
    side = consensus.trait(Side.name) if Side.name in consensus.vector.traits else 0.0
    numbers, names = np.tile([1.0, side, threshold], (n_users, 1)), [""] * n_users
    found = _FewNumbers(best, seen, numbers, names)
    if not asked.any():
        return found
    # No part of the whole: nobody else's slots are visited.
    theirs = replace(inputs.votes.subset(asked[inputs.votes.user]), whole=None)
    cost = 0.5 * np.log(np.maximum(answers.sum_by_user(answers.n_votes), 1.0))
    to_one_side = _share_to_one_side(answers)
    for explanation in EXPLANATIONS:
        here = explanation.where(has_ties=expected.has_ties, has_sides=answers.has_sides)
        if here is None:
            continue
        fitted = fit_numbers(
            theirs, inputs.link, consensus, here.free, slope=here.slope, variance=PRIOR_VARIANCE,
            delta=inputs.delta, runtime=inputs.runtime,
        )  # fmt: skip
        likelihood = _log_likelihood(inputs, asked, fitted, by_items=here.slope != 0.0)
        value = likelihood - here.cost * cost
        evidence = Evidence(*fitted, threshold, to_one_side)
        for name, kind in KINDS.items():
            if explanation not in kind.explanations:
                continue
            its = asked & kind.covers(evidence) & (value > best)
            best[its], seen[its] = value[its], likelihood[its]
            numbers[its] = np.stack(fitted, axis=1)[its]
            for user in np.flatnonzero(its):
                names[user] = name
    return found


def _log_likelihood(inputs: Inputs, asked: Mask, numbers: Numbers, *, by_items: bool) -> Floats:
    """Return the log-likelihood of the votes of the users asked about, by their numbers."""
    answers, consensus, mine = inputs.answers, inputs.consensus, asked[inputs.answers.user]
    user = answers.user[mine]
    slope, side, threshold = (number[user] for number in numbers)
    margin = slope * answers.apart(consensus)[mine] + side
    if by_items:
        everywhere = np.ones(len(mine))
        margin += (answers.beside(consensus, but=Side.name) * everywhere)[mine]
        threshold = threshold * (answers.habit(consensus) * everywhere)[mine]
    has_ties = consensus.terms.has_ties
    log_probability = log_probabilities(inputs.link, margin, threshold, has_ties=has_ties)
    said = np.sum(answers.weighted[mine] * log_probability, axis=1)
    return np.bincount(user, said, answers.n_users).astype(np.float64, copy=False)


def _share_to_one_side(answers: Answers) -> Floats:
    """Return the share of decided votes to the side that each user chooses more often."""
    to_left, _, to_right = (answers.sum_by_user(column) for column in answers.counts.T)
    return np.asarray(np.maximum(to_left, to_right) / np.maximum(to_left + to_right, 1.0))


# --- scores of one's own -------------------------------------------------------------------------


class _Taste(NamedTuple):
    """How well scores of their own predict the held-out votes of the users asked about."""

    log_likelihood: Floats  # -inf for the others
    own_right: Floats  # share of held-out votes that they predict right
    consensus_right: Floats  # and the consensus

    @classmethod
    def of(cls, inputs: Inputs, asked: Mask) -> _Taste:
        votes, link, runtime, nobody = inputs.votes, inputs.link, inputs.runtime, inputs.consensus
        likelihood, own_right, consensus_right = np.zeros((3, votes.n_users))
        if not runtime.any(bool(asked.any())):
            return cls(np.full(votes.n_users, -np.inf), own_right, consensus_right)
        terms = _with_own_scores(nobody.terms)
        dynamics = Dynamics(OWN_VARIANCE, 1.0, inputs.delta)
        n_folds = min(N_FOLDS, runtime.n_votes)
        parts = held_out_parts(votes, n_folds, runtime.numbers(inputs.seed), runtime=runtime)
        while parts:
            training, held_out = parts.pop(0)  # what a fit lays out of its votes goes with them
            theirs = held_out.subset(asked[held_out.user])
            own = fit_before_entries(training, link, dynamics, runtime, OWN_ACCURACY, terms)
            pairs = theirs.left, theirs.right
            shown = Shown(*pairs, theirs, np.arange(len(theirs)))
            known = nobody.margin_and_threshold(*pairs, shown)
            said = log_probabilities(link, *known, has_ties=terms.has_ties)
            consensus_right += _right(theirs, said)
            known = own.margin_and_threshold(theirs.user, *pairs, shown)
            said = log_probabilities(link, *known, has_ties=terms.has_ties)
            own_right += _right(theirs, said)
            happened = said[np.arange(len(said)), 1 - theirs.outcome]
            weight = 1.0 if theirs.weight is None else theirs.weight
            likelihood += np.bincount(theirs.user, weight * happened, votes.n_users)
        n_votes = np.maximum(votes.votes_per_user, 1)
        return cls(
            np.where(asked, likelihood, -np.inf), own_right / n_votes, consensus_right / n_votes
        )


def _with_own_scores(terms: Terms) -> Terms:
    """Return the terms of a consensus, with which everybody has scores and a threshold as well."""
    if terms.ties == "bounded":
        return terms
    own = {"taste": 1.0, "threshold": LOG_THRESHOLD_UNIT if terms.has_ties else 0.0}
    return terms.sized(own)


def _right(votes: Comparisons, said: Floats) -> Places:
    """Return how many votes of every user have the most probable outcome."""
    is_right = most_probable(said) == votes.outcome
    return np.bincount(votes.user[is_right], minlength=votes.n_users)


# --- in figures ----------------------------------------------------------------------------------


def _figures(answers: Answers, expected: Expectation, taste: _Taste, user: int) -> Figures:
    """Return what a sentence about a user may tell."""
    mine = answers.of_user(user)
    counts, n_votes = answers.counts[mine], answers.n_votes[mine]
    foreseen = n_votes[:, None] * expected.probability[mine]
    left_is_lower = expected.apart[mine] < 0

    def against(amounts: Floats | Places) -> float:
        decided = float(amounts[:, [0, 2]].sum())
        lower = np.where(left_is_lower, amounts[:, 0], amounts[:, 2]).sum()
        return float(lower) / decided if decided else 0.0

    total = int(n_votes.sum())
    return Figures(
        total,
        left=float(counts[:, 0].sum()) / max(int(counts[:, [0, 2]].sum()), 1),
        ties=float(counts[:, 1].sum()) / total,
        expected_ties=float(foreseen[:, 1].sum()) / total,
        against=against(counts),
        expected_against=against(foreseen),
        own_right=float(taste.own_right[user]),
        consensus_right=float(taste.consensus_right[user]),
    )
