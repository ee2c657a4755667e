"""The paper's protocol on any votes: repeated splits, every method on the same ones."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, get_args

import numpy as np
from scipy.stats import t as student

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.splits import split_within_user
from isplitlbi.data.vocabulary import counted
from isplitlbi.diagnostics.findings import Finding
from isplitlbi.diagnostics.individual import verdict_on
from isplitlbi.errors import InvalidSetting, InvalidVotes
from isplitlbi.estimators.alpha_cut import LEARNERS, AlphaCut
from isplitlbi.estimators.inputs import check_choice, check_seed
from isplitlbi.estimators.isplitlbi import ISplitLBI, Sides, Ties
from isplitlbi.estimators.lbi import LBI
from isplitlbi.estimators.margin_mle import MarginMLE
from isplitlbi.estimators.per_user import PerUser
from isplitlbi.estimators.voting import VoteEstimator
from isplitlbi.fitting import HELD_OUT
from isplitlbi.lazy import pl
from isplitlbi.model.answering import NEVER
from isplitlbi.model.metrics import (
    confusion,
    log_loss,
    macro_f1,
    micro_f1,
    paper_f1,
    precision,
    recall,
    reliability,
)
from isplitlbi.model.terms import Terms
from isplitlbi.selection import ESTIMATES, Estimate, Rule, Scoring, check_scoring
from isplitlbi.typing import Floats

__all__ = [
    "DEFAULT_METHODS",
    "FAMILIES",
    "METHODS",
    "Evaluation",
    "each_fit_is_silent",
    "evaluate",
    "methods_named",
]


SIDES = ("left", "tie", "right")
METRICS = (
    "micro_f1",
    "macro_f1",
    "log_loss",
    *(f"{what}_{side}" for what in ("precision", "recall") for side in SIDES),
    "paper_micro_f1",
    "paper_macro_f1",
    "seconds",
)
STATISTICS = ("min", "median", "max", "std")


class MethodSettings(NamedTuple):
    """What a method is told about the evaluation."""

    rule: Rule
    scoring: Scoring
    n_jobs: int | None
    seed: int
    terms: str | Sequence[str] = "all"
    ties: Ties = "auto"
    sides: Sides = "known"
    estimate: Estimate = "dense"

    def checked(self) -> MethodSettings:
        """Refuse words that are none."""
        check_choice("rule", self.rule)
        check_scoring(self.scoring, self.rule)
        check_choice("ties", self.ties, get_args(Ties))
        check_choice("sides", self.sides, get_args(Sides))
        check_choice("estimate", self.estimate, ESTIMATES)
        Terms.named(self.terms)
        return self

    def as_dict(self) -> dict[str, Any]:
        """Return all that decides a result, in plain values."""
        terms = self.terms if isinstance(self.terms, str) else list(self.terms)
        values = self._replace(terms=terms)._asdict()
        return {name: value for name, value in values.items() if name != "n_jobs"}

    def knowing(self, votes: Comparisons) -> MethodSettings:
        """Say whether there are ties: a part may have none, and must know of those elsewhere."""
        has_ties = bool(np.any(votes.outcome == 0))
        return (
            self._replace(ties="allowed" if has_ties else "none") if self.ties == "auto" else self
        )


# Among these LBI, and iSplit LBI with the paper's terms, choose by their inner folds, as the others
# choose their penalties. With other terms, iSplit LBI finds from the votes how large they are.
NUS, KAPPAS = (0.1, 0.3, 1.0), (10.0, 30.0, 100.0)

LINKS = {"uniform": "uniform", "bt": "logistic", "tm": "probit"}


def _margin_mle(link: str, told: MethodSettings) -> MarginMLE:
    return MarginMLE(link, rule=told.rule)


def _isplitlbi(told: MethodSettings) -> ISplitLBI:
    choices: dict[str, Any] = {"nu": NUS, "kappa": KAPPAS} if told.terms == "paper" else {}
    return ISplitLBI(
        **choices, terms=told.terms, ties=told.ties, sides=told.sides, rule=told.rule,
        estimate=told.estimate, scoring=told.scoring, n_jobs=told.n_jobs, random_state=told.seed,
        with_tests=False,
    )  # fmt: skip


def _lbi(told: MethodSettings) -> LBI:
    return LBI(
        kappa=KAPPAS, rule=told.rule, estimate=told.estimate, scoring=told.scoring,
        n_jobs=told.n_jobs, random_state=told.seed, with_tests=False,
    )  # fmt: skip


def _alpha_cut(learner: str, told: MethodSettings) -> AlphaCut:
    return AlphaCut(learner, n_jobs=told.n_jobs, random_state=told.seed)


METHODS: dict[str, Callable[[MethodSettings], VoteEstimator]] = {
    "isplitlbi": _isplitlbi,
    "lbi": _lbi,
    "per-user": lambda told: PerUser(rule=told.rule, random_state=told.seed),
    **{f"margin-mle-{name}": partial(_margin_mle, link) for name, link in LINKS.items()},
    **{f"alpha-cut-{learner}": partial(_alpha_cut, learner) for learner in LEARNERS},
}
FAMILIES: dict[str, tuple[str, ...]] = {
    family: tuple(name for name in METHODS if name.startswith(family))
    for family in ("margin-mle", "alpha-cut")
} | {"all": tuple(METHODS)}
DEFAULT_METHODS = ("isplitlbi", "lbi", "per-user", "margin-mle")
# Those that are about nothing but users: an anonymous crowd has none.
OF_USERS = ("lbi", "per-user")

# With whom iSplit LBI is compared in words: one score per item, and nothing else.
COMMON = "margin-mle-bt"


def methods_named(names: Iterable[str]) -> list[str]:
    """Return the methods of some names and families, each once, in the order asked for."""
    chosen: dict[str, None] = {}
    for name in names:
        if name not in FAMILIES and name not in METHODS:
            known = [*METHODS, *FAMILIES]
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise InvalidSetting(
                f"there is no method {name!r}; the nearest is {near!r}, and all are: "
                f"{', '.join(known)}."
            )
        chosen |= dict.fromkeys(FAMILIES.get(name, (name,)))
    if not chosen:
        raise InvalidSetting("name at least one method.")
    return list(chosen)


@dataclass(frozen=True)
class Evaluation:
    """How well methods predicted held-out votes, over repeated splits."""

    settings: dict[str, Any]
    scores: pl.DataFrame  # method, repeat and every one of METRICS (null where there is none)
    reliability: dict[str, Floats]  # per method with probabilities, see `metrics.reliability`
    individual: Finding | None = None  # whether individual rankings help, if users can differ

    @property
    def methods(self) -> list[str]:
        """The methods, in the order asked for."""
        return self.scores["method"].unique(maintain_order=True).to_list()

    def of(self, method: str, metric: str) -> Floats:
        """Return one number per repeat."""
        rows = self.scores.filter(pl.col("method") == method)
        return rows[metric].cast(pl.Float64).fill_null(np.nan).to_numpy()

    def statistics(self, method: str, metric: str) -> dict[str, float | None]:
        """Return minimum, median, maximum and standard deviation over the repeats."""
        values = self.of(method, metric)
        if np.isnan(values).any():
            return dict.fromkeys(STATISTICS)
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
        low, middle, high = (float(f(values)) for f in (np.min, np.median, np.max))
        return dict(zip(STATISTICS, (low, middle, high, spread), strict=True))

    def summary(self) -> pl.DataFrame:
        """Return a row per method, with four columns per metric, such as micro_f1_median."""
        rows = [
            {"method": method}
            | {
                f"{metric}_{statistic}": value
                for metric in METRICS
                for statistic, value in self.statistics(method, metric).items()
            }
            for method in self.methods
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        bins = ("predictions", "predicted", "happened")
        return {
            "settings": self.settings,
            "verdict": self.verdict(),
            "comparison": self.comparison(),
            "methods": [
                {"name": method}
                | {metric: self.statistics(method, metric) for metric in METRICS}
                | {
                    "reliability": [
                        dict(zip(bins, (None if np.isnan(v) else v for v in row), strict=True))
                        for row in self.reliability[method].tolist()
                    ]
                    if method in self.reliability
                    else None
                }
                for method in self.methods
            ],
        }

    def compare(self, one: str, other: str, metric: str = "micro_f1") -> tuple[float, float]:
        """Return the mean difference of two methods over the repeats, and its p-value.

        Repeats share votes, so that a plain paired test would see far too much. This is the
        corrected one of Nadeau and Bengio (2003).
        """
        difference = self.of(one, metric) - self.of(other, metric)
        mean, n = float(np.mean(difference)), len(difference)
        if n < 2:
            return mean, np.nan
        share = self.settings["test_share"]
        variance = float(np.var(difference, ddof=1)) * (1.0 / n + share / (1.0 - share))
        if variance == 0.0:
            return mean, float(mean == 0.0)
        return mean, float(2.0 * student.sf(abs(mean) / np.sqrt(variance), n - 1))

    def verdict(self) -> str | None:
        """Say whether individual rankings help, as `check` and the report say it of these votes.

        This is about the votes, not about the methods: the same model with one ranking for all and
        with everybody's own. None of a single user.
        """
        return None if self.individual is None else self.individual.sentence

    def comparison(self) -> str:
        """Say how many votes iSplit LBI predicts, and how many one score per item does.

        Without these two, the two best methods are compared. Figures are means over the repeats.
        """
        one, *others = sorted(
            self.methods, key=lambda method: (method != "isplitlbi", -self._mean(method))
        )
        predicts = f"{one} predicts {100 * self._mean(one):.1f} % of the held-out votes"
        if not others:
            return f"{predicts}."
        other = COMMON if one == "isplitlbi" and COMMON in others else others[0]
        gain, p = self.compare(one, other)
        return (
            f"{predicts}, {other} {100 * self._mean(other):.1f} %: {100 * gain:+.1f} points "
            f"({_certainty(p, self.settings['repeats'])})."
        )

    def _mean(self, method: str) -> float:
        return float(np.mean(self.of(method, "micro_f1")))


def _certainty(p: float, repeats: int) -> str:
    """Say how sure a difference is."""
    if np.isnan(p):
        return "one repeat does not tell how sure that is"
    probability = "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"
    return f"corrected paired t-test over {repeats} repeats, {probability}"


def evaluate(
    votes: Comparisons,
    methods: Sequence[str] | None = None,
    *,
    repeats: int = 20,
    test_share: float = 0.2,
    min_votes: int = 1,
    rule: Rule = "map",
    scoring: Scoring = "log_loss",
    terms: str | Sequence[str] = "all",
    ties: Ties = "auto",
    sides: Sides = "known",
    estimate: Estimate = "dense",
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> Evaluation:
    """Fit every method on a part of every user's votes, and score it on the rest, repeatedly.

    Splits are within users, stratified by outcome, and keep groups of votes together; all methods
    see the same ones. Everything else, such as the time to stop, a method chooses on its own part.

    Parameters
    ----------
    votes
        The votes.
    methods
        Names from `METHODS` or `FAMILIES`; an anonymous crowd leaves out those about users alone.
    repeats, test_share
        Number of splits, and the share of every user's votes to hold out.
    min_votes
        Leave out users with fewer votes; 7 in the published program, and the paper does not say.
    rule
        How methods with probabilities decide; `paper_f1` is always by the threshold.
    scoring
        By what iSplit LBI and LBI choose nu, kappa and the time on their inner folds.
    terms, ties, sides, estimate
        Of iSplit LBI, as there (the last also of LBI); whether there are ties is found from all
        votes together.
    seed, n_jobs
        Seed of the splits and of what is random in a method; threads of a method.
    progress
        Called before each fit with the share of the work done and what comes next.
    """
    names = _methods_for(votes, methods)
    told = MethodSettings(rule, scoring, n_jobs, seed, terms, ties, sides, estimate).checked()
    kept, tell = _with_enough(votes, min_votes), progress or (lambda done, doing: None)
    told = told.knowing(kept)
    trials: list[_Trial] = []
    for repeat, split in enumerate(_splits(kept, test_share, repeats, seed)):
        for name in names:
            tell(len(trials) / (repeats * len(names)), f"repeat {repeat + 1}, {name}")
            trials.append(_try(name, told, repeat, *split))
    tell(1.0, "done")
    settings = _figures(kept) | told.as_dict() | {
        "methods": names, "repeats": repeats, "test_share": test_share, "min_votes": min_votes,
    }  # fmt: skip
    verdict = verdict_on(kept, sides=sides)
    return Evaluation(settings, _table(trials, names), _reliabilities(trials), verdict)


def _methods_for(votes: Comparisons, methods: Sequence[str] | None) -> list[str]:
    """Return the methods to compare; refuse one by its name that needs users, if there are none."""
    names = methods_named(DEFAULT_METHODS if methods is None else methods)
    if not votes.is_anonymous:
        return names
    for name in methods or ():
        if name in OF_USERS:
            raise InvalidSetting(
                f"the method {name} is about users, and these votes have none. Leave it out."
            )
    return [name for name in names if name not in OF_USERS]


def _figures(votes: Comparisons) -> dict[str, Any]:
    """Return what there is to know of votes beside their number."""
    n_users = int((votes.votes_per_user > 0).sum())
    return {
        "votes": len(votes), **({} if votes.is_anonymous else {"users": n_users}),
        "items": len(np.union1d(votes.left, votes.right)), "grouped": votes.group is not None,
    }  # fmt: skip


class _Trial(NamedTuple):
    """A method on one of the splits."""

    method: str
    repeat: int
    scores: dict[str, float | None]  # by METRICS
    held_out: Comparisons
    probabilities: Floats | None  # of left, tie and right, where the method has them


def _with_enough(votes: Comparisons, min_votes: int) -> Comparisons:
    enough = votes.votes_per_user >= min_votes
    if not enough.any():
        raise InvalidVotes(
            f"no user has {min_votes} votes; the most active one has {votes.votes_per_user.max()}."
        )
    return votes if enough.all() else votes.subset(enough[votes.user])


def _splits(
    votes: Comparisons, test_share: float, repeats: int, seed: int
) -> Iterator[tuple[Comparisons, Comparisons]]:
    """Yield training and held-out votes; more repeats begin with the same ones."""
    check_seed(seed)
    if repeats < 1:
        raise InvalidSetting(f"repeats is {repeats}; it must be at least 1.")
    for repeat in range(repeats):
        training, held_out = split_within_user(
            votes, test_share, np.random.default_rng([seed, repeat])
        )
        if not len(training) or not len(held_out):
            raise InvalidVotes(
                f"{counted(len(votes), 'vote')} {'is' if len(votes) == 1 else 'are'} too few to "
                "hold any out. Give more."
            )
        yield training, held_out


@contextmanager
def each_fit_is_silent() -> Iterator[None]:
    """Let fits of parts say nothing of how they predict: the scores do, and so does `check`."""
    log = logging.getLogger(f"isplitlbi.{HELD_OUT}")
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(logging.NOTSET)


def _try(
    method: str, told: MethodSettings, repeat: int, training: Comparisons, held_out: Comparisons
) -> _Trial:
    """Fit a method, and score it on the held-out votes."""
    model: Any = METHODS[method](told)
    begun = perf_counter()
    with each_fit_is_silent():
        model.fit(training)
    seconds = perf_counter() - begun
    scores, probabilities = _score(model, held_out)
    return _Trial(method, repeat, scores | {"seconds": seconds}, held_out, probabilities)


def _score(model: Any, held_out: Comparisons) -> tuple[dict[str, float | None], Floats | None]:
    """Return all metrics on held-out votes, and the probabilities of left, tie and right."""
    table = confusion(held_out.outcome, model.predict(held_out), held_out.weight)
    by_threshold, loss, probabilities = table, None, None
    if hasattr(model, "predict_log_proba"):  # such a method can also decide by another rule
        log_probabilities = np.full((len(held_out), 3), NEVER)  # but for the classes of the model
        log_probabilities[:, 1 - model.classes_] = model.predict_log_proba(held_out)
        probabilities = np.exp(log_probabilities)
        loss = log_loss(held_out.outcome, log_probabilities, held_out.weight)
        answers = model.predict(held_out, rule="threshold")
        by_threshold = confusion(held_out.outcome, answers, held_out.weight)
    scores: dict[str, Any] = {
        "micro_f1": micro_f1(table),
        "macro_f1": macro_f1(table),
        "log_loss": loss,
    }
    for what, measure in (("precision", precision), ("recall", recall)):
        scores |= {
            f"{what}_{side}": float(value)
            for side, value in zip(SIDES, measure(table), strict=True)
        }
    scores["paper_micro_f1"], scores["paper_macro_f1"] = paper_f1(by_threshold)
    return scores, probabilities


def _table(trials: Sequence[_Trial], methods: Sequence[str]) -> pl.DataFrame:
    """Return the scores, method after method."""
    order = sorted(trials, key=lambda trial: methods.index(trial.method))  # stable: repeats too
    rows = [{"method": trial.method, "repeat": trial.repeat, **trial.scores} for trial in order]
    columns = {"method": pl.String, "repeat": pl.Int64, **dict.fromkeys(METRICS, pl.Float64)}
    return pl.DataFrame(rows, schema=columns)


def _reliabilities(trials: Sequence[_Trial]) -> dict[str, Floats]:
    """Return the reliability of every method with probabilities, over all its held-out votes."""
    with_some: dict[str, list[tuple[Comparisons, Floats]]] = {}
    for trial in trials:
        if trial.probabilities is not None:
            with_some.setdefault(trial.method, []).append((trial.held_out, trial.probabilities))
    found = {}
    for method, parts in with_some.items():
        outcome = np.concatenate([votes.outcome for votes, _ in parts])
        probabilities = np.concatenate([said for _, said in parts])
        weight = np.concatenate(
            [np.ones(len(v)) if v.weight is None else v.weight for v, _ in parts]
        )
        found[method] = reliability(outcome, probabilities, weight=weight)
    return found
