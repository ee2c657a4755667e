"""The command line: parse, call the library, print.

Results go to standard output, everything else to standard error. What a person did wrong is one
sentence and exit code 2.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

import isplitlbi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl
    from rich.console import Console

    from isplitlbi.checks import Report
    from isplitlbi.estimators import ISplitLBI
    from isplitlbi.readers import Reading
    from isplitlbi.simulate import Truth
    from isplitlbi.solvers import Progress

app = typer.Typer(
    name="isplitlbi",
    help="From votes on pairs, with ties, to a consensus ranking, everyone's own, and the abnormal "
    "users.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

BAD_INPUT, INTERRUPTED = 2, 130


def main() -> None:
    """Run the command line; what goes wrong is told in one sentence."""
    try:
        app()
    except KeyboardInterrupt:
        _fail("interrupted.", INTERRUPTED)
    except BrokenPipeError:
        # Whoever read the output has seen enough; nothing more may be written to it.
        sys.stdout = None
        raise SystemExit(0) from None
    except OSError as error:
        _fail(f"{error.filename or 'the system'}: {error.strerror or error}.")
    except MemoryError:
        _fail("there is not enough memory for this.")
    except (ValueError, ImportError) as error:
        _fail(str(error))
    except RuntimeError as error:
        from isplitlbi.selection import PathFailed

        if not isinstance(error, PathFailed):
            raise
        _fail(str(error))


def _fail(sentence: str, code: int = BAD_INPUT) -> NoReturn:
    print(f"isplitlbi: {sentence}", file=sys.stderr)
    raise SystemExit(code)


# --- options that several commands share ---------------------------------------------------


class Format(StrEnum):
    """How a result is written."""

    table = "table"
    csv = "csv"
    json = "json"


class BothBad(StrEnum):
    """What becomes of votes that both sides are bad."""

    tie = "tie"
    drop = "drop"


Votes = Annotated[
    str,
    typer.Argument(help="File of votes: CSV, TSV, Parquet or JSON lines; - for standard input."),
]
Model = Annotated[Path, typer.Argument(help="Model folder, as written by fit.")]
As = Annotated[Format, typer.Option("--format", help="How to write the result.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Threads = Annotated[
    int | None, typer.Option(min=1, help="Threads to use; all that there are by default.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks.")]
Preset = Annotated[
    str | None, typer.Option(help="Layout of the file; recognised from its columns by default.")
]
FileFormat = Annotated[
    str | None,
    typer.Option("--input-format", help="csv, tsv, parquet or jsonl; recognised by default."),
]
UserColumn = Annotated[str | None, typer.Option("--user", help="Column of the users.")]
LeftColumn = Annotated[str | None, typer.Option("--left", help="Column of the left items.")]
RightColumn = Annotated[str | None, typer.Option("--right", help="Column of the right items.")]
WinnerColumn = Annotated[str | None, typer.Option("--winner", help="Column of the outcomes.")]
WeightColumn = Annotated[str | None, typer.Option("--weight", help="Column of weights.")]
GroupColumn = Annotated[
    str | None,
    typer.Option("--group", help="Column of groups: votes that stay together in splits."),
]
Labels = Annotated[
    list[str] | None,
    typer.Option("--label", help="What a word means, such as draw=tie; may be repeated."),
]
BothBadVotes = Annotated[
    BothBad, typer.Option("--both-bad", help="Votes that both sides are bad: a tie, or dropped.")
]
DropInvalid = Annotated[
    bool, typer.Option("--drop-invalid", help="Drop rows that cannot be votes, and say how many.")
]
User = Annotated[str | None, typer.Option(help="This user's own; the consensus by default.")]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"isplitlbi {isplitlbi.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """From votes on pairs to rankings with ties, one for everybody and one for each."""


# --- from votes to a model -----------------------------------------------------------------


@app.command()
def check(
    votes: Votes,
    input_format: FileFormat = None,
    preset: Preset = None,
    user: UserColumn = None,
    left: LeftColumn = None,
    right: RightColumn = None,
    winner: WinnerColumn = None,
    weight: WeightColumn = None,
    group: GroupColumn = None,
    label: Labels = None,
    both_bad: BothBadVotes = BothBad.tie,
    drop_invalid: DropInvalid = False,
    format: As = Format.table,
) -> None:
    """Say what is in a file of votes, and what is wrong with it.

    Exit code 0: usable. 1: usable, with serious warnings. 2: unusable.
    """
    from isplitlbi.checks import check as examine

    reading = _read(
        votes, input_format, preset, user, left, right, winner, weight, group, label, both_bad,
        drop_invalid,
    )  # fmt: skip
    report = examine(reading.votes)
    if format is Format.table:
        _print_report(reading, report)
    elif format is Format.json:
        _print_json({"preset": reading.preset, "notes": reading.notes, **report.as_dict()})
    else:
        import polars as pl

        rows = [
            {"severity": finding.severity.name.lower(), "code": finding.code,
             "sentence": finding.sentence}
            for finding in report.findings
        ]  # fmt: skip
        schema = dict.fromkeys(("severity", "code", "sentence"), pl.String)
        _emit(pl.DataFrame(rows, schema=schema), format)
    raise typer.Exit(int(report.is_serious))


@app.command()
def fit(
    votes: Votes,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model folder to write.")],
    input_format: FileFormat = None,
    preset: Preset = None,
    user: UserColumn = None,
    left: LeftColumn = None,
    right: RightColumn = None,
    winner: WinnerColumn = None,
    weight: WeightColumn = None,
    group: GroupColumn = None,
    label: Labels = None,
    both_bad: BothBadVotes = BothBad.tie,
    drop_invalid: DropInvalid = False,
    nu: Annotated[
        list[float] | None,
        typer.Option(help="Variance of weak deviations; given several, the best is chosen."),
    ] = None,
    kappa: Annotated[
        list[float] | None,
        typer.Option(help="Damping of the path; given several, the best is chosen."),
    ] = None,
    link: Annotated[str, typer.Option(help="logistic, probit or uniform.")] = "logistic",
    rule: Annotated[
        str, typer.Option(help="Predict the likeliest outcome (map) or by the threshold.")
    ] = "map",
    scoring: Annotated[
        str, typer.Option(help="What chooses the time: log_loss, micro_f1 or macro_f1.")
    ] = "log_loss",
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    time: Annotated[
        float | None, typer.Option(help="Where to stop on the path, instead of cross-validation.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing model.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted fit.")
    ] = False,
    checkpoint_seconds: Annotated[
        float, typer.Option(min=0.0, help="Least time between two checkpoints.")
    ] = 10.0,
    threads: Threads = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    format: As = Format.table,
) -> None:
    """Fit a model to votes and write it to a folder."""
    import shutil

    from isplitlbi.estimators import ISplitLBI
    from isplitlbi.storage import ModelExists, refuse_existing, save_model, summary

    _listen(quiet)
    refuse_existing(output, force=force)
    unfinished = output.with_name(f".{output.name}.unfinished")
    if unfinished.exists() and not resume:
        if not force:
            raise ModelExists(
                f"a fit of {output} was interrupted; go on with --resume, or start anew with "
                "--force."
            )
        shutil.rmtree(unfinished)
    if resume and not unfinished.exists() and not quiet:
        print(f"There is no interrupted fit of {output}: starting anew.", file=sys.stderr)
    reading = _read(
        votes, input_format, preset, user, left, right, winner, weight, group, label, both_bad,
        drop_invalid,
    )  # fmt: skip
    for note in () if quiet else reading.notes:
        print(note, file=sys.stderr)
    chosen: dict[str, Any] = {}
    if nu:
        chosen["nu"] = nu[0] if len(nu) == 1 else nu
    if kappa:
        chosen["kappa"] = kappa[0] if len(kappa) == 1 else kappa
    model = ISplitLBI(
        link=link, rule=rule, scoring=scoring, n_folds=folds, time=time,  # type: ignore[arg-type]
        snapshots=unfinished / "snapshots", n_jobs=threads, random_state=seed, **chosen,
    )  # fmt: skip
    begun = perf_counter()
    try:
        with _progress_bar("Fitting", quiet) as progress:
            model.fit(
                reading.votes, progress=progress, checkpoints=unfinished,
                checkpoint_every=checkpoint_seconds,
            )  # fmt: skip
        save_model(model, output, force=force)
    except KeyboardInterrupt:
        if any(unfinished.glob("*.npz")):
            _fail("interrupted; go on with the same command and --resume.", INTERRUPTED)
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    except Exception:
        if not any(unfinished.glob("*.npz")):
            shutil.rmtree(unfinished, ignore_errors=True)
        raise
    seconds = perf_counter() - begun
    shutil.rmtree(unfinished, ignore_errors=True)
    figures = {"model": str(output), "seconds": round(seconds, 2), "time": model.time_,
               "nu": model.nu_, "kappa": model.kappa_, **summary(model)}  # fmt: skip
    if format is Format.json:
        _print_json(figures)
    elif format is Format.csv:
        import polars as pl

        scores = figures.pop("held_out", {})
        _emit(pl.DataFrame([figures | scores]), format)
    else:
        _print_summary(_console(), model, output, seconds)


@app.command()
def simulate(
    output: Annotated[
        str, typer.Option("--output", "-o", help="CSV file to write; - for standard output.")
    ],
    users: Annotated[int, typer.Option(min=2, help="Number of users.")] = 50,
    items: Annotated[int, typer.Option(min=2, help="Number of items.")] = 20,
    least: Annotated[int, typer.Option(min=1, help="Fewest votes of a user.")] = 200,
    most: Annotated[int, typer.Option(min=1, help="Most votes of a user.")] = 400,
    truth: Annotated[
        Path | None, typer.Option(help="Another file, for who is truly abnormal and how.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    seed: Seed = 0,
) -> None:
    """Write simulated votes: the paper's study, or one of its kind."""
    import polars as pl

    from isplitlbi.files import written_whole
    from isplitlbi.simulate import simulate as draw
    from isplitlbi.tables import WINNERS

    if least > most:
        raise ValueError(f"--least {least} is more than --most {most}.")
    study = draw(n_users=users, n_items=items, votes_per_user=(least, most), random_state=seed)
    votes = study.votes
    frame = pl.DataFrame(
        {
            "user": votes.users[votes.user],
            "left": votes.items[votes.left],
            "right": votes.items[votes.right],
            "winner": [WINNERS[outcome] for outcome in votes.outcome.tolist()],
        }
    )
    tables = {output: frame}
    if truth is not None:
        tables[str(truth)] = pl.DataFrame(
            {"user": votes.users, "abnormal": study.truth.abnormal, "kind": study.truth.kind}
        )
    for name in tables:
        if name != "-" and Path(name).exists() and not force:
            raise ValueError(f"{name} exists already; choose another name or use --force.")
    for name, table in tables.items():
        if name == "-":
            _emit(table, Format.csv)
        else:
            with written_whole(Path(name)) as unfinished:
                table.write_csv(unfinished)


# --- what a model says ---------------------------------------------------------------------


@app.command()
def rank(model: Model, user: User = None, format: As = Format.table) -> None:
    """Show the ranking in tiers, of the consensus or of one user."""
    from isplitlbi.tables import ranking_table

    fitted = _load(model)
    who = _known(fitted, "user", user)
    table = ranking_table(fitted, who)
    if format is not Format.table:
        _emit(table, format)
        return
    console = _console()
    _print_tiers(console, fitted, who)


@app.command()
def abnormal(
    model: Model,
    everybody: Annotated[
        bool, typer.Option("--all", help="Also the users who are not abnormal.")
    ] = False,
    format: As = Format.table,
) -> None:
    """Show who left the consensus, the earliest first.

    Files and other programs (csv, json) get every user, with a column that says who is abnormal.
    """
    import polars as pl

    from isplitlbi.tables import users_table

    fitted = _load(model)
    table = users_table(fitted)
    if format is not Format.table:
        _emit(table, format)
        return
    console = _console()
    out, everyone = int(table["abnormal"].sum()), len(table)
    shown = table if everybody else table.filter(pl.col("abnormal")) if out else table.head(10)
    console.print(
        f"{out} of {everyone} users are outside the consensus at the time chosen for prediction "
        f"(t = {fitted.time_:.3g})."
    )
    console.print("The first to leave, later on the path:\n" if not (out or everybody) else "")
    _emit(shown, Format.table)
    console.print(
        "\nAn early entry means a strong deviation, not a bad voter: careless users leave early, "
        "and so do unusually consistent ones. Look at their own rankings first."
    )


@app.command()
def predict(
    model: Model,
    pairs: Annotated[str, typer.Argument(help="File with the columns user,left,right; or -.")],
    input_format: FileFormat = None,
    user: UserColumn = None,
    left: LeftColumn = None,
    right: RightColumn = None,
    quiet: Quiet = False,
    format: As = Format.csv,
) -> None:
    """Predict the outcome of every (user, left, right), with its probabilities."""
    import polars as pl

    from isplitlbi.readers import read_pairs
    from isplitlbi.tables import predictions_table

    fitted = _load(model)
    asked = read_pairs(pairs, format=input_format, user=user, left=left, right=right)
    if fitted.users_.dtype.kind in "iu":
        asked = asked.with_columns(pl.col("user").cast(pl.Int64, strict=False).fill_null(-1))
    if fitted.items_.dtype.kind in "iu":
        asked = asked.with_columns(pl.col("left", "right").cast(pl.Int64, strict=False))
    predicted = predictions_table(fitted, asked)
    unknown = asked.filter(~pl.col("user").is_in(fitted.users_.tolist()))["user"].unique().sort()
    if len(unknown) and not quiet:
        first = ", ".join(map(str, unknown.head(3).to_list()))
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        print(
            f"Not in the votes of this model, so taken for the consensus: {first}{more}.",
            file=sys.stderr,
        )
    _emit(predicted, format)


@app.command()
def recommend(
    model: Model,
    user: User = None,
    same_as: Annotated[str | None, typer.Option(help="Items as good as this one.")] = None,
    better_than: Annotated[
        str | None, typer.Option(help="Items a little better than this.")
    ] = None,
    format: As = Format.table,
) -> None:
    """Recommend items in place of one, for everybody or for one user."""
    from isplitlbi.tables import recommendations_table

    if (same_as is None) == (better_than is None):
        raise ValueError("give exactly one of --same-as and --better-than.")
    fitted = _load(model)
    table = recommendations_table(
        fitted,
        _known(fitted, "user", user),
        same_as=_known(fitted, "item", same_as),
        better_than=_known(fitted, "item", better_than),
    )
    if format is Format.table and len(table) == 0:
        other = "as good as" if better_than is None else "better than"
        _console().print(f"No item is {other} {same_as or better_than}.", markup=False)
    else:
        _emit(table, format)


@app.command()
def demo(
    seed: Seed = 0,
    users: Annotated[int, typer.Option(min=2, help="Number of users.")] = 50,
    items: Annotated[int, typer.Option(min=2, help="Number of items.")] = 20,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Run the paper's simulated study end to end; no input needed."""
    from isplitlbi.estimators import ISplitLBI
    from isplitlbi.links import Logistic
    from isplitlbi.parameters import Parameters
    from isplitlbi.selection import score_votes
    from isplitlbi.simulate import simulate as draw
    from isplitlbi.solvers import fit_consensus

    _listen(quiet)
    console = _console()
    votes, truth = draw(n_users=users, n_items=items, random_state=seed)
    training, held_out = votes.split_within_user(0.2, rng=seed)
    console.print(f"[bold]Simulated study[/], seed {seed}: {repr(votes).split(': ')[1]}.")
    console.print(
        f"{int(truth.abnormal.sum())} users have a taste of their own; the others share one. "
        f"{len(held_out):,} votes are held out.\n"
    )
    begun = perf_counter()
    with _progress_bar("Fitting", quiet) as progress:
        model = ISplitLBI(random_state=seed, n_jobs=threads).fit(training, progress=progress)
    seconds = perf_counter() - begun

    _print_tiers(console, model)
    _print_entries(console, model, truth)

    link = Logistic()
    alone = fit_consensus(training, link, model.delta)
    nobody = Parameters(votes.slots, alone, 0.0 * model.parameters_.deviation)
    scores = {
        "consensus only": score_votes(held_out, nobody, link),
        "iSplit LBI": score_votes(held_out, model.parameters_, link),
    }
    _print_scores(console, scores)
    console.print(
        f"\nFitted in {seconds:.1f} s: {model.n_folds} folds and the final path, "
        f"{model.path_.n_steps} steps of it; stopped at t = {model.time_:.3g}."
    )


# --- in and out ----------------------------------------------------------------------------


def _read(
    source: str,
    input_format: str | None,
    preset: str | None,
    user: str | None,
    left: str | None,
    right: str | None,
    winner: str | None,
    weight: str | None,
    group: str | None,
    label: list[str] | None,
    both_bad: BothBad,
    drop_invalid: bool,
) -> Reading:
    from isplitlbi.readers import read_votes

    labels = {}
    for pair in label or []:
        word, equals, meaning = pair.rpartition("=")
        if not equals or meaning not in ("left", "right", "tie"):
            raise ValueError(
                f"--label {pair} is not of the form word=left, word=tie or word=right."
            )
        labels[word] = meaning
    return read_votes(
        source, format=input_format, preset=preset, user=user, left=left, right=right,
        winner=winner, weight=weight, group=group, labels=labels, both_bad=both_bad.value,
        drop_invalid=drop_invalid,
    )  # fmt: skip


def _load(folder: Path) -> ISplitLBI:
    from isplitlbi.storage import load_model

    return load_model(folder)


def _known(model: ISplitLBI, kind: str, name: str | None) -> Any:
    """Return an id of the model as the model spells it; an unknown one is an error."""
    from isplitlbi.vocabulary import Vocabulary, show

    if name is None:
        return None
    ids = model.users_ if kind == "user" else model.items_
    vocabulary = Vocabulary(ids, kind)
    spelled: Any = name
    if ids.dtype.kind in "iu":
        spelled = int(name) if name.lstrip("-").isdigit() else -1
    if vocabulary.encode([spelled])[0] < 0:
        raise ValueError(
            f"{kind} {show(name)} is not among the {len(ids)} {kind}s of this model; the nearest "
            f"is {show(vocabulary.nearest(spelled))}."
        )
    return spelled


def _emit(table: pl.DataFrame, format: Format) -> None:
    """Write a table to standard output."""
    if format is Format.csv:
        sys.stdout.write(table.write_csv())
    elif format is Format.json:
        _print_json(table.to_dicts())
    else:
        from rich.table import Table
        from rich.text import Text

        shown = Table(box=None, pad_edge=False)
        for name, kind in table.schema.items():
            shown.add_column(
                name.replace("_", " "), justify="right" if kind.is_numeric() else "left",
                overflow="fold",
            )  # fmt: skip
        for row in table.iter_rows():
            shown.add_row(*(Text(_shown(value)) for value in row))
        _console().print(shown)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    return _printable(str(value))


def _printable(text: str) -> str:
    """Return an id as it is, or with what would break a line or a terminal spelled out."""
    return text if text.isprintable() else ascii(text)[1:-1]


def _print_json(value: Any) -> None:
    import json

    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, emoji=False)


def _listen(quiet: bool) -> None:
    """Let remarks of the library through to standard error, or not."""
    import logging

    logging.getLogger("isplitlbi").setLevel(logging.ERROR if quiet else logging.WARNING)


def _print_report(reading: Reading, report: Report) -> None:
    console = _console()
    console.print(f"{repr(reading.votes).split(': ')[1]} ({reading.preset}).", markup=False)
    for note in reading.notes:
        console.print(note, markup=False)
    figures = report.summary
    least, median, most = (figures[f"votes_per_user_{what}"] for what in ("min", "median", "max"))
    console.print(f"Votes per user: {least:g} to {most:g}, half of them at most {median:g}.")
    from rich.table import Table
    from rich.text import Text

    findings = Table.grid(padding=(0, 2, 1, 0))
    for finding in report.findings:
        severity = finding.severity.name.lower()
        findings.add_row(Text(severity, style="bold"), Text(_printable(finding.sentence)))
    console.print()
    console.print(findings)


def _print_summary(console: Console, model: ISplitLBI, folder: Path, seconds: float) -> None:
    console.print(f"Fitted in {seconds:.1f} s: {repr(model.votes_).split(': ')[1]}.", markup=False)
    console.print(
        f"Stopped at t = {model.time_:.3g} of the path (nu {model.nu_:g}, kappa {model.kappa_:g}); "
        f"{len(model.abnormal_users_)} of {len(model.users_)} users are outside the consensus.\n"
    )
    _print_tiers(console, model, most=6)
    console.print(f"Written to {folder}. Go on with:", markup=False)
    for command in ("rank", "abnormal"):
        console.print(f"  isplitlbi {command} {folder}", markup=False)


def _print_tiers(
    console: Console, model: ISplitLBI, user: Any = None, most: int | None = None
) -> None:
    """Print a ranking, at most so many tiers of it."""
    from rich.table import Table
    from rich.text import Text

    ranking = model.ranking(user)
    whose = "Consensus" if user is None else f"{_printable(str(user))}'s own ranking"
    table = Table(title=Text(f"{whose}, in tiers"), title_justify="left", box=None, pad_edge=False)
    table.add_column("tier", justify="right")
    table.add_column("items (score)", overflow="fold")
    by_tier: dict[int, list[str]] = {}
    for tier, item, score, seen in zip(
        ranking.tier, ranking.items, ranking.scores, ranking.compared, strict=True
    ):
        star = "" if seen else "*"
        by_tier.setdefault(int(tier), []).append(f"{_printable(str(item))}{star} ({score:.2f})")
    for tier, members in list(by_tier.items())[:most]:
        table.add_row(str(tier), Text(", ".join(members)))
    console.print(table)
    if most is not None and len(by_tier) > most:
        console.print(f"... and {len(by_tier) - most} more tiers.")
    if not ranking.compared.all():
        console.print("* never compared by this user: placed by the consensus.")
    console.print(f"Two items tie when their scores differ by at most {ranking.threshold:.2f}.\n")


def _print_entries(console: Console, model: ISplitLBI, truth: Truth) -> None:
    from rich.table import Table

    table = Table(
        title="Users who left the consensus, in order", title_justify="left", box=None,
        pad_edge=False,
    )  # fmt: skip
    for name, justify in (("user", "left"), ("entry time", "right"), ("distance", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    table.add_column("truly")
    index = {user: place for place, user in enumerate(model.users_.tolist())}
    distance = model.distance_to_consensus()
    for user in model.abnormal_users_:
        place = index[user]
        table.add_row(
            user, f"{model.entry_times_[place]:.3f}", f"{distance[place]:.1f}", truth.kind[place]
        )
    console.print(table)
    found = {index[user] for user in model.abnormal_users_}
    true = {place for place, abnormal in enumerate(truth.abnormal) if abnormal}
    console.print(
        f"{len(found & true)} of the {len(true)} truly abnormal users found, "
        f"{len(found - true)} others named.\n"
    )


def _print_scores(console: Console, scores: dict[str, dict[str, float]]) -> None:
    from rich.table import Table

    table = Table(title="On held-out votes", title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for name in ("micro-F1", "macro-F1", "log-loss"):
        table.add_column(name, justify="right")
    for name, values in scores.items():
        row = (values["micro_f1"], values["macro_f1"], values["log_loss"])
        table.add_row(name, *(f"{value:.3f}" for value in row))
    console.print(table)


@contextmanager
def _progress_bar(what: str, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Show a bar on standard error while the work goes on."""
    if quiet:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"{what} (the first run compiles the loops)", total=1.0)

        def tell(progress: Progress) -> None:
            bar.update(
                task,
                completed=progress.done,
                description=f"{what}: {progress.users_out} users out",
            )

        yield tell
