"""Small studies of every sort, with every setting: do all fits end soon, finite, without a warning?

    python benchmarks/fuzz.py [--studies 2000] [--first-seed 0] [--most-votes 300] [--only-fits]

A seed is a study of 1 to 300 votes and the settings it is fitted with. Votes are at random, by an
order without exception (separated), all ties, without any tie, ties between neighbours only, or
everything said by one user; by an anonymous crowd, with weights, in groups, with features, or not.
Estimators: `ISplitLBI` and, now and then, `LBI`, `MarginMLE` and `PerUser`. Settings: link, terms,
ties, sides, rule, scoring, estimate, solver, folds, nu and kappa, and whether users are tested.

Then one more thing is asked of every model: its leaderboard and all pairs, every user's card, parts
of the deviations, votes to ask for next, a plan, groups, what leaving users out changes, what
changed since a fit of half the votes, people who are placed, or an update.

Refusals in one of our own sentences are counted. Everything else is a failure: another exception, a
warning of a library, a number that is not finite, probabilities that do not add up, or a fit that
takes more than 5 seconds of the processor once the loops are compiled. The explicit solver, whose
steps are as short as the study is uneven, is tried on few votes and a short path, and its time does
not count.

The exit code is 1 where anything failed; a line names the seed.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from isplitlbi import LBI, Comparisons, ISplitLBI, MarginMLE, PerUser, compare
from isplitlbi.errors import ISplitLBIError, PathFailed
from isplitlbi.output.tables import as_polars
from isplitlbi.selection import ESTIMATES, PUBLISHED_SCORINGS, RULES, SCORINGS

MOST_SECONDS = 5.0
MOST_VOTES, MOST_ITEMS, MOST_USERS = 300, 15, 11
KINDS = ("random", "separated", "all ties", "no ties", "ties of neighbours", "one user")
TERMS = ("all", "all", "paper", ["taste", "threshold"], ["taste", "sharpness"], ["taste", "side"])
ESTIMATORS = {"ISplitLBI": ISplitLBI, "LBI": LBI, "MarginMLE": MarginMLE, "PerUser": PerUser}
SHARES = (0.85, 0.05, 0.05, 0.05)
SHORT_PATH = {"time": 0.05, "times": [0.01, 0.05], "nu": 1.0, "kappa": 5}  # for the explicit solver


class Study(NamedTuple):
    """What a seed stands for."""

    kind: str
    votes: Comparisons
    estimator: str
    settings: dict[str, Any]
    question: str

    @property
    def counts_time(self) -> bool:
        """Whether the fit must end soon."""
        return "solver" not in self.settings


def drawn(seed: int, most_votes: int = MOST_VOTES) -> Study:
    """Draw a study, the settings of its fit, and what is asked of the model."""
    rng = np.random.default_rng(seed)
    kind, estimator = str(rng.choice(KINDS)), str(rng.choice(list(ESTIMATORS), p=SHARES))
    settings = _settings(estimator, seed, rng)
    few = min(30, most_votes)
    votes = _votes(kind, few if "solver" in settings or rng.random() < 0.5 else most_votes, rng)
    questions = [name for name in QUESTIONS if estimator in ESTIMATORS_ASKED.get(name, ESTIMATORS)]
    return Study(kind, votes, estimator, settings, str(rng.choice(questions)))


def _votes(kind: str, most: int, rng: np.random.Generator) -> Comparisons:
    n_votes = int(rng.integers(1, most + 1))
    n_items, n_users = int(rng.integers(2, MOST_ITEMS + 1)), int(rng.integers(1, MOST_USERS + 1))
    left = rng.integers(n_items, size=n_votes)
    right = (left + rng.integers(1, n_items, size=n_votes)) % n_items
    user = rng.integers(1 if kind == "one user" else n_users, size=n_votes)
    by_order = np.where(left < right, 1, -1)
    outcome = {
        "separated": by_order,
        "all ties": np.zeros(n_votes, np.int64),
        "no ties": rng.choice([-1, 1], n_votes),
        "ties of neighbours": np.where(np.abs(left - right) == 1, 0, by_order),
    }.get(kind, rng.integers(-1, 2, n_votes))
    more: dict[str, Any] = {}
    if rng.random() < 0.2:
        more["weight"] = rng.choice([0.1, 1.0, 3.0, 40.0], n_votes)
    if rng.random() < 0.2:
        more["group"] = rng.integers(max(n_votes // 3, 1), size=n_votes)
    if rng.random() < 0.2:
        more["features"] = {"length": rng.normal(scale=rng.choice([1e-3, 1.0, 1e4]), size=n_votes)}
    is_crowd = rng.random() < 0.1
    return Comparisons.from_arrays(None if is_crowd else user, left, right, outcome, **more)


def _settings(estimator: str, seed: int, rng: np.random.Generator) -> dict[str, Any]:
    rule = str(rng.choice(RULES))
    scorings = (*SCORINGS, *PUBLISHED_SCORINGS) if rule == "threshold" else SCORINGS
    settings: dict[str, Any] = {
        "link": str(rng.choice(["logistic", "probit", "uniform"], p=[0.4, 0.4, 0.2])),
        "terms": TERMS[rng.integers(len(TERMS))],
        "rule": rule,
        "scoring": str(rng.choice(scorings)),
        "estimate": str(rng.choice(ESTIMATES)),
        "ties": str(rng.choice(["auto", "allowed", "none"], p=[0.6, 0.3, 0.1])),
        "sides": str(rng.choice(["known", "unknown"])),
        "with_tests": bool(rng.random() < 0.7),
        "random_state": seed,
    }
    if rng.random() < 0.3:
        settings["n_folds"] = int(rng.integers(2, 11))
    if rng.random() < 0.2:
        settings["nu"] = float(rng.choice([1e-4, 0.03, 0.3, 10.0]))
    if rng.random() < 0.2:
        settings["kappa"] = float(rng.choice([1.0, 30.0, 300.0]))
    if rng.random() < 0.05:
        settings |= {"solver": "explicit", **SHORT_PATH}
    known = ESTIMATORS[estimator]().get_params()
    return {name: value for name, value in settings.items() if name in known}


# --- what is asked of a model ----------------------------------------------------------------


def _of_items(model: Any, _votes: Comparisons) -> list[Any]:
    return [model.leaderboard(), model.head_to_head(), model.ranking(), *model.habit_intervals()]


def _of_users(model: Any, _votes: Comparisons) -> list[Any]:
    cards = [model.user_card(user) for user in model.users_[:3]]
    numbers = [each for card in cards for each in (card.slope, card.side, card.taste_range)]
    rankings = [model.ranking(user) for user in model.users_[:3]]
    own = [model.own_scores(user) for user in model.users_[:3]]
    return [*numbers, *rankings, *own, *(model.telling_votes(user) for user in model.users_[:3])]


def _since_half(model: Any, votes: Comparisons) -> list[Any]:
    before = type(model)(**model.get_params()).fit(votes.subset(np.arange(len(votes)) % 2 == 0))
    return [compare(before, model)]


QUESTIONS: dict[str, Callable[[Any, Comparisons], list[Any]]] = {
    "the items": _of_items,
    "the users": _of_users,
    "the parts": lambda model, _: [model.decompose()],
    "what to ask": lambda model, _: [model.next_pairs(3), model.next_pairs(2, aim="person")],
    "a plan": lambda model, _: [model.plan(), model.plan("top 1")],
    "groups": lambda model, _: [model.groups(most=3)],
    "without users": lambda model, _: [
        model.effect_of_leaving_out(),
        model.leaderboard_without(model.users_[:1]),
    ],
    "since half": _since_half,
    "people placed": lambda model, votes: [model.place(votes), model.place(votes.subset([0]))],
    "an update": lambda model, votes: _of_items(model.update(votes.subset([0])), votes),
}
# What cannot be asked of every estimator.
ESTIMATORS_ASKED = dict.fromkeys(("people placed", "an update"), ("ISplitLBI", "LBI"))


def numbers_in(result: Any) -> list[Any]:
    """Return all numbers of a result: those of its table, or its own."""
    if isinstance(result, int | float | np.number | np.ndarray):
        return [result]
    if isinstance(result, tuple | list):
        return [number for each in result for number in numbers_in(each)]
    if result is None:
        return []
    table = as_polars(result)
    return [
        table[name].drop_nulls().to_numpy() for name in table.select(pl.col(pl.Float64)).columns
    ]


# --- one study -------------------------------------------------------------------------------


class Trial(NamedTuple):
    """What came of a study, and how long the fit took."""

    result: str
    seconds: float

    @property
    def has_failed(self) -> bool:
        """Whether something came of it that must not."""
        return not self.result.startswith(("fitted", "refused"))


def trial(study: Study, with_question: bool = True) -> Trial:
    """Fit a study, and ask the model something."""
    begun, seconds = process_time(), None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = ESTIMATORS[study.estimator](**study.settings).fit(study.votes)
            seconds = process_time() - begun
            problem = wrong_numbers(model, study.votes)
            if with_question and not problem:
                found = numbers_in(QUESTIONS[study.question](model, study.votes))
                if not all(np.isfinite(each).all() for each in found):
                    problem = f"not finite: {study.question}"
        result = problem or "fitted"
    except PathFailed as error:
        result = f"the path failed: {error}"
    except ISplitLBIError as error:
        where = "" if seconds is None else f" {study.question}"
        said = re.sub(r"\d[\d,]*( [a-z]+?)s?\b", r"..\1s", str(error))
        result = f"refused{where}: {said[:80]}"
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
        if seconds is not None:
            result += f" ({study.question})"
    return Trial(result, process_time() - begun if seconds is None else seconds)


def wrong_numbers(model: Any, votes: Comparisons) -> str:
    """Say which numbers of a model cannot be; nothing where all can."""
    numbers = {
        "scores": model.consensus_,
        "deviations": model.parameters_.deviation,
        "intervals": np.concatenate(model.consensus_intervals()),
        "habits": model.habits_,
        "sides": model.side_,
        "thresholds": 0.0 if model.threshold_ is None else model.threshold_,
    }
    if hasattr(model, "abnormality_"):
        tests = model.abnormality_
        is_tested = tests.n_votes > 0
        numbers |= {"p-values": tests.p_value[is_tested], "quality": tests.quality[is_tested]}
    broken = [name for name, values in numbers.items() if not np.isfinite(values).all()]
    chances = model.predict_proba(votes)
    if not (np.isfinite(chances).all() and np.allclose(chances.sum(axis=1), 1.0)):
        broken.append("probabilities")
    return f"not finite: {', '.join(broken)}" if broken else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--most-votes", type=int, default=MOST_VOTES, help="of a study")
    parser.add_argument("--only-fits", action="store_true", help="ask nothing of the models")
    asked = parser.parse_args()
    if min(asked.studies, asked.most_votes) < 1:
        parser.error("--studies and --most-votes must be at least 1.")
    logging.getLogger("isplitlbi").setLevel(logging.ERROR)
    found: Counter[str] = Counter()
    slowest, n_failed, begun = (0.0, 0), 0, process_time()
    for seed in range(asked.first_seed, asked.first_seed + asked.studies):
        study = drawn(seed, asked.most_votes)
        one = trial(study, not asked.only_fits)
        if one.seconds > MOST_SECONDS:  # the first compiles the loops
            one = trial(study, not asked.only_fits)
        is_slow = one.seconds > MOST_SECONDS and study.counts_time
        if one.has_failed or is_slow:
            n_failed += 1
            print(f"seed {seed}: {one.result}, {one.seconds:.1f} s; {study.kind}, "
                  f"{len(study.votes)} votes, {study.estimator} {study.settings}, "
                  f"{study.question}", flush=True)  # fmt: skip
        if study.counts_time:
            slowest = max(slowest, (one.seconds, seed))
        found["failed" if one.has_failed or is_slow else one.result] += 1
        if sys.stderr.isatty():
            print(f"\r{seed + 1 - asked.first_seed} of {asked.studies}", end="", file=sys.stderr)
    for result, count in found.most_common():
        print(f"{count:>6}  {result}")
    print(f"fuzz: {asked.studies} studies, {process_time() - begun:.0f} s, slowest fit "
          f"{slowest[0]:.1f} s (seed {slowest[1]}); {n_failed} failed")  # fmt: skip
    return int(n_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
