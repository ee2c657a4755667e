"""The paper's experiments: its three tables and all of its figures, and what goes beyond.

    python experiments/paper.py --data FOLDER           everything, into docs/results/
    python experiments/paper.py age --data FOLDER       one study of settings.toml
    python experiments/paper.py splits --data FOLDER    fixed splits, beside the authors' program
    python experiments/paper.py figures --data FOLDER   the paper's figures
    python experiments/paper.py simulation              needs no data: the study is drawn anew
    python experiments/paper.py --quick -o FOLDER       a minute's version of all that is there
    python experiments/paper.py age --all-terms ...     only the default fit; the rest is kept

FOLDER holds simulation.csv, age.csv, college.csv (and llmfao.csv, wmt16_cze-eng.csv, splits/*.csv)
with the columns user,left,right,winner; what is not there is skipped, and said so. Each study
writes NAME.md and NAME.json; figures.md and splits.md are about all of them. The exit code is 1
where a target of settings.toml is missed; --quick has none.

Every study is measured twice. *By the protocol of the published program*: outcomes are predicted by
the threshold, also where the time is chosen; the time is chosen by the F1 that is reported; nu and
kappa are those of the program; users have at least seven votes; F1s are the program's. And *by
ours*: the most probable outcome, everything chosen by log-loss, the standard F1s.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import figures
import numpy as np
import polars as pl

from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.diagnostics.individual import verdict_on
from isplitlbi.evaluation.protocol import (
    METHODS,
    STATISTICS,
    Evaluation,
    MethodSettings,
    evaluate,
    methods_named,
)
from isplitlbi.evaluation.simulate import Study, paper_study
from isplitlbi.model.metrics import confusion, log_loss, macro_f1, micro_f1, paper_f1
from isplitlbi.selection import ESTIMATES, RULES, SCORINGS

HERE = Path(__file__).resolve().parent
PROGRAM = "isplitlbi-program"  # with nu and kappa of the published program
F1S = ("micro", "macro")
METRICS = ("micro_f1", "macro_f1", "log_loss")
ALL_TERMS = "isplitlbi, all terms"  # the default fit, in a table

WARNINGS = """\
Two warnings about the published figures. The paper names micro- and macro-F1 without a formula. The
program that was published with it computes them in an unusual way: for "left wins", a predicted tie
counts as a prediction of a win where that is wrong and as none where it would be right, and its
macro-F1 is the harmonic mean of mean precision and mean recall. `paper_f1` reproduces that, from
predictions by the threshold rule; it lies .02 to .04 below the standard micro-F1 on the same
predictions. And the program pairs votes with the wrong users unless
the rows are sorted by user; on the college file, where all ties stand last, that leaks the outcome,
so that the published college figures cannot be compared directly. What the paper's tables call
median, its text calls average; both are here.
"""


@dataclass(frozen=True)
class Run:
    """What was asked for."""

    settings: dict[str, Any]
    data: Path | None
    output: Path
    quick: bool

    def protocol(self, name: str) -> dict[str, Any]:
        """Return what is the same for all measurements of a study."""
        protocol, study = dict(self.settings["protocol"]), self.settings["studies"][name]
        quick = protocol.pop("quick")
        return protocol | (quick if self.quick else {}) | _some(study, "min_votes")

    def file(self, name: str) -> Path | None:
        """Return a file of the data, or None and a line where it is not."""
        if self.data is not None and (self.data / name).is_file():
            return self.data / name
        print(f"{name}: not there; name its folder with --data.", file=sys.stderr)
        return None

    def votes(self, name: str) -> Comparisons | None:
        """Return the votes of a study; without a file, the simulated study is drawn anew."""
        study = self.settings["studies"][name]
        file = self.file(study["file"])
        if file is not None:
            return Comparisons.read(file, group=study.get("group"))
        return paper_study(0).votes if name == "simulation" else None

    def write(self, name: str, text: str) -> None:
        (self.output / name).write_text(text, encoding="utf-8")
        print(f"wrote {self.output / name}", file=sys.stderr)


def _some(of: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: of[name] for name in names if name in of}


# --- one study -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """One study, measured in all ways; each is an evaluation on the same splits."""

    ours: Evaluation  # all methods, the paper's terms
    all_terms: Evaluation  # iSplit LBI with its default terms
    sparse: Evaluation | None  # by the sparse estimate; of the paper's studies
    # By the protocol of the program, by the F1 that chooses the time.
    program: dict[str, Evaluation]

    @classmethod
    def of(cls, run: Run, name: str, votes: Comparisons) -> Measured:
        """Measure; everything is told beforehand, nothing is chosen on held-out votes."""
        protocol = run.protocol(name)
        methods = methods_named(protocol.pop("methods"))
        n_training = (1.0 - protocol["test_share"]) * len(with_enough(votes, protocol["min_votes"]))
        METHODS[PROGRAM] = partial(_of_program, run.settings["program"], n_training)
        by_score = [method for method in methods if method.startswith("margin-mle")]
        papers = {"terms": "paper", "progress": say} | protocol

        def measured(names: list[str], **settings: Any) -> Evaluation:
            return evaluate(votes, names, **papers | settings)

        return cls(
            measured(methods),
            with_all_terms(run, name, votes),
            measured(["isplitlbi"], estimate="sparse") if in_paper(run, name) else None,
            {
                which: measured([PROGRAM, *by_score], rule="threshold", scoring=f"paper_{which}_f1")
                for which in F1S
            },
        )

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        named = {"ours": self.ours, "all terms": self.all_terms, "sparse": self.sparse}
        named |= {f"program, time by {which}-F1": each for which, each in self.program.items()}
        return {name: each.as_dict() for name, each in named.items() if each is not None}


def with_all_terms(run: Run, name: str, votes: Comparisons) -> Evaluation:
    """Measure the default fit, which knows whether sides mean something."""
    told = run.protocol(name) | {"methods": ["isplitlbi"], "progress": say}
    return evaluate(votes, **told, **_some(run.settings["studies"][name], "sides"))


def _of_program(settings: dict[str, Any], n_training: float, told: MethodSettings) -> ISplitLBI:
    """Return iSplit LBI as the published program sets it, whose loss is a mean over votes."""
    return ISplitLBI(
        nu=[nu / n_training for nu in settings["nu"]], kappa=settings["kappa"], terms="paper",
        rule=told.rule, scoring=told.scoring, n_jobs=told.n_jobs, random_state=told.seed,
        with_tests=False,
    )  # fmt: skip


def in_paper(run: Run, name: str) -> bool:
    return name in run.settings["published"]


def with_enough(votes: Comparisons, least: int) -> Comparisons:
    return votes.subset((votes.votes_per_user >= least)[votes.user])


def run_study(run: Run, name: str) -> bool:
    """Evaluate all methods on one study and write what comes out; return whether all is well."""
    study, votes = run.settings["studies"][name], run.votes(name)
    if votes is None:
        return True
    is_drawn = votes.file is None
    begun = perf_counter()
    found = Measured.of(run, name, votes)
    minutes = (perf_counter() - begun) / 60
    protocol = run.protocol(name)
    described = repr(votes).removeprefix("Comparisons: ")
    source = " Drawn by `isplitlbi.evaluation.simulate.paper_study(0)`." if is_drawn else ""
    text = [
        f"# {study['title']}\n",
        f"{described}.{source} {protocol['repeats']} splits, {100 * protocol['test_share']:.0f} % "
        f"of every user's votes held out, users with at least {protocol['min_votes']} votes"
        f"{', rankings kept whole' if study.get('group') else ''}. {minutes:.1f} minutes.\n",
        f"{found.ours.comparison()}\n",
        f"{found.all_terms.verdict()}\n",  # this one knows whether sides mean something
    ]
    if in_paper(run, name):
        text += published_tables(found, run.settings["published"][name])
    text += ["## Ours: the most probable outcome, everything chosen by log-loss\n",
             scores_table(found),
             "## One ranking for all, and everybody's own, by both rules (medians)\n",
             rules_table(found)]  # fmt: skip
    if found.sparse is not None:
        text += ["## Dense and sparse estimate\n", estimates_table(found)]
    text += ["## Precision and recall by class (medians)\n", *classes_tables(found)]
    if study.get("reliability"):
        text += ["## Are the probabilities right?\n", reliability_table(found.ours, "isplitlbi")]
    figures.classes(
        {"by the threshold": found.program["micro"], "by the most probable outcome": found.ours},
        run.output / f"{name}-classes.png", PROGRAM,
    )  # fmt: skip
    text.append(
        f"![Precision and recall by class, by both rules (Figure 5, c)]({name}-classes.png)\n"
    )
    run.write(f"{name}.md", "\n".join(text))
    run.write(f"{name}.json", json.dumps(found.as_dict(), indent=1) + "\n")
    reached = found.ours.statistics("isplitlbi", "micro_f1")["median"]
    least = run.settings["least"].get(name)
    if run.quick or least is None or is_drawn:
        return True
    print(f"{name}: micro-F1 {reached:.4f}, at least {least} asked for")
    return reached >= least


def update_all_terms(run: Run, name: str) -> bool:
    """Measure the default fit again, and keep what the files of a study have of all else.

    The verdict is of the same model, whatever else is measured.
    """
    votes = run.votes(name)
    if votes is None:
        return True
    found = with_all_terms(run, name, votes)
    kept = json.loads((run.output / f"{name}.json").read_text(encoding="utf-8"))
    enough = with_enough(votes, run.protocol(name)["min_votes"])
    by_sides = {sides: verdict_on(enough, sides=sides) for sides in ("known", "unknown")}
    before = kept["all terms"]["verdict"]
    kept["all terms"] = found.as_dict()
    for each in kept.values():
        verdict = by_sides[each["settings"]["sides"]]
        each["verdict"] = None if verdict is None else verdict.sentence
    row = markdown([], [scores_row(ALL_TERMS, found, "isplitlbi")]).splitlines()[-1]
    lines = (run.output / f"{name}.md").read_text(encoding="utf-8").splitlines()
    lines = [str(found.verdict()) if line == str(before) else line for line in lines]
    lines = [row if line.startswith(f"| {ALL_TERMS} |") else line for line in lines]
    run.write(f"{name}.md", "\n".join(lines) + "\n")
    run.write(f"{name}.json", json.dumps(kept, indent=1) + "\n")
    return True


# --- figures -------------------------------------------------------------------------------------


def run_figures(run: Run) -> bool:
    """Draw the paper's figures in its order, but for precision and recall; say what they show."""
    text = ["# The figures of the paper, from our own fits\n",
            "All votes, the paper's terms, the default nu and kappa (0.3 and 30).\n",
            *draw_truth(run, paper_study(0))]  # fmt: skip
    text += ["## Who leaves when, and how far from the consensus (Figures 4, 5 a and 5 b)\n",
             "Users with at least "
             f"{run.settings['protocol']['min_votes']} votes, as in the published program: the "
             "last to leave would otherwise be those with hardly a vote.\n"]  # fmt: skip
    for name, study in run.settings["studies"].items():
        votes = run.votes(name)
        if votes is not None:
            text += draw_study(run, name, study, votes)
    run.write("figures.md", "\n".join(text))
    return True


def draw_truth(run: Run, study: Study) -> list[str]:
    """Draw Figures 1 to 3: a small example, and a study of which the truth is known."""
    model = ISplitLBI(terms="paper").fit(study.votes)
    figures.example_graph(run.output / "example-graph.png")
    figures.decomposition(model, run.output / "simulation-decomposition.png")
    figures.supports_and_magnitudes(study, model, run.output / "simulation-supports.png")
    true = set(study.votes.users[study.truth.abnormal].tolist())
    told = [
        f"{len(users)} {what}, {len(true & set(users))} of them truly"
        for what, users in (
            ("have left the consensus at the chosen time", model.left_consensus_),
            ("are named by the tests", model.abnormal_users_),
        )
    ]
    kappas = (3, 10, 30, 100, 300)
    slopes = [figures.magnitude(study, ISplitLBI(terms="paper", kappa=kappa).fit(study.votes))
              for kappa in kappas]  # fmt: skip
    return [
        "## An example of votes with ties (Figure 1)\n",
        "![Six colleges, three users](example-graph.png)\n",
        "## What deviations are made of (Figure 2)\n",
        "A study drawn by `isplitlbi.evaluation.simulate.paper_study(0)`. The paper calls the "
        "strong part abnormal.\n",
        "![P, and its strong, personal and random part](simulation-decomposition.png)\n",
        "## Who deviates, and by how much (Figure 3)\n",
        f"The same study: {len(true)} users truly deviate; {'; '.join(told)}. Deviations of those "
        "who truly deviate, on the support of Gamma, are as large as the true ones times (slope of "
        "a line through 0) "
        + ", ".join(
            f"{slope:.2f} with kappa = {kappa}"
            for kappa, slope in zip(kappas, slopes, strict=True)
        )
        + ".\n",
        "![Supports and magnitudes: the truth, Gamma at the chosen time, the tests]"
        "(simulation-supports.png)\n",
    ]  # fmt: skip


def draw_study(run: Run, name: str, study: dict[str, Any], votes: Comparisons) -> list[str]:
    """Draw when users leave and how far they are, and say it in numbers."""
    model = ISplitLBI(terms="paper", **_some(study, "sides"))
    model.fit(with_enough(votes, run.settings["protocol"]["min_votes"]))
    figures.entries(model, run.output / f"{name}-entries.png")
    figures.distances(model, run.output / f"{name}-distances.png",
                      None if name == "simulation" else 0.1)  # fmt: skip
    which = "" if name == "simulation" else " of the first and the last to leave"
    sentences = (on_entries(model), on_distances(model), on_stopping(model))
    return [
        f"### {study['title']}\n",
        " ".join(sentences) + "\n",
        f"![Order and time of leaving]({name}-entries.png)\n",
        f"![Distance to the consensus{which}]({name}-distances.png)\n",
    ]


def on_entries(model: ISplitLBI) -> str:
    """Say who has left when, and whom the tests name."""
    entry = np.sort(model.entry_times_[model.summary_.votes_per_user > 0])
    n_named, n_left = len(model.abnormal_users_), len(model.left_consensus_)
    first = set(model.users_[np.argsort(model.entry_times_, kind="stable")][:n_named])
    same = "the same users" if first == set(model.abnormal_users_) else "not all the same users"
    told = (
        f"{n_left} of {len(entry)} users have left the consensus at the chosen time "
        f"({model.time_:.3f}). The tests name {n_named}."
    )
    if 0 < n_named < len(entry):
        told += (
            f" The first {n_named} to leave ({same}) have left by {entry[n_named - 1]:.4f}, the "
            f"next one leaves at {entry[n_named]:.4f}."
        )
    return told


def on_distances(model: ISplitLBI) -> str:
    """Say how far those are who leave first and last, and those whom the tests name."""
    voted = np.flatnonzero(model.summary_.votes_per_user > 0)
    order = voted[np.argsort(model.entry_times_[voted], kind="stable")]
    distance, some = model.distance_to_consensus(), max(1, round(0.1 * len(order)))
    is_named = np.isin(model.users_[order], model.abnormal_users_)
    told = (
        f"Median distance to the consensus: {np.median(distance[order[:some]]):.2f} of the first "
        f"10 % to leave, {np.median(distance[order[-some:]]):.2f} of the last 10 %."
    )
    if is_named.any() and not is_named.all():
        told += (
            f" The nearest of those whom the tests name is at {distance[order[is_named]].min():.2f}"
            f", the furthest of the others at {distance[order[~is_named]].max():.2f}."
        )
    return told


def on_stopping(model: ISplitLBI) -> str:
    """Say what the path predicts at its beginning, at the chosen time and at its end."""
    curves = model.selection_.chosen
    loss = curves.mean("log_loss")
    chosen = loss[int(np.argmin(np.abs(curves.times - model.time_)))]
    return (
        f"Held-out log-loss along the path: {loss[0]:.3f} before anybody leaves, {chosen:.3f} at "
        f"the chosen time, {loss[curves.n_known - 1]:.3f} where the paths without a fold ended."
    )


# --- fixed splits --------------------------------------------------------------------------------


def run_splits(run: Run) -> bool:
    """Fit on fixed splits with their own folds, and print the rows beside the authors' program.

    One row for each criterion by which the folds may choose; the targets are for one of them.
    """
    rows, estimates, well, judged = [], [], True, run.settings["fixed_splits"]["scoring"]
    for name, known in run.settings["fixed_splits"]["studies"].items():
        file = run.file(f"splits/{name}.csv")
        if file is None:
            continue
        frame = pl.read_csv(file, infer_schema=False)
        votes, is_test = Comparisons.from_frame(frame), frame["is_test"].to_numpy() == "1"
        training, held_out = votes.subset(~is_test), votes.subset(is_test)
        folds = frame["fold"].to_numpy()[~is_test]
        for scoring in SCORINGS:
            model: Any = METHODS["isplitlbi"](MethodSettings("map", scoring, None, 0, "paper"))
            model.fit(training, folds=folds)
            scores = {}
            for rule in RULES:
                table = confusion(held_out.outcome, model.predict(held_out, rule=rule))
                scores[rule] = (micro_f1(table), macro_f1(table), *paper_f1(table))
            (micro, macro, *_), by_threshold = scores["map"], scores["threshold"]
            rows.append([name, scoring, *known["authors"], micro, macro, *by_threshold])
            if scoring == judged:
                ahead = micro > known["authors"][0] and macro > known["authors"][1]
                well &= ahead and micro >= known["least"]
            print(
                f"{name:<11} authors {known['authors'][0]:.3f} {known['authors'][1]:.3f}   "
                f"ours by {scoring:<8} {micro:.4f} {macro:.4f} (nu {model.nu_:g}, kappa "
                f"{model.kappa_:g}, t {model.time_:.3g})   at least {known['least']} asked for"
            )
        estimates += [
            [name, *by_estimate(scoring, chosen, training, held_out, folds)]
            for scoring in ("log_loss", "micro_f1")
            for chosen in ESTIMATES
        ]
    if not rows:
        return True
    header = ["", "folds choose by", "authors' micro", "macro", "ours, map: micro", "macro",
              "ours, threshold: micro", "macro", "program's micro", "macro"]  # fmt: skip
    text = [
        "# Fixed splits\n",
        "The authors' program and ours on the same test votes (standard F1s); nu, kappa and the "
        "time are chosen by the folds that come with the splits, by each of three criteria. Which "
        f"criterion is judged ({judged}) was settled with these test votes in sight.\n",
        markdown(header, rows),
        "The last two columns are the F1s of the published program, of our predictions by the "
        "threshold rule.\n",
        "## Dense and sparse estimate\n",
        "The same fit at the same time (nu = 0.3, kappa = 30, the paper's terms, map rule), which "
        "the folds chose for one of the two estimates.\n",
        markdown(["", "folds choose by", "for", "users who have left", *(
            f"{estimate}: {what}" for estimate in ESTIMATES for what in (*F1S, "log-loss")
        )], estimates),
    ]  # fmt: skip
    run.write("splits.md", "\n".join(text))
    return well or run.quick


def by_estimate(
    scoring: Any, chosen: Any, training: Comparisons, held_out: Comparisons, folds: np.ndarray
) -> list[Any]:
    """Return how both estimates predict at the time that is best for one of them."""
    model = ISplitLBI(terms="paper", scoring=scoring, estimate=chosen, with_tests=False)
    model.fit(training, folds=folds)
    n_users = int(np.sum(training.votes_per_user > 0))
    row: list[Any] = [scoring, chosen, f"{len(model.left_consensus_)} of {n_users}"]
    for estimate in ESTIMATES:
        table = confusion(held_out.outcome, model.predict(held_out, estimate=estimate))
        chances = model.predict_log_proba(held_out, estimate=estimate)[:, 1 - model.classes_]
        row += [micro_f1(table), macro_f1(table), log_loss(held_out.outcome, chances)]
    return row


# --- tables --------------------------------------------------------------------------------------


def published_tables(found: Measured, published: dict[str, dict[str, list[float]]]) -> list[str]:
    """Return the paper's table: our figures by the protocol of the program, then its own."""
    text = ["## By the protocol of the published program, beside the published table\n"]
    header = ["", "min", "median", "mean", "max", "std",
              "published min", "median", "max", "std"]  # fmt: skip
    for which in F1S:
        rows = []
        for method in (PROGRAM, *found.ours.methods):
            # Where nothing is chosen by an F1, both protocols are the same.
            by_program = found.program[which]
            by = by_program if method in by_program.methods else found.ours
            values = by.of(method, f"paper_{which}_f1")
            low, middle, high, spread = by.statistics(method, f"paper_{which}_f1").values()
            theirs = published[which].get("isplitlbi" if method == PROGRAM else method, [None] * 4)
            if method == "isplitlbi":  # it is in the paper with the settings of the program
                theirs = [None] * 4
            rows.append([method, low, middle, float(values.mean()), high, spread, *theirs])
        text += [f"{which.capitalize()}-F1, as the program computes it:\n", markdown(header, rows)]
    return [
        *text,
        f"{PROGRAM} has nu and kappa of the program, and chooses the time by the F1 of the table. "
        "isplitlbi and lbi choose all by log-loss and the most probable outcome, as below; their "
        "predictions here are by the threshold.\n",
        WARNINGS,
    ]


def scores_table(found: Measured) -> str:
    header = ["", *(f"{m.replace('_f1', '')} {s}" for m in METRICS for s in STATISTICS), "seconds"]
    rows = [scores_row(method, found.ours, method) for method in found.ours.methods]
    return markdown(header, [scores_row(ALL_TERMS, found.all_terms, "isplitlbi"), *rows])


def scores_row(name: str, by: Evaluation, method: str) -> list[Any]:
    figures = [by.statistics(method, m)[s] for m in METRICS for s in STATISTICS]
    return [name, *figures, by.statistics(method, "seconds")["median"]]


def rules_table(found: Measured) -> str:
    """Return what the rule does to the standard F1s of every method that has probabilities."""
    rows = []
    for method in found.program["micro"].methods:
        mine = "isplitlbi" if method == PROGRAM else method
        rows.append([
            mine,
            *(found.ours.statistics(mine, f"{which}_f1")["median"] for which in F1S),
            *(found.program[which].statistics(method, f"{which}_f1")["median"] for which in F1S),
        ])  # fmt: skip
    header = ["", "map: micro", "macro", "threshold: micro", "macro"]
    return markdown(header, rows) + (
        f"\nBy the threshold, isplitlbi is {PROGRAM}, with its time chosen by the F1.\n"
    )


def estimates_table(found: Measured) -> str:
    rows = [
        [name, *(by.statistics("isplitlbi", m)["median"] for m in METRICS)]
        for name, by in (("dense", found.ours), ("sparse", found.sparse))
    ]
    gains = []
    for metric in METRICS:
        gain = found.ours.of("isplitlbi", metric) - found.sparse.of("isplitlbi", metric)
        gains.append(f"{metric.replace('_', ' ')} {gain.mean():+.4f} (from {gain.min():+.4f} to "
                     f"{gain.max():+.4f})")  # fmt: skip
    return markdown(["", "micro", "macro", "log-loss"], rows) + (
        "\nMedians; each estimate has nu, kappa and the time that the folds choose for it by "
        f"log-loss. Dense minus sparse on the same split, mean over the splits: {'; '.join(gains)}."
        "\n"
    )


def classes_tables(found: Measured) -> list[str]:
    text = []
    for rule, by in (("threshold", found.program["micro"]), ("most probable outcome", found.ours)):
        metrics = [m for m in by.scores.columns if m.startswith(("precision", "recall"))]
        rows = [[method, *(by.statistics(method, metric)["median"] for metric in metrics)]
                for method in by.methods]  # fmt: skip
        header = ["", *(metric.replace("_", " ") for metric in metrics)]
        text += [f"By the {rule}:\n", markdown(header, rows)]
    return text


def reliability_table(found: Evaluation, method: str) -> str:
    bins = found.reliability[method]
    rows = [
        [f"{k / len(bins):.1f} to {(k + 1) / len(bins):.1f}", f"{int(count):,}", said, happened]
        for k, (count, said, happened) in enumerate(bins)
    ]
    intro = (
        f"What {method} predicted for held-out votes, over all repeats, and how much of it came "
        "true; every vote counts once for each of the three outcomes.\n\n"
    )
    return intro + markdown(["probability", "predictions", "mean predicted", "came true"], rows)


def markdown(header: list[str], rows: list[list[Any]]) -> str:
    def cell(value: Any) -> str:
        if value is None or (isinstance(value, float) and np.isnan(value)):
            return "-"
        return f"{value:.3f}" if isinstance(value, float) else str(value)

    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines) + "\n"


def say(done: float, doing: str) -> None:
    print(f"\r{done:5.0%}  {doing:<40}", end="" if done < 1 else "\n", file=sys.stderr, flush=True)


def main() -> int:
    settings = tomllib.loads((HERE / "settings.toml").read_text(encoding="utf-8"))
    others = {"splits": run_splits, "figures": run_figures}
    studies = list(settings["studies"])
    names = [*studies, *others]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", help=f"any of {', '.join(names)}; all by default")
    parser.add_argument("--data", type=Path, help="folder of the votes")
    parser.add_argument("-o", "--output", type=Path, default=HERE.parent / "docs" / "results")
    parser.add_argument("--quick", action="store_true", help="few repeats of few methods")
    parser.add_argument("--all-terms", action="store_true",
                        help="only the default fit, into files that are there")  # fmt: skip
    asked = parser.parse_args()
    if unknown := set(asked.what) - set(names):
        parser.error(f"{', '.join(sorted(unknown))}: not one of {', '.join(names)}")
    if asked.all_terms and (fixed := set(asked.what) & set(others)):
        parser.error(f"{', '.join(sorted(fixed))}: not by all terms; name studies")
    asked.output.mkdir(parents=True, exist_ok=True)
    run = Run(settings, asked.data, asked.output, asked.quick)
    of_study = update_all_terms if asked.all_terms else run_study
    begun = perf_counter()
    well = [
        others[name](run) if name in others else of_study(run, name)
        for name in asked.what or (studies if asked.all_terms else names)
    ]
    print(f"{(perf_counter() - begun) / 60:.1f} minutes in all")
    return 0 if all(well) else 1


if __name__ == "__main__":
    sys.exit(main())
