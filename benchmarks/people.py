"""Simulated studies in which it is known how every user votes: ordinary people, and others.

    python benchmarks/people.py

Ordinary users vote by the consensus, as far as their spread lets them: everybody may have a taste,
a sharpness, a side and a threshold a little of their own. The other kinds are those of `KINDS`. Run
as a script, this draws one study and prints how each kind votes.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isplitlbi import Comparisons

ORDINARY = "ordinary"
KINDS = {
    "reversed": "votes by the consensus upside down",
    "random": "gives each answer at the rate of the whole study, whatever is shown",
    "always-left": "always answers left",
    "80 % left": "answers left four times in five, whatever is shown",
    "always-tie": "always answers a tie",
    "never-tie": "always names a winner",
    "blunter": "votes by the consensus with slope 0.4",
    "sharper": "votes by the consensus with slope 2.5",
    "other taste": "votes by scores that have nothing to do with the consensus",
    "promotes one item": "votes for one poor item whenever it is shown, else as ordinary users do",
    "ring of five": "five users share one invented ranking, nearly without noise",
    "fatigue": "votes as ordinary users do, and at random from the middle on",
    "alternating": "left, right, left, right, and so on",
    "copies": "answers by the consensus without any noise",
}
# Many who pull together; they are no rows of a table of kinds.
TOGETHER = {
    "one other ranking": "all of them share one invented ranking, with the usual noise",
    "promotes the same item": "all of them vote for the same poor item",
}
RING_SIZE = 5
RING_NOISE = 0.2  # of the noise of ordinary users
SLOPES = {"reversed": -1.0, "blunter": 0.4, "sharper": 2.5}
OF_RANKINGS = ("reversed", "random", "other taste")  # a ranking of items can be all of these


@dataclass(frozen=True)
class Spread:
    """Standard deviations by which ordinary users differ: two in logits, two of logarithms."""

    taste: float = 0.0
    side: float = 0.0
    sharpness: float = 0.0
    threshold: float = 0.0

    @classmethod
    def of_all(cls, size: float) -> Spread:
        return cls(size, size, size, size)


class Study(NamedTuple):
    """Votes and the truth; kinds in the order of ``votes.users``."""

    votes: Comparisons
    kind: NDArray[np.str_]
    scores: dict[str, float]  # of the consensus
    promoted: str  # the item that is promoted, where all promote the same


class People(NamedTuple):
    """What every user votes by, before kinds that do not look at the items."""

    kind: NDArray[np.str_]
    scores: NDArray[np.float64]  # (n_users, n_items)
    side: NDArray[np.float64]
    threshold: NDArray[np.float64]
    noise: NDArray[np.float64]  # how much of it
    promoted: NDArray[np.intp]  # the item that a user promotes, -1 for none


class Shown(NamedTuple):
    """Who was shown which pair, and when: the first vote of every user has time 0."""

    user: NDArray[np.intp]
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    time: NDArray[np.intp]


def study(
    n_users: int, n_items: int, votes_per_user: int, seed: int, *, score_sd: float = 1.5,
    threshold: float | None = 0.5, spread: Spread | None = None, common_side: float = 0.0,
    kinds: Mapping[str, int] | None = None,
) -> Study:  # fmt: skip
    """Draw a study of random pairs; without a threshold, users must name a winner.

    `kinds` says how many users are of which kind; all others are ordinary.
    """
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, score_sd, n_items)
    kind = _dealt(rng, n_users, kinds or {}, {**KINDS, **TOGETHER})
    if threshold is None and np.isin(kind, ["always-tie", "never-tie"]).any():
        raise ValueError("always-tie and never-tie need a study with ties: give a threshold.")
    people = _people(rng, kind, scores, threshold or 0.0, spread or Spread(), common_side)
    shown = _pairs(rng, n_users, n_items, votes_per_user)
    outcome = _answers(rng, people, shown, has_ties=threshold is not None)
    return _study(people, shown, outcome, scores)


def rankings(
    n_users: int, n_items: int, rankings_per_user: int, seed: int, *, score_sd: float = 1.5,
    spread: Spread | None = None, kinds: Mapping[str, int] | None = None, size: int = 5,
) -> Study:  # fmt: skip
    """Draw rankings of a few random items; every pair of a ranking is a vote of its group.

    Items are ranked by score plus Gumbel noise, so that each pair by itself is Bradley-Terry; the
    pairs of one ranking depend on each other, since they share that noise.
    """
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, score_sd, n_items)
    kind = _dealt(rng, n_users, kinds or {}, OF_RANKINGS)
    people = _people(rng, kind, scores, 0.0, spread or Spread(), 0.0)
    people.scores[kind == "random"] = 0.0
    group = np.arange(n_users * rankings_per_user)
    user, order = np.divmod(group, rankings_per_user)
    items = np.array([rng.permutation(n_items)[:size] for _ in group])
    seen = people.scores[user[:, None], items] + rng.gumbel(size=items.shape)
    first, second = np.array(list(combinations(range(size), 2))).T
    n_pairs = len(first)
    left, right = items[:, first].ravel(), items[:, second].ravel()
    outcome = np.where(seen[:, first] > seen[:, second], 1, -1).ravel()
    turned = rng.random(left.size) < 0.5
    shown = Shown(
        np.repeat(user, n_pairs), np.where(turned, right, left), np.where(turned, left, right),
        np.repeat(order, n_pairs),
    )  # fmt: skip
    outcome = np.where(turned, -outcome, outcome)
    return _study(people, shown, outcome, scores, np.repeat(group, n_pairs))


def _dealt(
    rng: np.random.Generator, n_users: int, kinds: Mapping[str, int], known: Container[str]
) -> NDArray[np.str_]:
    """Deal kinds to users at random places."""
    unknown = [kind for kind in kinds if kind not in known]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no kind of users that this study can draw.")
    others = [kind for kind, count in kinds.items() for _ in range(count)]
    if len(others) > n_users:
        raise ValueError(f"{len(others)} users have a kind, but there are only {n_users} users.")
    kind = np.array(others + [ORDINARY] * (n_users - len(others)))
    return rng.permutation(kind)


def _people(
    rng: np.random.Generator, kind: NDArray[np.str_], scores: NDArray[np.float64],
    threshold: float, spread: Spread, common_side: float,
) -> People:  # fmt: skip
    """Draw what users vote by; whoever is not ordinary in one way is ordinary in all others."""
    n_users, n_items = len(kind), len(scores)
    slope = np.exp(spread.sharpness * rng.normal(size=n_users))
    for each, factor in SLOPES.items():
        slope[kind == each] *= factor
    own = slope[:, None] * scores + spread.taste * rng.normal(size=(n_users, n_items))
    score_sd = float(scores.std())
    dissenters = np.flatnonzero(kind == "other taste")
    own[dissenters] = rng.normal(0, score_sd, (len(dissenters), n_items))
    own[kind == "one other ranking"] = rng.normal(0, score_sd, n_items)
    members = np.flatnonzero(kind == "ring of five")
    for start in range(0, len(members), RING_SIZE):
        own[members[start : start + RING_SIZE]] = rng.normal(0, score_sd, n_items)

    side = common_side + spread.side * rng.normal(size=n_users)
    thresholds = threshold * np.exp(spread.threshold * rng.normal(size=n_users))
    thresholds[kind == "never-tie"] = 0.0
    noise = np.ones(n_users)
    noise[kind == "ring of five"] = RING_NOISE
    copies = kind == "copies"
    own[copies], side[copies], thresholds[copies], noise[copies] = scores, 0.0, threshold, 0.0

    poor = np.argsort(scores)[: max(n_items // 3, 1)]
    promoted = np.where(kind == "promotes one item", rng.choice(poor, n_users), -1)
    promoted[kind == "promotes the same item"] = rng.choice(poor)
    return People(kind, own, side, thresholds, noise, promoted)


def _pairs(rng: np.random.Generator, n_users: int, n_items: int, votes_per_user: int) -> Shown:
    user = np.repeat(np.arange(n_users), votes_per_user)
    left = rng.integers(n_items, size=user.size)
    right = (left + rng.integers(1, n_items, size=user.size)) % n_items
    return Shown(user, left, right, np.tile(np.arange(votes_per_user), n_users))


def _answers(
    rng: np.random.Generator, people: People, shown: Shown, *, has_ties: bool
) -> NDArray[np.int_]:
    """Let users answer: first by what they think of the items, then by what they do instead."""
    user, left, right, time = shown
    margin = people.scores[user, left] - people.scores[user, right] + people.side[user]
    perceived = margin + people.noise[user] * rng.logistic(size=user.size)
    threshold = people.threshold[user]
    outcome = (perceived > threshold).astype(int) - (perceived <= -threshold)

    kind = people.kind[user]
    answers = np.array([1, 0, -1] if has_ties else [1, -1])
    at_random = _at_random(rng, outcome[kind == ORDINARY], answers, user.size)
    others = rng.choice(answers[1:], user.size)
    middle = (np.bincount(user)[user] + 1) // 2
    instead = {
        "random": at_random,
        "always-left": 1,
        "80 % left": np.where(rng.random(user.size) < 0.8, 1, others),
        "always-tie": 0,
        "fatigue": np.where(time < middle, outcome, at_random),
        "alternating": np.where(time % 2 == 0, 1, -1),
    }
    for each, answer in instead.items():
        outcome = np.where(kind == each, answer, outcome)
    promoted = people.promoted[user]
    outcome = np.where(left == promoted, 1, outcome)
    return np.where(right == promoted, -1, outcome)


def _at_random(
    rng: np.random.Generator, ordinary: NDArray[np.int_], answers: NDArray[np.int_], size: int
) -> NDArray[np.int_]:
    """Draw answers at the rates of ordinary users, so that the rate of ties tells nothing."""
    rates = np.array([np.sum(ordinary == answer) + 1.0 for answer in answers])
    return rng.choice(answers, size, p=rates / rates.sum())


def _study(
    people: People, shown: Shown, outcome: NDArray[np.int_], scores: NDArray[np.float64],
    group: NDArray[np.intp] | None = None,
) -> Study:  # fmt: skip
    users, items = _ids("user", len(people.kind)), _ids("item", len(scores))
    votes = Comparisons.from_arrays(
        users[shown.user], items[shown.left], items[shown.right], outcome, group=group,
        time=shown.time,
    )  # fmt: skip
    together = people.promoted[people.kind == "promotes the same item"]
    promoted = str(items[together[0]]) if together.size else ""
    of_items = dict(zip(items.tolist(), scores.tolist(), strict=True))
    return Study(votes, people.kind, of_items, promoted)


def _ids(prefix: str, count: int) -> NDArray[np.str_]:
    """Return ids with enough zeros that they sort as their numbers do."""
    digits = len(str(count))
    return np.array([f"{prefix}-{number:0{digits}d}" for number in range(1, count + 1)])


def main() -> int:
    drawn = study(1500, 20, 60, 0, kinds=dict.fromkeys(KINDS, 50), spread=Spread.of_all(0.2))
    votes = drawn.votes
    scores = np.array([drawn.scores[item] for item in votes.items])
    agrees = np.sign(scores[votes.left] - scores[votes.right]) == votes.outcome
    print(f"{'kind':<19}{'left':>6}{'tie':>6}{'right':>6}{'agrees':>8}   of decided votes")
    for kind in (ORDINARY, *KINDS):
        of_kind = (drawn.kind == kind)[votes.user]
        outcome, agreeing = votes.outcome[of_kind], agrees[of_kind]
        left, tie, right = (float(np.mean(outcome == answer)) for answer in (1, 0, -1))
        decided = outcome != 0
        agreed = f"{agreeing[decided].mean():.2f}" if decided.any() else "-"
        print(f"{kind:<19}{left:>6.2f}{tie:>6.2f}{right:>6.2f}{agreed:>8}   {KINDS.get(kind, '')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
