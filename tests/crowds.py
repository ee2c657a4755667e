"""Users who agree, and one who departs in each way: votes that several files of tests look at."""

from dataclasses import fields, is_dataclass

import numpy as np

import isplitlbi
from isplitlbi.abnormal.kinds import KINDS
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import THRESHOLD as PLACE_OF_THRESHOLD
from isplitlbi.data.layout import Vector
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.links import Logistic
from isplitlbi.model.parameters import Consensus
from isplitlbi.model.terms import Terms
from isplitlbi.solvers.common import common_terms, fit_common

SCORES, THRESHOLD = np.linspace(-2, 2, 8), 0.8  # what the crowd agrees on
ITEMS = np.array([f"item-{number}" for number in range(8)])

# The users of `crowd` who depart from the consensus, and the kind of each.
OTHERS = ("position-biased", "ring", "too fast", "unclear")
KIND_OF = {name: name for name in KINDS if name not in OTHERS} | {
    "always left": "position-biased",
    "always right": "position-biased",
    "ring-1": "ring",
    "ring-2": "ring",
    "ring-3": "ring",
}
UNRELIABLE_USERS = {user for user, kind in KIND_OF.items() if KINDS[kind].list == "unreliable"}


def vote(rng, n_votes, scores=SCORES, threshold=THRESHOLD, side=0.0):
    """Draw left, right and outcome of one user's votes on random pairs."""
    left = rng.integers(8, size=n_votes)
    right = (left + rng.integers(1, 8, size=n_votes)) % 8
    perceived = scores[left] - scores[right] + side + rng.logistic(size=n_votes)
    return left, right, (perceived > threshold) * 1 - (perceived <= -threshold)


def gather(voters):
    """Put the votes of many users together."""
    n_votes = [len(outcome) for _, _, outcome in voters.values()]
    left, right, outcome = map(np.concatenate, zip(*voters.values(), strict=True))
    return Comparisons.from_arrays(
        np.repeat(list(voters), n_votes), ITEMS[left], ITEMS[right], outcome,
        time=np.concatenate([np.arange(each) for each in n_votes]),
    )  # fmt: skip


def crowd(seed=21, n_users=60):
    """Let many users vote like the consensus, and one or some in each other way."""
    rng = np.random.default_rng(seed)
    voters = {f"normal-{number:02d}": vote(rng, 60) for number in range(n_users)}
    taste = rng.permutation(SCORES)

    def instead(outcome, n_votes=300):
        return *vote(rng, n_votes)[:2], np.broadcast_to(outcome, n_votes)

    def promoting(item, n_votes=300):
        left, right, outcome = vote(rng, n_votes)
        return left, right, np.where(left == item, 1, np.where(right == item, -1, outcome))

    def tiring(n_votes=300):
        left, right, outcome = vote(rng, n_votes)
        later = np.arange(n_votes) > n_votes // 2
        return left, right, np.where(later, rng.integers(-1, 2, size=n_votes), outcome)

    shared = 3.0 * rng.permutation(SCORES)
    return voters | {
        "reversed": vote(rng, 300, -SCORES),
        "careless": instead(rng.integers(-1, 2, size=300)),
        "always left": instead(1),
        "always right": instead(-1),
        "tie-happy": vote(rng, 300, threshold=2.4),
        "never-tie": vote(rng, 300, threshold=0.0),
        "tie-shy": vote(rng, 300, threshold=0.3),
        "sharper": vote(rng, 300, 3.0 * SCORES),
        "blunter": vote(rng, 300, 0.4 * SCORES),
        "different taste": vote(rng, 300, taste),
        "always-tie": instead(0),
        "pattern": instead(np.resize([1, -1], 300)),
        "fatigue": tiring(),
        "leaning": vote(rng, 300, side=1.5),
        "copier": vote(rng, 300, 50.0 * SCORES, 50.0 * THRESHOLD),
        "promoter": promoting(1),
        **{f"ring-{number}": vote(rng, 150, shared) for number in range(1, 4)},
        "diligent-1": vote(rng, 300),
        "diligent-2": vote(rng, 300),
        "newcomer-1": (np.array([3]), np.array([4]), np.array([0])),
        "newcomer-2": (np.array([3, 5]), np.array([4, 4]), np.array([1, 0])),
    }


def agreeing(n_users, n_votes, seed):
    """Draw users who all vote like the consensus."""
    return simulate(
        n_users=n_users, n_items=8, votes_per_user=(n_votes, n_votes), score_sd=1.5,
        threshold=0.8, abnormal_share=0.0, random_state=seed,
    ).votes  # fmt: skip


def reversing_crowd():
    """Draw fifty users, three in ten of whom turn the consensus upside down."""
    return simulate(
        n_users=50, n_items=8, votes_per_user=(60, 60), score_sd=1.5, threshold=0.8,
        abnormal_share=0.0, malicious={"reversed": 0.3}, random_state=1,
    )  # fmt: skip


def forced(seed, n_votes, n_users=150, **changes):
    """Draw users who must name a winner."""
    settings = {"n_items": 12, "score_sd": 2.0, "threshold": None, "abnormal_share": 0.0} | changes
    return simulate(
        n_users=n_users, votes_per_user=(n_votes, n_votes), random_state=seed, **settings
    )


def consensus_in(votes, names="all", *, has_sides=True, variance=4.0):
    """Fit what all users have in common, by terms of some names."""
    terms = Terms.named(
        names,
        features=() if votes.features is None else votes.features.names,
        has_ties=bool(np.any(votes.outcome == 0)),
        has_sides=has_sides,
    )
    return fit_common(votes, Logistic(), common_terms(terms), variance=variance)


def consensus_of(scores, threshold):
    """Return a consensus by hand."""
    values = np.append(scores, threshold)
    return Consensus(Vector(len(scores), (PLACE_OF_THRESHOLD,)), values)


def centred(scores):
    """Return scores around zero."""
    return scores - scores.mean()


def assert_same(one, other):
    """Assert that two records of findings are equal to the last bit, texts included."""
    for field in fields(one):
        here, there = getattr(one, field.name), getattr(other, field.name)
        if is_dataclass(here):
            assert_same(here, there)
        elif isinstance(here, np.ndarray):
            np.testing.assert_array_equal(here, there, err_msg=field.name, strict=True)
        else:
            assert here == there, field.name


def assert_same_ordinary(one, other):
    """Assert that two studies have found the same to be ordinary, but for rounding."""
    for name, value in vars(one).items():
        np.testing.assert_allclose(value, vars(other)[name], atol=1e-6, err_msg=name)


# A path that is followed in no time, for tests that look at the users of a model.
QUICK = {"kappa": 5.0, "times": [0.4], "time": 0.7}

USER_COLUMNS = [
    "user", "votes", "entry_time", "entry_rank", "distance", "p_value", "q_value", "abnormal",
    "kind", "quality", "explanation", "list", "effect", "effect_low", "effect_high",
    "p_unreliable", "q_unreliable",
]  # fmt: skip
EFFECT_COLUMNS = [
    "item", "rank", "rank_low", "rank_high", "rank_without", "score", "score_without", "tier",
    "tier_without",
]  # fmt: skip


def crowd_model():
    """Fit the crowd."""
    return isplitlbi.ISplitLBI(**QUICK).fit(gather(crowd()))
