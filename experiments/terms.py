"""What the terms of the model gain: on real votes, each switched off in turn, and on known truth.

    python experiments/terms.py                       the fixed splits of all studies
    python experiments/terms.py age --splits 20       and 20 random ones, of one study
    python experiments/terms.py --without             and each term switched off in turn
    python experiments/terms.py --simulated           only simulated votes: is the truth recovered?
    python experiments/terms.py --features            and only those: is the effect of a feature?

The studies lie in ../shared/data beside the project or in --data FOLDER: NAME.csv and
splits/NAME.csv, with the columns user,left,right,winner (and is_test,fold in splits); what is not
there is skipped, and said so. Log-loss, micro-F1 and the calibration error (ECE: 15 bins of the
probability of the predicted class) are of held-out votes; nothing is chosen on those. Random splits
hold out a fifth of every user's votes, whole rankings where there are any; differences are paired,
of a setting and the default on the same split, with their standard error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl

from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.data.splits import split_within_user
from isplitlbi.errors import InvalidSetting, ISplitLBIError
from isplitlbi.evaluation.calibration import calibration_error
from isplitlbi.evaluation.protocol import each_fit_is_silent
from isplitlbi.evaluation.simulate import Study, simulate
from isplitlbi.kernels import Anchor
from isplitlbi.model.links import Logistic
from isplitlbi.model.parameters import Parameters
from isplitlbi.model.terms import Terms
from isplitlbi.runtime.local import Local
from isplitlbi.selection import score_votes
from isplitlbi.solvers import fit_consensus
from isplitlbi.solvers.newton import Solver

HERE = Path(__file__).resolve().parent
STUDIES = ("simulation", "age", "college", "llmfao", "wmt16_cze-eng")
GROUP = "ranking"  # the column, where there is one, of votes that stay together
TEST_SHARE = 0.2
# The sides of age and college were drawn with seed 0: a split with that seed would know them.
FIRST_SEED = 100

TERMS = ("taste", "threshold", "sharpness", "side", "habit")
DEFAULT = "default"
SETTINGS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "paper": {"terms": "paper", "nu": 0.3, "kappa": 30.0},
}
WITHOUT = {
    f"without {name}": {"terms": [other for other in TERMS if other != name]} for name in TERMS
}
SCORES = ("log_loss", "micro_f1", "ece")


@dataclass(frozen=True)
class Task:
    """A fit to be scored on the votes that it did not see."""

    data: Path
    study: str
    setting: str
    seed: int | None  # of a random split; None for the fixed one
    sides_unknown: bool = False
    n_jobs: int | None = None

    @property
    def model(self) -> ISplitLBI:
        settings = {**SETTINGS, **WITHOUT}[self.setting]
        if self.sides_unknown and self.setting != "paper":
            settings = settings | {"sides": "unknown"}
        if unknown := set(settings) - set(ISplitLBI().get_params()):
            raise InvalidSetting(f"ISplitLBI has no setting {', '.join(sorted(unknown))}.")
        return ISplitLBI(**settings, with_tests=False, n_jobs=self.n_jobs)

    def run(self) -> dict[str, Any]:
        """Return the scores and what was chosen, or why there are none."""
        training, held_out, folds = self.parts()
        begun = perf_counter()
        try:
            with each_fit_is_silent():
                model = self.model.fit(training, folds=folds)
        except ISplitLBIError as error:
            return {"error": f"{self.study}, {self.setting}: {error}"}
        seconds = perf_counter() - begun
        chosen = {"time": model.time_, "nu": model.nu_, "kappa": model.kappa_}
        return scores_of(model, held_out) | chosen | {"seconds": seconds}

    def parts(self) -> tuple[Comparisons, Comparisons, Any]:
        """Return training votes, held-out votes, and the folds if they are given."""
        if self.seed is not None:
            votes = read(self.data / f"{self.study}.csv")[0]
            return *split_within_user(votes, TEST_SHARE, rng=self.seed), None
        votes, frame = read(self.data / "splits" / f"{self.study}.csv")
        is_test = frame["is_test"].to_numpy() == "1"
        return votes.subset(~is_test), votes.subset(is_test), frame["fold"].to_numpy()[~is_test]


@cache
def read(file: Path) -> tuple[Comparisons, pl.DataFrame]:
    frame = pl.read_csv(file, infer_schema=False)
    return Comparisons.from_frame(frame, group=GROUP if GROUP in frame.columns else None), frame


def scores_of(model: Any, held_out: Comparisons) -> dict[str, float]:
    """Return log-loss, micro-F1 and calibration error, whatever the classes are."""
    log_probabilities = model.predict_log_proba(held_out)
    happened = np.searchsorted(model.classes_, held_out.outcome)
    return {
        "log_loss": float(-log_probabilities[np.arange(len(happened)), happened].mean()),
        "micro_f1": float((model.predict(held_out) == held_out.outcome).mean()),
        "ece": calibration_error(happened, np.exp(log_probabilities)),
    }


# --- real votes ----------------------------------------------------------------------------------


def tasks_of(asked: argparse.Namespace) -> list[Task]:
    """Return all fits that are asked for, of the studies that are there."""
    settings = [*SETTINGS, *(WITHOUT if asked.without else ())]
    unknown = {name for name in asked.sides_unknown.split(",") if name}
    tasks = []
    for study in asked.studies or STUDIES:
        seeds: list[int | None] = [None, *range(FIRST_SEED, FIRST_SEED + asked.splits)]
        for file, of_file in (
            (asked.data / "splits" / f"{study}.csv", seeds[:1]),
            (asked.data / f"{study}.csv", seeds[1:]),
        ):
            if of_file and not file.is_file():
                print(f"{study}: {file.name} is not there; name its folder with --data.",
                      file=sys.stderr)  # fmt: skip
                continue
            tasks += [
                Task(asked.data, study, setting, seed, study in unknown,
                     n_jobs=1 if asked.jobs > 1 else None)
                for seed in of_file
                for setting in settings
                if not (setting == "without side" and study in unknown)
            ]  # fmt: skip
    return tasks


def run_all(tasks: list[Task], n_processes: int) -> list[dict[str, Any]]:
    """Run the fits, one after another or in several processes, under a bar."""
    found = []
    with bar(len(tasks)) as tell:
        if n_processes == 1:
            outcomes: Iterator[dict[str, Any]] = map(Task.run, tasks)
            pool = None
        else:
            pool = ProcessPoolExecutor(n_processes)
            outcomes = pool.map(Task.run, tasks)
        for task, outcome in zip(tasks, outcomes, strict=True):
            split = "fixed" if task.seed is None else task.seed
            row = {"study": task.study, "setting": task.setting, "split": split}
            found.append(row | outcome)
            tell(f"{task.study}, {task.setting}")
        if pool is not None:
            pool.shutdown()
    for sentence in dict.fromkeys(row["error"] for row in found if "error" in row):
        print(f"not run: {sentence}", file=sys.stderr)
    return [row for row in found if "error" not in row]


def fixed_table(rows: list[dict[str, Any]]) -> str:
    fixed = {(r["study"], r["setting"]): r for r in rows if r["split"] == "fixed"}
    studies, settings = (list(dict.fromkeys(key[place] for key in fixed)) for place in (0, 1))

    def cell(study: str, setting: str) -> str:
        row = fixed.get((study, setting))
        return "-" if row is None else " / ".join(f"{row[name]:.4f}" for name in SCORES)

    return table(
        ["log-loss / micro-F1 / ECE", *studies],
        [[setting, *(cell(study, setting) for study in studies)] for setting in settings],
    )


def random_table(rows: list[dict[str, Any]]) -> str:
    """Return means over random splits, and paired differences to the default."""
    drawn = [row for row in rows if row["split"] != "fixed"]
    lines = []
    for study in dict.fromkeys(row["study"] for row in drawn):
        by_setting: dict[str, dict[int, dict[str, Any]]] = {}
        for row in drawn:
            if row["study"] == study:
                by_setting.setdefault(row["setting"], {})[row["split"]] = row
        usual = by_setting.get(DEFAULT, {})
        for setting, splits in by_setting.items():
            means = [mean_and_error([r[name] for r in splits.values()]) for name in SCORES]
            both = [(r["log_loss"], usual[seed]["log_loss"])
                    for seed, r in splits.items() if seed in usual]  # fmt: skip
            more = "" if setting == DEFAULT or not both else shown(
                *mean_and_error([one - other for one, other in both]), sign="+"
            )  # fmt: skip
            seconds = f"{np.mean([r['seconds'] for r in splits.values()]):.2f}"
            lines.append([study, setting, str(len(splits)), *(shown(*m) for m in means), more,
                          seconds])  # fmt: skip
    header = ["study", "setting", "splits", "log-loss", "micro-F1", "ECE",
              "log-loss more than the default's", "seconds a fit"]  # fmt: skip
    return table(header, lines)


# --- simulated votes -----------------------------------------------------------------------------


RECOVERY: dict[str, Any] = {
    "n_users": 200, "votes_per_user": (100, 100), "score_sd": 1.5, "threshold": 0.7,
    "abnormal_share": 0.0, "sharpness": (0, 0.5, 1, 2, -1), "side": 0.6, "taste_sd": 1.0,
    "threshold_sd": 0.4, "tie_habit": 0.4,
}  # fmt: skip
NUMBERS_OF_ITEMS = (6, 10)  # the more items, the fewer votes tell the taste for each
ALIKE: dict[str, Any] = {
    "n_users": 200, "n_items": 20, "votes_per_user": (100, 100), "score_sd": 1.5, "threshold": 0.7,
    "abnormal_share": 0.0,
}  # fmt: skip


def run_simulated(n_studies: int, first_seed: int = 0) -> list[dict[str, Any]]:
    """Fit simulated studies; return how well each term is recovered, and what nothing costs."""
    rows = []
    with bar((1 + len(NUMBERS_OF_ITEMS)) * n_studies) as tell:
        for seed in range(first_seed, first_seed + n_studies):
            for n_items in NUMBERS_OF_ITEMS:
                study = simulate(**RECOVERY, n_items=n_items, random_state=seed)
                model = ISplitLBI(with_tests=False).fit(study.votes)
                best = correlations_of_the_best(study)
                for row in recovered(model, study):
                    row["possible"] = best.get(row["term"])
                    row["term"] += f", {n_items} items"
                    rows.append({"seed": seed, **row})
                tell("users who differ")
            rows.append({"seed": seed, **cost_of_nothing(seed)})
            tell("users who are alike")
    return rows


def correlations_of_the_best(study: Study) -> dict[str, float]:
    """Return the correlations of an estimate that knows everything but the users themselves.

    It has the true consensus and the true spread of every term, and only finds what is likeliest of
    every user: more than that the votes do not tell.
    """
    votes, truth = study
    nu = RECOVERY["taste_sd"] ** 2
    slope = np.sqrt(np.mean((np.array(RECOVERY["sharpness"]) - 1.0) ** 2))
    spreads = {"sharpness": slope, "side": RECOVERY["side"], "threshold": RECOVERY["threshold_sd"]}
    terms = Terms.named("all").referring(truth.scores)
    terms = terms.sized({name: float(sd / np.sqrt(nu)) for name, sd in spreads.items()})
    layout = terms.layout(votes)
    vector = layout.vector
    consensus = np.zeros(vector.width)
    consensus[vector.scores], consensus[vector.habits] = truth.scores, truth.habits
    consensus[vector.threshold] = np.log(truth.threshold)
    consensus[vector.place("side")] = truth.common_side
    solver = Solver(layout, Logistic(), 1e-3, Local(votes), terms)
    anchor = Anchor.ridge(consensus, layout.n_slots, nu, terms.holds)
    _, deviation, *_ = solver.solve(anchor, 1e-6, consensus.copy(), np.zeros(layout.n_slots))
    found = Parameters(vector, layout.slots, consensus, deviation, terms)
    own = np.array([found.scores_of(user) for user in range(votes.n_users)])
    along = centred(truth.scores)
    tastes = (beside(centred(each), along) for each in (truth.user_scores(), own))
    pairs = {
        "taste": tuple(tastes),
        "sharpness": (truth.sharpness, found.all_of("sharpness")),
        "side": (truth.side, found.all_of("side")),
        "threshold": (np.log(truth.user_thresholds()), np.log(found.all_of("threshold"))),
    }
    return {name: compared(name, *both)["correlation"] for name, both in pairs.items()}


def recovered(model: Any, study: Study) -> Iterator[dict[str, Any]]:
    """Compare true and estimated terms, in the units of the model.

    The model's slopes are relative to its own consensus, which lies as far apart as people tell
    items apart on average: true slopes are brought to that unit. Tie habits count from their mean.
    Taste is what a user's scores have that is not along the consensus.
    """
    truth = study.truth
    reference, consensus = centred(model.scores()), centred(truth.scores)
    unit = float(reference @ consensus) / float(consensus @ consensus)
    own = np.array([model.scores(user) for user in model.users_])
    true_thresholds = np.log(truth.user_thresholds() / truth.threshold)
    truths = {
        "sharpness": truth.sharpness / unit,
        "side": truth.common_side + truth.side,
        "threshold": centred(true_thresholds),
        "habit": centred(truth.habits),
    }
    yield compared(
        "taste", beside(centred(truth.user_scores()), consensus), beside(centred(own), reference)
    )
    for name, (estimate, low, high) in estimates(model).items():
        yield compared(name, truths[name], estimate, low, high)


def estimates(model: Any) -> dict[str, tuple[Any, Any, Any]]:
    """Return per term the estimates and both ends of their intervals.

    This is the one place that knows how a model tells of its terms.
    """
    cards = model.user_cards()
    found = {
        "sharpness": tuple(np.array([card.slope for card in cards]).T),
        "side": tuple(np.array([card.side for card in cards]).T),
    }
    thresholds = np.log([card.tie_factor for card in cards]).T
    found["threshold"] = tuple(thresholds - thresholds[0].mean())
    habits = np.log([model.habits_, *model.habit_intervals()])
    found["habit"] = tuple(habits - habits[0].mean())
    return found


# An effect of .5 logit that is the same for everybody; that users differ in, and in all else; and
# where no tie may be declared.
PLANTED = 0.5
SMALL: dict[str, Any] = {
    "n_users": 40, "n_items": 8, "votes_per_user": (40, 80), "score_sd": 1.0, "threshold": 0.7,
    "abnormal_share": 0.0, "features": {"length": PLANTED},
}  # fmt: skip
DIFFERING: dict[str, Any] = {
    "features": {"length": (PLANTED, 0.4)}, "sharpness": 0.4, "side": 0.4, "taste_sd": 0.6,
    "threshold_sd": 0.3, "tie_habit": 0.3,
}  # fmt: skip
PLANTED_STUDIES: dict[str, dict[str, Any]] = {
    "all alike": SMALL,
    "users differ": SMALL | DIFFERING,
    "users differ, no ties": SMALL | DIFFERING
    | {"threshold": None, "threshold_sd": 0.0, "tie_habit": 0.0},
    "users differ, more votes": SMALL | DIFFERING | {"n_users": 100, "votes_per_user": (100, 150)},
}  # fmt: skip


def planted(task: tuple[str, int]) -> dict[str, Any]:
    """Fit one study with a planted effect; say whether the interval covers it."""
    name, seed = task
    votes = simulate(**PLANTED_STUDIES[name], random_state=seed).votes
    (effect,) = ISplitLBI(with_tests=False, n_jobs=1).fit(votes).features()
    truth = PLANTED * effect.unit
    return {
        "study": name, "seed": seed, "off": effect.effect - truth,
        "error": (effect.high - effect.low) / 2.0, "covers": effect.low <= truth <= effect.high,
    }  # fmt: skip


def run_features(n_studies: int, n_processes: int, first_seed: int = 0) -> list[dict[str, Any]]:
    """Fit studies with a planted effect of a feature."""
    tasks = [(name, seed) for name in PLANTED_STUDIES
             for seed in range(first_seed, first_seed + n_studies)]  # fmt: skip
    rows = []
    with bar(len(tasks)) as tell, ProcessPoolExecutor(n_processes) as pool:
        for row in pool.map(planted, tasks, chunksize=4):
            rows.append(row)
            tell(row["study"])
    return rows


def features_table(rows: list[dict[str, Any]]) -> str:
    lines = []
    for name in dict.fromkeys(row["study"] for row in rows):
        found = [row for row in rows if row["study"] == name]
        off, covers = ([row[what] for row in found] for what in ("off", "covers"))
        half = float(np.mean([row["error"] for row in found]))
        lines.append([name, str(len(found)), shown(*mean_and_error(off), sign="+"),
                      f"{half:.3f}", f"{100 * np.mean(covers):.1f} %"])  # fmt: skip
    return table(["votes", "studies", "off by", "half an interval", "intervals that cover"], lines)


def compared(name: str, true: Any, estimate: Any, low: Any = None, high: Any = None) -> Any:
    row: dict[str, Any] = {"term": name}
    row["correlation"] = float(np.corrcoef(np.ravel(true), np.ravel(estimate))[0, 1])
    row["coverage"] = None if low is None else float(((low <= true) & (true <= high)).mean())
    return row


def cost_of_nothing(seed: int) -> dict[str, Any]:
    """Return by how much the model predicts worse than the consensus where all are alike."""
    votes = simulate(**ALIKE, random_state=seed).votes
    training, held_out = split_within_user(votes, TEST_SHARE, rng=FIRST_SEED + seed)
    model = ISplitLBI(with_tests=False).fit(training)
    consensus = Parameters.of_consensus(training, fit_consensus(training, Logistic()))
    alone = score_votes(held_out, consensus, Logistic())["log_loss"]
    return {"term": "all alike", "excess": scores_of(model, held_out)["log_loss"] - alone}


def simulated_table(rows: list[dict[str, Any]]) -> str:
    lines = []
    for term in dict.fromkeys(row["term"] for row in rows):
        line = [term]
        for name in ("correlation", "possible", "coverage", "excess"):
            values = [
                row[name] for row in rows if row["term"] == term and row.get(name) is not None
            ]
            line.append(shown(*mean_and_error(values)) if values else "-")
        lines.append(line)
    return table(
        ["term", "correlation with the truth", "of the best that is possible",
         "intervals that cover the truth",
         "log-loss above the consensus model's"], lines
    )  # fmt: skip


def centred(values: Any) -> Any:
    return np.asarray(values) - np.mean(values, axis=-1, keepdims=True)


def beside(scores: Any, direction: Any) -> Any:
    """Return what scores have that is not along a direction."""
    return scores - np.outer(scores @ direction, direction) / (direction @ direction)


# --- what is printed -----------------------------------------------------------------------------


def mean_and_error(values: list[float]) -> tuple[float, float]:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(np.mean(values)), float(error)


def shown(mean: float, error: float, sign: str = "") -> str:
    return f"{mean:{sign}.4f}" + ("" if np.isnan(error) else f" ({error:.4f})")


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


@contextmanager
def bar(n_tasks: int, patience: float = 2.0) -> Iterator[Any]:
    """Show how far the work is, on a terminal, once it has taken longer than two seconds."""
    from rich.console import Console
    from rich.progress import Progress

    progress = Progress(console=Console(stderr=True), transient=True)
    task, begun = progress.add_task("Fitting", total=n_tasks), perf_counter()
    is_shown = False

    def tell(doing: str) -> None:
        nonlocal is_shown
        progress.update(task, advance=1, description=doing)
        if progress.console.is_terminal and not is_shown and perf_counter() - begun > patience:
            progress.start()
            is_shown = True

    try:
        yield tell
    finally:
        if is_shown:
            progress.stop()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    at_least_one = partial(whole, least=1)
    parser.add_argument("studies", nargs="*", help=f"any of {', '.join(STUDIES)}; all by default")
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data",
                        help="folder of the votes")  # fmt: skip
    parser.add_argument("--splits", type=whole, default=0, help="random splits of every study")
    parser.add_argument("--without", action="store_true", help="switch off each term in turn")
    parser.add_argument("--sides-unknown", default="", metavar="STUDY,...",
                        help="studies whose left and right mean nothing")  # fmt: skip
    parser.add_argument("--simulated", action="store_true", help="only simulated votes")
    parser.add_argument("--features", action="store_true",
                        help="only simulated votes with a feature")  # fmt: skip
    parser.add_argument("--repeats", type=at_least_one, default=5,
                        help="how many simulated studies")  # fmt: skip
    parser.add_argument("--seed", type=whole, default=0, help="of the first of these")
    parser.add_argument("--jobs", type=at_least_one, default=1, help="processes")
    parser.add_argument("--json", type=Path, help="file for all figures")
    asked = parser.parse_args()
    if unknown := set(asked.studies) - set(STUDIES):
        parser.error(f"{', '.join(sorted(unknown))}: not one of {', '.join(STUDIES)}")
    if asked.features:
        rows = run_features(asked.repeats, asked.jobs, asked.seed)
        print(features_table(rows))
    elif asked.simulated:
        rows = run_simulated(asked.repeats, asked.seed)
        print(simulated_table(rows))
    else:
        rows = run_all(tasks_of(asked), asked.jobs)
        print(fixed_table(rows))
        if asked.splits:
            print(random_table(rows))
    if asked.json is not None:
        asked.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


def whole(text: str, least: int = 0) -> int:
    number = int(text)
    if number < least:
        raise argparse.ArgumentTypeError(f"{number} is less than {least}")
    return number


if __name__ == "__main__":
    sys.exit(main())
