"""How many hostile votes, by how many accounts, move an item from the fifth place to the first?

    python benchmarks/attack.py [--only rankings remedies again lead] [--cell TEXT]
                                [--studies 10] [--first-seed 5000] [--votes 10 20 40 80 160 320 640]

Simulated studies: 100 honest people with tastes of their own give 40 votes each on random pairs of
20 items. Then 1, 5 or 25 hostile accounts are added, which is 1, 5 or 20 % of all, with 10 to 640
votes each. All of them attack for the item that is fifth in truth:

    promote      it wins against random items
    duel         it wins against the four items above it
    bury         the four items above it lose against random others
    half, fourth it wins in so many of the votes; all others are copies of votes of honest people
    sure half    the same, and all others are what the honest consensus expects, without noise
    asked        accounts are asked about random pairs: it wins where it is shown, and all other
                 answers are those of an honest person

rankings  the mean rank of the item by maximum likelihood as if all were one user (`MarginMLE`,
          plain Bradley-Terry with ties), by ours, and by ours fitted again without the unreliable
          users, and without all users on a list; then who is on the lists, and under which kind.
remedies  the same for limits on what an account can do, by maximum likelihood and by ours: repeats
          of a pair count as one vote together, no account weighs more than the median account does,
          accounts are left out that have more votes on one item than chance explains.
again     the same without all users on a list, once by the settings of the fit with them
          (`leaderboard_without`), once with all settings chosen anew.
lead      on how many accounts the first place rests, whoever has it: without so many, another item
          is first by maximum likelihood; and the share of these accounts that is hostile.

The last column is the number of hostile votes, of all accounts together, from which on the item is
first in half of the studies; it is interpolated between the numbers tried. No target: this is to
be known, not to be passed. Choices were settled on seeds 0 to 19.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import betabinom, norm

from isplitlbi import Comparisons, ISplitLBI, MarginMLE

N_HONEST, N_ITEMS, VOTES_EACH = 100, 20, 40
SCORE_SD, TASTE_SD, THRESHOLD = 1.0, 0.3, 0.5
ATTACKED = 4  # the place of the item, counted from 0
ACCOUNTS = (1, 5, 25)
DOSES = (10, 20, 40, 80, 160, 320, 640)  # votes of each account
DEVOTED = 0.01  # how improbable by chance, over all accounts and items together
SHOWN_DOSES = (40, 160, 640)  # of those whose kinds are told

Places = NDArray[np.intp]


class Cast(NamedTuple):
    """Votes: the user, both items, and who won."""

    user: Places
    left: Places
    right: Places
    outcome: Places

    def first_of_each(self, n_votes: int, n_accounts: int) -> Cast:
        """Return the first votes of every account."""
        return Cast(*(each.reshape(n_accounts, -1)[:, :n_votes].ravel() for each in self))


class Study:
    """Votes of honest people, and what hostile accounts can add to them."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        rng = np.random.default_rng(seed)
        # The same gaps in every study: the first item is better than the fifth by 1.2 logits.
        self.scores = SCORE_SD * norm.isf((np.arange(N_ITEMS) + 0.5) / N_ITEMS)
        own = self.scores + rng.normal(0, TASTE_SD, (N_HONEST, N_ITEMS))
        user = np.repeat(np.arange(N_HONEST), VOTES_EACH)
        left, right = random_pairs(rng, len(user))
        margin = own[user, left] - own[user, right]
        self.honest = Cast(user, left, right, answers(rng, margin))

    def attack(self, strategy: Strategy, n_accounts: int) -> Cast:
        """Draw as many hostile votes as are ever cast, account after account."""
        rng = np.random.default_rng([self.seed, list(STRATEGIES).index(strategy.name), n_accounts])
        user = np.repeat(N_HONEST + np.arange(n_accounts), max(DOSES))
        winner, loser, outcome = strategy.votes(self, rng, len(user))
        is_turned = rng.random(len(user)) < 0.5
        left, right = np.where(is_turned, [loser, winner], [winner, loser])
        return Cast(user, left, right, np.where(is_turned, -outcome, outcome))


def random_pairs(rng: np.random.Generator, n: int) -> tuple[Places, Places]:
    left = rng.integers(N_ITEMS, size=n)
    return left, (left + rng.integers(1, N_ITEMS, size=n)) % N_ITEMS


def answers(rng: np.random.Generator, margin: NDArray[np.float64]) -> Places:
    perceived = margin + rng.logistic(size=len(margin))
    return (perceived > THRESHOLD).astype(int) - (perceived <= -THRESHOLD)


# --- what hostile accounts do ---------------------------------------------------------------------


class Strategy(NamedTuple):
    """One way to attack: votes as winner, loser and outcome (-1 where the loser wins after all)."""

    name: str
    votes: Callable[[Study, np.random.Generator, int], tuple[Places, Places, Places]]


def promote(study: Study, rng: np.random.Generator, n: int):
    loser = (ATTACKED + rng.integers(1, N_ITEMS, size=n)) % N_ITEMS
    return np.full(n, ATTACKED), loser, np.ones(n, dtype=int)


def duel(study: Study, rng: np.random.Generator, n: int):
    return np.full(n, ATTACKED), rng.integers(ATTACKED, size=n), np.ones(n, dtype=int)


def bury(study: Study, rng: np.random.Generator, n: int):
    winner = rng.integers(ATTACKED, N_ITEMS, size=n)
    return winner, rng.integers(ATTACKED, size=n), np.ones(n, dtype=int)


def copied(study: Study, rng: np.random.Generator, n: int):
    honest = study.honest
    elsewhere = np.flatnonzero((honest.left != ATTACKED) & (honest.right != ATTACKED))
    rows = rng.choice(elsewhere, n)
    return honest.left[rows], honest.right[rows], honest.outcome[rows]


def expected(study: Study, rng: np.random.Generator, n: int):
    left, right = random_pairs(rng, n)
    margin = study.scores[left] - study.scores[right]
    return left, right, np.where(np.abs(margin) <= THRESHOLD, 0, np.sign(margin)).astype(int)


def promote_in(share: float, otherwise: Callable) -> Callable:
    """Promote in a share of the votes, and do something else in the others."""

    def votes(study: Study, rng: np.random.Generator, n: int):
        is_hostile = rng.random(n) < share
        both = zip(promote(study, rng, n), otherwise(study, rng, n), strict=True)
        return tuple(np.where(is_hostile, hostile, other) for hostile, other in both)

    return votes


def asked_for(study: Study, rng: np.random.Generator, n: int):
    left, right = random_pairs(rng, n)
    outcome = answers(rng, study.scores[left] - study.scores[right])
    return left, right, np.select([left == ATTACKED, right == ATTACKED], [1, -1], outcome)


STRATEGIES = {
    name: Strategy(name, votes)
    for name, votes in {
        "promote": promote,
        "duel": duel,
        "bury": bury,
        "half": promote_in(1 / 2, copied),
        "fourth": promote_in(1 / 4, copied),
        "sure half": promote_in(1 / 2, expected),
        "asked": asked_for,
    }.items()
}


# --- rankings -------------------------------------------------------------------------------------


USERS = np.array([f"user-{number:03d}" for number in range(N_HONEST + max(ACCOUNTS))])
ITEMS = np.array([f"item-{number:02d}" for number in range(N_ITEMS)])


def together(*parts: Cast) -> Comparisons:
    user, left, right, outcome = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Comparisons.from_arrays(USERS[user], ITEMS[left], ITEMS[right], outcome)


def rank_of_attacked(model: MarginMLE | ISplitLBI) -> int:
    at = model.items_.tolist().index(ITEMS[ATTACKED])
    return 1 + int(np.sum(model.consensus_ > model.consensus_[at]))


def ours(votes: Comparisons) -> ISplitLBI:
    return ISplitLBI(with_tests=False, n_jobs=1).fit(votes)


def ranked(votes: Comparisons) -> tuple[dict[str, float], list[str]]:
    """Return ranks of the item, who is on the lists as shares, and the kinds of hostile users."""
    model = ISplitLBI(n_jobs=1).fit(votes)
    found = {
        "one ranking": rank_of_attacked(MarginMLE().fit(votes)),
        "ours": rank_of_attacked(model),
    }
    for name, users in (
        ("no unreliable", model.unreliable_users_),
        ("no abnormal", model.abnormal_users_),
    ):
        found[name] = rank_of_attacked(ours(votes.without(users=users))) if users else found["ours"]
    is_hostile = model.users_ >= USERS[N_HONEST]
    tests = model.abnormality_
    for name, listed in (("unreliable", tests.on("unreliable")), ("on a list", tests.flagged)):
        for whom, those in (("hostile", is_hostile), ("honest", ~is_hostile)):
            found[f"{whom} {name}"] = float(listed[those].mean()) if those.any() else np.nan
    return found, [tests.kind[user] for user in np.flatnonzero(is_hostile & tests.flagged)]


def repeats_as_one(votes: Comparisons) -> Comparisons:
    """Weigh votes such that all those of an account on one pair are one vote together."""
    first, second = np.minimum(votes.left, votes.right), np.maximum(votes.left, votes.right)
    pair = (votes.user.astype(np.int64) * votes.n_items + first) * votes.n_items + second
    _, place, count = np.unique(pair, return_inverse=True, return_counts=True)
    return votes.changed(weight=1.0 / count[place])


def limited(votes: Comparisons) -> Comparisons:
    """Weigh votes such that no account weighs more than the median account does."""
    weight = np.ones(len(votes)) if votes.weight is None else votes.weight
    of_user = np.bincount(votes.user, weight, votes.n_users)
    return votes.changed(weight=weight * np.minimum(1.0, np.median(of_user) / of_user)[votes.user])


def without_devoted(votes: Comparisons) -> Comparisons:
    """Leave out accounts with more votes on one item than chance explains, whoever wins there.

    An item has the share of votes that it has with the median account. How much further apart
    accounts are than chance alone would put them, the middle one of them tells.
    """
    n_votes = np.bincount(votes.user, minlength=votes.n_users)[:, None]
    shown = np.zeros((votes.n_users, votes.n_items))
    for side in (votes.left, votes.right):
        np.add.at(shown, (votes.user, side), 1)
    has_many = n_votes[:, 0] >= np.median(n_votes)
    usual = np.maximum(np.median((shown / n_votes)[has_many], axis=0), 0.5 / votes.n_items)
    surprise = (shown - n_votes * usual) ** 2 / (n_votes * usual * (1 - usual))
    beyond_chance = max(float(np.median(surprise.mean(axis=1))) - 1.0, 1e-6)
    certainty = max((float(np.median(n_votes)) - 1.0) / beyond_chance - 1.0, 0.1)
    p_value = betabinom.sf(shown - 1, n_votes, usual * certainty, (1 - usual) * certainty)
    is_devoted = p_value.min(axis=1) * p_value.size < DEVOTED
    return votes.without(users=votes.users[is_devoted].tolist())


REMEDIES: dict[str, Callable[[Comparisons], Comparisons]] = {
    "as it is": lambda votes: votes,
    "repeats as one": repeats_as_one,
    "at most median": limited,
    "no devoted": without_devoted,
}


def remedied(votes: Comparisons) -> tuple[dict[str, float], list[str]]:
    """Return ranks of the item where what an account can do is limited."""
    found: dict[str, float] = {}
    for name, remedy in REMEDIES.items():
        weighed = remedy(votes)
        found[f"one, {name}"] = rank_of_attacked(MarginMLE().fit(weighed))
        found[f"ours, {name}"] = rank_of_attacked(ours(weighed))
    return found, []


def fitted_again(votes: Comparisons) -> tuple[dict[str, float], list[str]]:
    """Return ranks of the item among those who are on no list, in both ways to find them."""
    model = ISplitLBI(n_jobs=1).fit(votes)
    users = model.abnormal_users_
    if not users:
        return dict.fromkeys(("settings kept", "settings anew"), rank_of_attacked(model)), []
    board = model.leaderboard_without(users)
    kept = 1 + int(np.sum(board.score > board.score[board.items == ITEMS[ATTACKED]]))
    anew = rank_of_attacked(ours(votes.without(users=users)))
    return {"settings kept": kept, "settings anew": anew}, []


def lead(votes: Comparisons) -> tuple[dict[str, float], list[str]]:
    """Return how few accounts the first place rests on, and the share of these that is hostile.

    Accounts are left out in the order of what each adds to the lead, by one step of Newton's method
    without that account. Where another item comes first is found by fits without so many.
    """
    model = MarginMLE().fit(votes)
    order = np.argsort(-_added_to_lead(votes, model))
    first = model.items_[model.consensus_.argmax()]
    enough, too_few = votes.n_users - 1, 0
    tried = 1
    while enough - too_few > 1:
        others = MarginMLE().fit(votes.alone(~np.isin(votes.user, order[:tried])))
        if others.items_[others.consensus_.argmax()] == first:
            too_few = tried
        else:
            enough = tried
        tried = min(2 * tried, enough) if enough == votes.n_users - 1 else (too_few + enough) // 2
    is_hostile = model.users_[order[:enough]] >= USERS[N_HONEST]
    return {"accounts it rests on": enough, "hostile among them": float(is_hostile.mean())}, []


def _added_to_lead(votes: Comparisons, model: MarginMLE) -> NDArray[np.float64]:
    """Return what every account adds to the distance of the first item to the second."""
    scores, threshold = model.consensus_, model.threshold_
    margin = scores[votes.left] - scores[votes.right]
    below, above = expit(margin - threshold), expit(margin + threshold)
    is_left, is_right = votes.outcome > 0, votes.outcome < 0
    slope = np.where(is_right, 0.0, 1.0 - below) - np.where(is_left, 0.0, above)
    bend = np.where(is_right, 0.0, below * (1.0 - below))
    bend += np.where(is_left, 0.0, above * (1.0 - above))
    sides = np.zeros((len(votes), votes.n_items))
    sides[np.arange(len(votes)), votes.left] = 1.0
    sides[np.arange(len(votes)), votes.right] = -1.0
    second, first = np.argsort(scores)[-2:]
    apart = np.zeros(votes.n_items)
    apart[[first, second]] = 1.0, -1.0
    whole = sides.T @ (bend[:, None] * sides)
    added = np.zeros(votes.n_users)
    for user in range(votes.n_users):
        mine = votes.user == user
        of_user = sides[mine].T @ (bend[mine, None] * sides[mine])
        added[user] = apart @ np.linalg.pinv(whole - of_user) @ (slope[mine] @ sides[mine])
    return added


SECTIONS: dict[str, Callable[[Comparisons], tuple[dict[str, float], list[str]]]] = {
    "rankings": ranked,
    "remedies": remedied,
    "again": fitted_again,
    "lead": lead,
}


# --- studies, and what is printed -----------------------------------------------------------------


def first_in_half(is_first: NDArray[np.bool_], n_accounts: int, doses: Sequence[int]) -> str:
    """Return from how many hostile votes on the item is first in half of the studies."""
    shares = is_first.mean(axis=0)
    (there,) = np.nonzero(shares >= 0.5)
    if not len(there):
        return "-"
    at = there[0]
    places = np.log((1, *doses))  # no votes at all are where a single one would be
    if at == 0:
        return "0"
    dose = np.exp(np.interp(0.5, shares[at - 1 : at + 1], places[at - 1 : at + 1]))
    return f"{n_accounts * dose:.0f}"


@cache
def without_attack(section: str, seed: int) -> dict[str, float]:
    return SECTIONS[section](together(Study(seed).honest))[0]


def one_block(
    section: str, strategy: Strategy, n_accounts: int, seeds: Iterable[int], doses: Sequence[int]
) -> None:
    """Attack the studies in one way, and print how the item fares as the votes grow in number."""
    rows: list[list[dict[str, float]]] = []
    kinds = {dose: Counter[str]() for dose in doses}
    for seed in seeds:
        study = Study(seed)
        attack = study.attack(strategy, n_accounts)
        rows.append([without_attack(section, seed)])
        for dose in doses:
            votes = together(study.honest, attack.first_of_each(dose, n_accounts))
            found, named = SECTIONS[section](votes)
            rows[-1].append(found)
            kinds[dose].update(named)
    title = f"{strategy.name:<10}{n_accounts:>3}"
    for name in rows[0][0]:
        values = np.array([[found[name] for found in row] for row in rows])
        is_share = name.startswith("ho")
        cells = "".join(
            f"{'-':>6}" if np.isnan(mean) else f"{mean:>6.{2 if is_share else 1}f}"
            for mean in values.mean(axis=0)
        )
        is_rank = not is_share and section != "lead"
        half = "" if not is_rank else f"{first_in_half(values == 1, n_accounts, doses):>8}"
        print(f"{title}  {name:<21}{cells}{half}", flush=True)
    for dose in SHOWN_DOSES:
        if kinds.get(dose):
            said = ", ".join(f"{kind} {count}" for kind, count in kinds[dose].most_common())
            print(f"{title}  kinds with {dose} votes: {said}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--cell", default="", help="attacks by how they begin, such as half 25")
    parser.add_argument("--studies", type=int, default=10, help="of each line")
    parser.add_argument("--first-seed", type=int, default=5000)
    parser.add_argument("--votes", type=int, nargs="+", choices=DOSES, default=DOSES)
    asked = parser.parse_args()
    if asked.studies < 1:
        parser.error("--studies must be at least 1.")
    doses = sorted(set(asked.votes))
    seeds = range(asked.first_seed, asked.first_seed + asked.studies)
    cells = [
        (strategy, n_accounts)
        for strategy in STRATEGIES.values()
        for n_accounts in ACCOUNTS
        if f"{strategy.name} {n_accounts}".startswith(asked.cell)
    ]
    if not cells:
        print("nothing was measured: there is no attack of that name.")
        return 1
    for section in asked.only:
        what = "accounts" if section == "lead" else "rank of the item"
        print(f"{section}: mean {what}, by votes of each of the hostile accounts")
        print(
            f"{'attack':<10} by  {'':<21}"
            + "".join(f"{dose:>6}" for dose in (0, *doses))
            + "   first"
        )
        for strategy, n_accounts in cells:
            one_block(section, strategy, n_accounts, seeds, doses)
    return 0


if __name__ == "__main__":
    sys.exit(main())
