"""Asking for the right votes: how many votes does it save, and can one stop when the plan says so?

    python benchmarks/planning.py --only ranking    simulated studies: votes until an order is right
    python benchmarks/planning.py --only replay     real studies, among votes that exist
    python benchmarks/planning.py --only person     one person's own ranking
    python benchmarks/planning.py --only stopping   when the plan is 90 % sure of the first place
    python benchmarks/planning.py --only thinning   what is lost where not all pairs are looked at
    python benchmarks/planning.py --only time       the next 100 pairs of small and large studies

ranking: 20 or 100 items, 10 or 100 people who are alike, of two camps, or a fifth of them careless.
All begin with the same balanced design of three votes per item. Then votes are asked for in
batches of a tenth of what is there: of random users on random pairs, of random users on the pairs
with the closest scores, or by ``model.next_pairs``. After each batch the model is fitted anew. The
order is compared with the mean of the people's true scores (without the careless), by Kendall's
tau; the figure is where the mean of all seeds crosses .9. The error of a ratio is that of drawing
the seeds again.
replay: the same, but votes are chosen among those of a study, after three for every item and one of
every user at random, and the order is compared with that of all votes.
person: what log-loss votes of some people have that nobody asked for, after 10, 20 and 40 votes of
each: on random pairs, on pairs with the closest own scores, and by ``aim="person"``.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
import scipy

from data import load
from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.estimators.asking import Aim, Wish, next_pairs
from isplitlbi.planning.design import first_design

TARGET, MOST_SHARE = 0.9, 0.7
SCORE_SD, TASTE_SD, CAMP_SD, THRESHOLD, CARELESS = 1.5, 0.3, 0.8, 0.5, 0.2
KINDS = ("alike", "clustered", "careless")
ROUNDS, GROWTH = 3, 0.1
MOST_VOTES = {20: 1_600, 100: 9_000}
BOOTSTRAPS = 1_000
PARTS = ("ranking", "replay", "person", "stopping", "thinning", "time")


class People:
    """A simulated study that answers whatever is asked."""

    def __init__(self, seed: int, n_items: int, n_users: int, kind: str) -> None:
        rng = np.random.default_rng([seed, n_items, n_users, KINDS.index(kind)])
        scores = rng.normal(0, SCORE_SD, n_items)
        own = rng.normal(0, TASTE_SD, (n_users, n_items))
        if kind == "clustered":
            camp = np.where(rng.random((n_users, 1)) < 0.5, 1, -1)
            own = own + camp * rng.normal(0, CAMP_SD, n_items)
        self.is_careless = np.zeros(n_users, dtype=bool)
        if kind == "careless":
            self.is_careless[rng.permutation(n_users)[: round(CARELESS * n_users)]] = True
        self.mean_of_people = scores  # whom the users are drawn from
        self.scores = np.where(self.is_careless[:, None], 0.0, scores + own)
        self.truth = self.scores[~self.is_careless].mean(axis=0)
        self.users = np.array([f"user-{number:03d}" for number in range(n_users)])
        self.items = np.array([f"item-{number:03d}" for number in range(n_items)])
        self.rng = rng

    def answer(self, user, left, right) -> Comparisons:
        """Vote, by numbers of users and items."""
        margin = self.scores[user, left] - self.scores[user, right]
        said = margin + self.rng.logistic(size=len(user))
        outcome = (said > THRESHOLD).astype(int) - (said < -THRESHOLD)
        return Comparisons.from_arrays(
            self.users[user], self.items[left], self.items[right], outcome
        )

    def begin(self) -> Comparisons:
        """Answer the first votes."""
        n_votes = ROUNDS * len(self.items)
        return self.answer(*first_design(len(self.items), len(self.users), n_votes))

    def tau(self, model: ISplitLBI) -> float:
        """Compare the order of a model with the truth."""
        place = np.searchsorted(self.items, model.items_)
        return float(scipy.stats.kendalltau(model.consensus_, self.truth[place])[0])


# --- whom and what to ask -----------------------------------------------------------------------


def at_random(people: People, model: ISplitLBI, n: int):
    n_items = len(people.items)
    left = people.rng.integers(n_items, size=n)
    right = (left + people.rng.integers(1, n_items, size=n)) % n_items
    return people.rng.integers(len(people.users), size=n), left, right


def closest(people: People, model: ISplitLBI, n: int):
    first, second = np.triu_indices(len(model.items_), 1)
    apart = np.abs(model.consensus_[first] - model.consensus_[second])
    pairs = np.resize(np.argsort(apart, kind="stable")[:n], n)
    place = np.searchsorted(people.items, model.items_)
    sides = people.rng.permuted(np.stack([place[first[pairs]], place[second[pairs]]]), axis=0)
    return people.rng.integers(len(people.users), size=n), *sides


def planned(people: People, model: ISplitLBI, n: int):
    found = model.next_pairs(n)
    return (
        np.searchsorted(people.users, np.array(found.users)),
        np.searchsorted(people.items, found.left),
        np.searchsorted(people.items, found.right),
    )


WAYS: dict[str, Callable] = {"random": at_random, "closest": closest, "planned": planned}


def follow(people: People, way: Callable, most: int) -> np.ndarray:
    """Ask and fit until there are so many votes; return the number of votes and tau, row by row."""
    model = ISplitLBI(with_tests=False).fit(people.begin())
    found = [(len(model.votes()), people.tau(model))]
    while found[-1][0] < most:
        n = max(len(people.items), round(GROWTH * found[-1][0]))
        new = people.answer(*way(people, model, n))
        model = ISplitLBI(with_tests=False).fit(Comparisons.joined(model.votes(), new))
        found.append((len(model.votes()), people.tau(model)))
        if way is planned and len(found) > 3 and min(tau for _, tau in found[-3:]) > 0.92:
            break
    return np.array(found)


def crossing(n_votes: np.ndarray, tau: np.ndarray) -> float:
    """Return where a curve first reaches the target; infinite where it does not."""
    (there,) = np.nonzero(tau >= TARGET)
    if not len(there):
        return np.inf
    at = there[0]
    if at == 0:
        return float(n_votes[0])
    return float(np.interp(TARGET, tau[at - 1 : at + 1], n_votes[at - 1 : at + 1]))


class Curves(NamedTuple):
    """Tau by number of votes, a row per seed; rows that ended early stay where they were."""

    n_votes: np.ndarray
    tau: np.ndarray

    @classmethod
    def of(cls, found: list[np.ndarray]) -> Curves:
        longest = max(found, key=len)
        filled = [
            np.append(each[:, 1], np.full(len(longest) - len(each), each[-3:, 1].mean()))
            for each in found
        ]
        return cls(longest[:, 0], np.array(filled))

    def needed(self, seeds=slice(None)) -> float:
        return crossing(self.n_votes, self.tau[seeds].mean(axis=0))


def shares(planned: Curves, other: Curves) -> tuple[float, float]:
    """Return the share of the votes that are needed, and its error from drawing seeds again."""
    rng, n_seeds = np.random.default_rng(0), len(planned.tau)
    drawn = []
    for _ in range(BOOTSTRAPS):
        seeds = rng.integers(n_seeds, size=n_seeds)
        one, two = planned.needed(seeds), other.needed(seeds)
        if np.isfinite(one) or np.isfinite(two):
            drawn.append(min(one, planned.n_votes[-1]) / min(two, other.n_votes[-1]))
    one, two = planned.needed(), other.needed()
    share = min(one, planned.n_votes[-1]) / min(two, other.n_votes[-1])
    return share, float(np.std(drawn)) if drawn else np.nan


def ask_for_ranking(first_seed: int, n_seeds: int, cell: str) -> bool:
    print(f"votes until tau is {TARGET}")
    print("items  people  kind        random   closest   planned   share of random    of closest")
    found = []
    for n_items, n_users, kind in (
        (n_items, n_users, kind) for n_items in (20, 100) for n_users in (10, 100) for kind in KINDS
    ):
        if cell not in f"{n_items} items {n_users} people {kind}":
            continue
        curves = {}
        for name, way in WAYS.items():
            curves[name] = Curves.of(
                [
                    follow(People(seed, n_items, n_users, kind), way, MOST_VOTES[n_items])
                    for seed in range(first_seed, first_seed + n_seeds)
                ]
            )
        found.append(told(f"{n_items:>5}{n_users:>8}  {kind:<10}", curves))
    return verdict(found)


def told(title: str, curves: dict[str, Curves]) -> tuple[float, float]:
    """Print a line; return the share of random's votes, and its error."""
    (share, error), (beside, its) = (
        shares(curves["planned"], curves[of]) for of in ("random", "closest")
    )
    cells = "".join(
        f"{each.needed():>10.0f}"
        if np.isfinite(each.needed())
        else f"{'>' + str(int(each.n_votes[-1])):>10}"
        for each in curves.values()
    )
    print(f"{title}{cells}{share:>12.2f} ({error:.2f}){beside:>8.2f} ({its:.2f})", flush=True)
    return share, error


def verdict(found: list[tuple[float, float]]) -> bool:
    """Say whether the votes that are saved are as many as they should be."""
    share, error = np.array(found).T
    middle, worse = float(np.median(share)), share > 1.0 + 2.0 * error
    met = middle <= MOST_SHARE and not worse.any()
    said = "met" if met else "NOT MET"
    print(f"median share {middle:.2f}, worse than random in {worse.sum()}: {said}")
    return met


# --- replays ------------------------------------------------------------------------------------

REPLAYED = {"age": {"sides": "unknown"}, "llmfao": {}, "wmt16_cze-eng": {}}


def replay(first_seed: int, n_seeds: int, cell: str) -> bool:
    print(f"votes until tau with the order of all votes is {TARGET}")
    print("study                       random   closest   planned   share of random    of closest")
    found = []
    for name, settings in REPLAYED.items():
        votes = load(name)
        if votes is None or cell not in name:
            continue
        whole = ISplitLBI(with_tests=False, **settings).fit(votes)
        order = dict(zip(whole.items_.tolist(), whole.consensus_, strict=True))
        curves = {
            way: Curves.of(
                [
                    follow_replay(votes, order, way, seed, settings)
                    for seed in range(first_seed, first_seed + n_seeds)
                ]
            )
            for way in WAYS
        }
        found.append(told(f"{name:<25}", curves))
    return verdict(found)


def follow_replay(votes: Comparisons, order: dict, way: str, seed: int, settings) -> np.ndarray:
    """Uncover votes of a study, those first that a way chooses."""
    rng = np.random.default_rng(seed)
    is_seen = np.zeros(len(votes), dtype=bool)
    order_of_votes = rng.permutation(len(votes))
    _, of_each_user = np.unique(votes.user[order_of_votes], return_index=True)
    is_seen[order_of_votes[of_each_user]] = True
    is_seen[order_of_votes[: ROUNDS * votes.n_items]] = True
    found = []
    while True:
        seen = votes.alone(is_seen)
        model = ISplitLBI(with_tests=False, **settings).fit(seen)
        truth = [order[item] for item in model.items_.tolist()]
        found.append((len(seen), float(scipy.stats.kendalltau(model.consensus_, truth)[0])))
        if (len(found) > 3 and min(tau for _, tau in found[-2:]) > 0.93) or is_seen.all():
            return np.array(found)
        left = np.flatnonzero(~is_seen)
        n = min(max(votes.n_items, round(GROWTH * len(seen))), len(left))
        is_seen[left[chosen(votes, left, model, way, n, rng)]] = True


def chosen(
    votes: Comparisons, left: np.ndarray, model: ISplitLBI, way: str, n: int, rng
) -> np.ndarray:
    """Return which of the votes that nobody has seen to uncover."""
    if way == "random":
        return rng.permutation(len(left))[:n]
    users, one, two = (
        votes.users[votes.user[left]],
        votes.items[votes.left[left]],
        votes.items[votes.right[left]],
    )
    is_known = (
        np.isin(users, model.users_) & np.isin(one, model.items_) & np.isin(two, model.items_)
    )
    rows = np.flatnonzero(is_known)
    n_known = min(n, len(rows))
    if way == "closest":
        place = [np.searchsorted(model.items_, each[rows]) for each in (one, two)]
        apart = np.abs(model.consensus_[place[0]] - model.consensus_[place[1]])
        rows = rows[np.lexsort([rng.random(len(rows)), apart])[:n_known]]
    elif n_known:
        among = list(zip(users[rows].tolist(), one[rows].tolist(), two[rows].tolist(), strict=True))
        rows = rows[model.next_pairs(n_known, among=among).row]
    others = np.flatnonzero(~is_known)[: n - n_known]
    return np.append(rows, others)


# --- one person ----------------------------------------------------------------------------------

ASKED = (0, 10, 20, 40)
N_PEOPLE, N_OTHERS, N_ITEMS, VOTES_EACH, N_TEST = 8, 30, 20, 15, 300
OWN_SD = 1.0


def ask_persons(first_seed: int, n_seeds: int) -> bool:
    """Ask some people for more votes, and predict other votes of theirs."""
    print("log-loss of a person's other votes, by how many votes they were asked for (s.e.)")
    print(f"{'way':<10}" + "".join(f"{asked:>16}" for asked in ASKED))
    found = {way: [] for way in ("random", "closest", "planned")}
    for seed in range(first_seed, first_seed + n_seeds):
        for way, losses in found.items():
            losses.append(_losses_of_persons(seed, way))
    table = {way: np.array(losses) for way, losses in found.items()}
    for way, losses in table.items():
        mean, error = losses.mean(axis=0), losses.std(axis=0, ddof=1) / np.sqrt(n_seeds)
        cells = (f"{m:>9.4f} ({e:.3f})" for m, e in zip(mean, error, strict=True))
        print(f"{way:<10}" + "".join(cells))
    apart = table["planned"] - table["random"]
    error = apart.std(axis=0, ddof=1) / np.sqrt(n_seeds)
    met = bool(np.all(apart.mean(axis=0) <= 2 * error))
    said = ", ".join(f"{m:+.4f} ({e:.4f})" for m, e in zip(apart.mean(axis=0), error, strict=True))
    print(f"planned minus random: {said}: {'not worse' if met else 'WORSE'}", flush=True)
    return met


def _losses_of_persons(seed: int, way: str) -> list[float]:
    people = People(seed, N_ITEMS, N_OTHERS, "alike")
    people.scores = people.scores + people.rng.normal(0, OWN_SD, people.scores.shape)
    votes = people.answer(*first_design(N_ITEMS, N_OTHERS, N_OTHERS * VOTES_EACH))
    who = np.repeat(np.arange(N_PEOPLE), N_TEST)
    left = people.rng.integers(N_ITEMS, size=len(who))
    right = (left + people.rng.integers(1, N_ITEMS, size=len(who))) % N_ITEMS
    test = people.answer(who, left, right)
    model = ISplitLBI(with_tests=False).fit(votes)
    losses = [log_loss(model, test)]
    for before, after in pairwise(ASKED):
        for _ in range((after - before) // 10):
            new = people.answer(*_asked_of_persons(people, model, way, 10))
            model = ISplitLBI(with_tests=False).fit(Comparisons.joined(model.votes(), new))
        losses.append(log_loss(model, test))
    return losses


def _asked_of_persons(people: People, model: ISplitLBI, way: str, n: int):
    users = people.users[:N_PEOPLE].tolist()
    if way == "planned":
        found = model.next_pairs(n * N_PEOPLE, users=users, aim="person", per_user=n)
        return (
            np.searchsorted(people.users, np.array(found.users)),
            np.searchsorted(people.items, found.left),
            np.searchsorted(people.items, found.right),
        )
    first, second = np.triu_indices(N_ITEMS, 1)
    rows = []
    for user in users:
        scores = model.scores(user)
        apart = np.abs(scores[first] - scores[second])
        order = np.argsort(apart) if way == "closest" else people.rng.permutation(len(first))
        rows.append(order[:n])
    pairs = np.concatenate(rows)
    sides = people.rng.permuted(np.stack([first[pairs], second[pairs]]), axis=0)
    return np.repeat(np.arange(N_PEOPLE), n), *sides


def log_loss(model: ISplitLBI, votes: Comparisons) -> float:
    chances = model.predict_log_proba(votes)
    return float(-chances[np.arange(len(votes)), votes.outcome + 1].mean())


# --- stopping ------------------------------------------------------------------------------------

SURE, LEAST_RIGHT, MOST_RIGHT = 0.9, 0.87, 0.95
STOPPING = {"alike": (10, 20), "clustered": (10, 20)}
MOST_OF_STOPPING = 500
STEP = 0.05  # of the votes: after larger batches, the plan would be surer than was asked for


def stop(first_seed: int, n_seeds: int, cell: str) -> bool:
    """Ask for the first place until the plan is sure of it; count how often it is right."""
    print(f"when the plan is {SURE:.0%} sure of the first place")
    met = True
    for kind, (n_items, n_users) in STOPPING.items():
        if cell not in kind:
            continue
        seeds = range(first_seed, first_seed + n_seeds)
        found = [_stopped(seed, n_items, n_users, kind) for seed in seeds]
        there = np.array([each for each in found if each is not None])
        right, votes, said = there.mean(axis=0)[0], np.median(there[:, 1]), there[:, 2].mean()
        error = np.sqrt(right * (1 - right) / len(there))
        ok = LEAST_RIGHT <= right <= MOST_RIGHT
        met &= ok
        print(
            f"{kind:<10} {n_items} items, {n_users} people: stopped in {len(there)} of "
            f"{len(found)} studies, right in {right:.3f} ({error:.3f}), the plan said {said:.3f}; "
            f"median of {votes:.0f} votes: {'met' if ok else 'NOT MET'}",
            flush=True,
        )
    return met


def _stopped(seed: int, n_items: int, n_users: int, kind: str) -> tuple[float, float, float] | None:
    """Return whether the first place was right, after how many votes, and how sure the plan was."""
    people = People(seed, n_items, n_users, kind)
    best = people.items[np.argmax(people.mean_of_people)]
    model = ISplitLBI(with_tests=False).fit(people.begin())
    while len(model.votes()) < MOST_OF_STOPPING:
        plan = model.plan(aim="top 1", target=SURE)
        if plan.is_reached:
            return float(plan.items[0] == best), len(model.votes()), plan.sure.first
        found = model.next_pairs(max(3, round(STEP * len(model.votes()))), aim="top 1")
        new = people.answer(
            np.searchsorted(people.users, np.array(found.users)),
            np.searchsorted(people.items, found.left),
            np.searchsorted(people.items, found.right),
        )
        model = ISplitLBI(with_tests=False).fit(Comparisons.joined(model.votes(), new))
    return None


# --- what thinning loses, and time ---------------------------------------------------------------


def thin() -> bool:
    """Choose among all pairs and among few of them; compare what the batches tell."""
    print("share of what a batch of 100 tells, where fewer pairs are looked at")
    met = True
    for n_items in (60, 100):
        model = ISplitLBI(with_tests=False).fit(People(7, n_items, 40, "alike").begin())
        aim, n_pairs = Aim.of("ranking"), n_items * (n_items - 1) // 2
        whole = next_pairs(model, Wish(100, aim, most_pairs=n_pairs)).gain.sum()
        for share in (0.5, 0.2, 0.1):
            few = Wish(100, aim, most_pairs=max(400, int(share * n_pairs)))
            part = next_pairs(model, few)
            lost = 1.0 - part.gain.sum() / whole
            met &= lost < 0.05
            print(f"{n_items} items, {share:.0%} of {n_pairs:,} pairs: {lost:.2%} lost", flush=True)
        part = next_pairs(model, Wish(100, aim, most_items=n_items // 2))
        rows = zip(part.users, part.left.tolist(), part.right.tolist(), strict=True)
        items = model.next_pairs(100, among=list(rows))  # what they tell of all items
        print(f"{n_items} items, half of the items: {1.0 - items.gain.sum() / whole:.2%} lost")
    return met


def time_it() -> bool:
    """Say how long the next 100 pairs take, and what memory."""
    print(
        " items  users   votes  seconds of next_pairs(100)  of these, of the certainty    peak MB"
    )
    for n_items, n_users in ((100, 100), (1_000, 1_000), (10_000, 1_000)):
        people = People(3, n_items, n_users, "alike")
        n_votes = max(20 * n_users, 4 * n_items)
        votes = people.answer(*first_design(n_items, n_users, n_votes))
        model = ISplitLBI(with_tests=False).fit(votes)
        begun = perf_counter()
        model.certainty()
        between = perf_counter()
        model.next_pairs(100)
        ended = perf_counter()
        status = Path("/proc/self/status").read_text()
        peak = int(status.split("VmHWM:")[1].split()[0]) // 1024
        print(
            f"{n_items:>6}{n_users:>7}{n_votes:>8}{ended - begun:>28.1f}{between - begun:>33.1f}"
            f"{peak:>10}",
            flush=True,
        )
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--cell", default="", help="only lines whose name has this text")
    asked = parser.parse_args()
    logging.getLogger("isplitlbi").setLevel(logging.ERROR)
    seeds = asked.first_seed, asked.seeds
    parts = {
        "ranking": lambda: ask_for_ranking(*seeds, asked.cell),
        "replay": lambda: replay(*seeds, asked.cell),
        "person": lambda: ask_persons(*seeds),
        "stopping": lambda: stop(*seeds, asked.cell),
        "thinning": thin,
        "time": time_it,
    }
    met = [part() for name, part in parts.items() if asked.only in (None, name)]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
