"""The command line: parse, call the library, hand over to `terminal`.

Results go to standard output, everything else to standard error. What a person did wrong is one
sentence and exit code 2.
"""

from __future__ import annotations

import functools
import inspect
import sys
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

import typer

import isplitlbi
from isplitlbi.errors import ISplitLBIError, Setting
from isplitlbi.output.terminal import (
    Format,
    emit,
    fitting_bar,
    listen_to_remarks,
    print_abnormal,
    print_entries,
    print_evaluation,
    print_json,
    print_report,
    print_scores,
    print_summary,
    print_tiers,
    print_user,
    progress_bar,
    standard_output,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from isplitlbi.data.readers import Parts, Reading
    from isplitlbi.estimators.isplitlbi import ISplitLBI

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
    except _Told:
        raise
    except SystemExit as ended:
        if ended.code == INTERRUPTED:  # by Ctrl-C, of which the parser makes an exit
            _fail("interrupted.", INTERRUPTED)
        raise
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
    except ISplitLBIError as error:
        _fail(error.told(_flag))
    except (ValueError, ImportError) as error:
        _fail(str(error))


def _flag(setting: Setting) -> str:
    """Spell a setting as an option."""
    return f"--{setting.name.replace('_', '-')}"


class _Told(SystemExit):
    """The end, after a sentence about it."""


def _fail(sentence: str, code: int = BAD_INPUT) -> NoReturn:
    print(f"isplitlbi: {sentence}", file=sys.stderr)
    raise _Told(code)


# --- options that several commands share ---------------------------------------------------


class BothBad(StrEnum):
    """What becomes of votes that both sides are bad."""

    tie = "tie"
    drop = "drop"


Votes = Annotated[
    str,
    typer.Argument(
        help="File of votes, or folder of such: CSV, TSV, Parquet or JSON lines; - for standard "
        "input."
    ),
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


# --- how votes are read --------------------------------------------------------------------


class Source(NamedTuple):
    """Where votes are, and how to read them."""

    place: str
    options: dict[str, Any]

    def read(self) -> Reading:
        """Read them here."""
        from isplitlbi.data.readers import read_votes

        return read_votes(self.place, **self.options)

    def parts(self) -> Parts | None:
        """Return the parts of a folder, for others to read."""
        from isplitlbi.data.readers import Parts

        return Parts.of(self.place, **self.options) if Path(self.place).is_dir() else None


def _source(
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
) -> Source:
    if not votes:
        raise ValueError("the name of the file of votes is empty.")
    labels = {}
    for pair in label or []:
        word, equals, meaning = pair.rpartition("=")
        if not equals or meaning not in ("left", "right", "tie"):
            raise ValueError(
                f"--label {pair} is not of the form word=left, word=tie or word=right."
            )
        labels[word] = meaning
    options = {
        "format": input_format, "preset": preset, "user": user, "left": left, "right": right,
        "winner": winner, "weight": weight, "group": group, "labels": labels,
        "both_bad": both_bad.value, "drop_invalid": drop_invalid,
    }  # fmt: skip
    return Source(votes, options)


def _reads_votes(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the arguments of `_source` in place of ``source``."""
    reading, own = (inspect.signature(function, eval_str=True) for function in (_source, command))

    @functools.wraps(command)
    def run(**arguments: Any) -> None:
        asked = {name: arguments.pop(name) for name in reading.parameters}
        command(source=_source(**asked), **arguments)

    others = [each for name, each in own.parameters.items() if name != "source"]
    kept = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in (*reading.parameters.values(), *others)
    ]
    run.__signature__ = own.replace(parameters=kept)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in kept}
    return run


# --- from votes to a model -----------------------------------------------------------------


@app.command()
@_reads_votes
def check(
    source: Source,
    format: As = Format.table,
) -> None:
    """Say what is in a file of votes, and what is wrong with it.

    Exit code 0: usable. 1: usable, with serious warnings. 2: unusable.
    """
    from isplitlbi.diagnostics.check import check as examine

    reading = source.read()
    report = examine(reading.votes)
    if format is Format.table:
        print_report(reading, report)
    elif format is Format.json:
        print_json({"preset": reading.preset, "notes": reading.notes, **report.as_dict()})
    else:
        import polars as pl

        rows = [
            {"severity": finding.severity.name.lower(), "code": finding.code,
             "sentence": finding.sentence}
            for finding in report.findings
        ]  # fmt: skip
        schema = dict.fromkeys(("severity", "code", "sentence"), pl.String)
        emit(pl.DataFrame(rows, schema=schema), format)
    raise typer.Exit(int(report.is_serious))


@app.command()
@_reads_votes
def fit(
    source: Source,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model folder to write.")],
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
    scheduler: Annotated[
        str | None,
        typer.Option(help="Fit on the workers of this Dask scheduler, such as tcp://host:8786."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Fit on so many Dask workers, started here.")
    ] = None,
    threads: Threads = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    format: As = Format.table,
) -> None:
    """Fit a model to votes and write it to a folder."""
    import shutil
    from contextlib import nullcontext

    from isplitlbi.errors import PlaceTaken
    from isplitlbi.estimators.isplitlbi import ISplitLBI
    from isplitlbi.storage import refuse_existing, save_model, summary

    listen_to_remarks(quiet)
    if scheduler is not None and workers is not None:
        raise ValueError("give --scheduler or --workers, not both.")
    refuse_existing(output, force=force)
    unfinished = output.with_name(f".{output.name}.unfinished")
    if unfinished.exists() and not resume:
        if not force:
            raise PlaceTaken(
                f"a fit of {output} was interrupted; go on with --resume, or start anew with "
                "--force."
            )
        shutil.rmtree(unfinished)
    if resume and not unfinished.exists() and not quiet:
        print(f"There is no interrupted fit of {output}: starting anew.", file=sys.stderr)
    on_cluster = scheduler is not None or workers is not None
    votes: Any = source.parts() if on_cluster else None
    if votes is None:
        reading = source.read()
        for note in () if quiet else reading.notes:
            print(note, file=sys.stderr)
        votes = reading.votes
    chosen: dict[str, Any] = {}
    if nu:
        chosen["nu"] = nu[0] if len(nu) == 1 else nu
    if kappa:
        chosen["kappa"] = kappa[0] if len(kappa) == 1 else kappa
    model = ISplitLBI(
        link=link, rule=rule, scoring=scoring, n_folds=folds, time=time,  # type: ignore[arg-type]
        snapshots=unfinished / "snapshots", n_jobs=threads, random_state=seed, **chosen,
    )  # fmt: skip
    cluster: Any = nullcontext()
    if on_cluster:
        from isplitlbi.runtime.dask import client_of

        cluster = client_of(scheduler, workers)
    begun = perf_counter()
    try:
        with cluster as client:
            with fitting_bar(quiet) as progress:
                model.fit(
                    votes, progress=progress, checkpoints=unfinished,
                    checkpoint_every=checkpoint_seconds, client=client,
                )  # fmt: skip
            _test_users(model, quiet, client)
        save_model(model, output, force=force)
    except KeyboardInterrupt:
        if any(unfinished.rglob("*.npz")):
            _fail("interrupted; go on with the same command and --resume.", INTERRUPTED)
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    except Exception:
        if not any(unfinished.rglob("*.npz")):
            shutil.rmtree(unfinished, ignore_errors=True)
        raise
    seconds = perf_counter() - begun
    shutil.rmtree(unfinished, ignore_errors=True)
    figures = {"model": str(output), "seconds": round(seconds, 2), "time": model.time_,
               "nu": model.nu_, "kappa": model.kappa_, **summary(model)}  # fmt: skip
    if format is Format.json:
        print_json(figures)
    elif format is Format.csv:
        import polars as pl

        scores = figures.pop("held_out", {})
        emit(pl.DataFrame([figures | scores]), format)
    else:
        print_summary(standard_output(), model, output, seconds)


@app.command()
@_reads_votes
def evaluate(
    source: Source,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Names or families, separated by commas: isplitlbi, lbi, per-user, margin-mle, "
            "alpha-cut, all; all but alpha-cut by default."
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Number of random splits.")] = 20,
    test_share: Annotated[
        float, typer.Option(help="Share of every user's votes that is held out.")
    ] = 0.2,
    min_votes: Annotated[
        int, typer.Option(min=1, help="Leave out users with fewer votes; 7 in the paper.")
    ] = 1,
    rule: Annotated[
        str, typer.Option(help="Predict the likeliest outcome (map) or by the threshold.")
    ] = "map",
    scoring: Annotated[
        str, typer.Option(help="What chooses nu, kappa and time: log_loss, micro_f1 or macro_f1.")
    ] = "log_loss",
    with_reliability: Annotated[
        bool, typer.Option("--reliability", help="Also show how far probabilities can be trusted.")
    ] = False,
    threads: Threads = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    format: As = Format.table,
) -> None:
    """Say whether individual rankings predict better on these votes, and better than what.

    The paper's protocol: hold out a fifth of every user's votes, fit every method on the rest,
    predict; repeatedly.
    """
    from isplitlbi.evaluation.protocol import DEFAULT_METHODS
    from isplitlbi.evaluation.protocol import evaluate as run

    listen_to_remarks(quiet)
    asked = DEFAULT_METHODS if methods is None else [name.strip() for name in methods.split(",")]
    reading = source.read()
    for note in () if quiet else reading.notes:
        print(note, file=sys.stderr)
    with progress_bar("Evaluating", quiet) as progress:
        found = run(
            reading.votes, asked, repeats=repeats, test_share=test_share, min_votes=min_votes,
            rule=rule, scoring=scoring, seed=seed, n_jobs=threads,  # type: ignore[arg-type]
            progress=progress,
        )  # fmt: skip
    if format is Format.json:
        print_json(found.as_dict())
    elif format is Format.csv:
        emit(found.summary(), format)
    else:
        print_evaluation(standard_output(), found, with_reliability)


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

    from isplitlbi.evaluation.simulate import simulate as draw
    from isplitlbi.files import written_whole
    from isplitlbi.output.tables import WINNERS

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
        if name != "-":
            _refuse_existing_file(Path(name), force)
    for name, table in tables.items():
        if name == "-":
            emit(table, Format.csv)
        else:
            with written_whole(Path(name)) as unfinished:
                table.write_csv(unfinished)


# --- what a model says ---------------------------------------------------------------------


@app.command()
def rank(model: Model, user: User = None, format: As = Format.table) -> None:
    """Show the ranking in tiers, of the consensus or of one user."""
    from isplitlbi.output.tables import ranking_table

    fitted = _load(model)
    who = _known(fitted, "user", user)
    table = ranking_table(fitted, who)
    if format is not Format.table:
        emit(table, format)
        return
    console = standard_output()
    print_tiers(console, fitted, who)


@app.command()
def abnormal(
    model: Model,
    fdr: Annotated[
        float | None,
        typer.Option(
            help="Share of those named who may be named by chance; the model's own, 0.05, "
            "by default."
        ),
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option(help="Only users of this kind; may be repeated.")
    ] = None,
    everybody: Annotated[
        bool, typer.Option("--all", help="Also the users who are not abnormal.")
    ] = False,
    user: Annotated[
        str | None, typer.Option(help="Instead: this user, and the votes that tell most.")
    ] = None,
    effect: Annotated[
        bool, typer.Option("--effect", help="Instead: every item with and without those users.")
    ] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    format: As = Format.table,
) -> None:
    """Show who does not vote like the consensus: how surely, in which way, and if it matters.

    Files and other programs (csv, json) get every user, with a column that says who is abnormal.
    """  # fmt: skip
    import polars as pl

    from isplitlbi.abnormal import KINDS
    from isplitlbi.output.tables import effect_table, telling_votes_table, users_table

    for name in kind or ():
        if name not in KINDS:
            raise ValueError(f"--kind {name!r} is not one of {', '.join(KINDS)}.")
    fitted = _load(model)
    fitted.n_jobs = threads
    fdr = fitted.fdr if fdr is None else fdr
    _test_users(fitted, quiet, fdr=fdr)
    if effect:
        found = fitted.effect_of_leaving_out(kind, fdr=fdr)
        emit(effect_table(found), format)
        if format is Format.table:
            standard_output().print(f"\n{found.sentence()}")
        return
    if user is not None:
        votes = telling_votes_table(fitted, _known(fitted, "user", user))
        if format is Format.table:
            print_user(standard_output(), users_table(fitted, fdr), user)
            chances = [f"{chance:.2g}" for chance in votes["probability"]]
            votes = votes.with_columns(pl.Series("probability", chances))
        emit(votes, format)
        return
    table = users_table(fitted, fdr)
    if kind:
        table = table.filter(pl.col("kind").is_in(kind))
    if format is not Format.table:
        emit(table, format)
        return
    shown = table if everybody else table.filter("abnormal")
    print_abnormal(standard_output(), fitted, shown, fdr)


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

    from isplitlbi.data.readers import read_pairs
    from isplitlbi.output.tables import predictions_table

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
    emit(predicted, format)


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
    from isplitlbi.output.tables import recommendations_table

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
        standard_output().print(f"No item is {other} {same_as or better_than}.", markup=False)
    else:
        emit(table, format)


@app.command()
def report(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")],
    title: Annotated[str | None, typer.Option(help="Heading of the report.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Write all of it into one HTML file to open, send and present; it needs no network."""
    _refuse_existing_file(output, force)
    fitted = _load(model)
    fitted.n_jobs = threads
    _write_report(fitted, output, title, quiet)


@app.command()
def demo(
    seed: Seed = 0,
    users: Annotated[int, typer.Option(min=2, help="Number of users.")] = 50,
    items: Annotated[int, typer.Option(min=2, help="Number of items.")] = 20,
    output: Annotated[
        Path | None, typer.Option("--report", help="Also write the report, to this HTML file.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing report.")] = False,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Run the paper's simulated study end to end; no input needed."""
    from isplitlbi.estimators.isplitlbi import ISplitLBI
    from isplitlbi.evaluation.simulate import simulate as draw
    from isplitlbi.model.links import Logistic
    from isplitlbi.model.parameters import Parameters
    from isplitlbi.selection import score_votes
    from isplitlbi.solvers import fit_consensus

    listen_to_remarks(quiet)
    if output is not None:
        _refuse_existing_file(output, force)
    console = standard_output()
    votes, truth = draw(n_users=users, n_items=items, random_state=seed)
    training, held_out = votes.split_within_user(0.2, rng=seed)
    console.print(f"[bold]Simulated study[/], seed {seed}: {repr(votes).split(': ')[1]}.")
    console.print(
        f"{int(truth.abnormal.sum())} users have a taste of their own; the others share one. "
        f"{len(held_out):,} votes are held out.\n"
    )
    begun = perf_counter()
    with fitting_bar(quiet) as progress:
        model = ISplitLBI(random_state=seed, n_jobs=threads).fit(training, progress=progress)
    seconds = perf_counter() - begun

    print_tiers(console, model)
    print_entries(console, model, truth)

    link = Logistic()
    alone = fit_consensus(training, link, model.delta)
    nobody = Parameters(votes.slots, alone, 0.0 * model.parameters_.deviation)
    scores = {
        "consensus only": score_votes(held_out, nobody, link),
        "iSplit LBI": score_votes(held_out, model.parameters_, link),
    }
    print_scores(console, scores)
    console.print(
        f"\nFitted in {seconds:.1f} s: {model.n_folds} folds and the final path, "
        f"{model.path_.n_steps} steps of it; stopped at t = {model.time_:.3g}."
    )
    if output is not None:
        _write_report(model, output, "The simulated study of isplitlbi demo", quiet)


# --- in and out ----------------------------------------------------------------------------


def _refuse_existing_file(file: Path, force: bool) -> None:
    if file.is_dir():
        raise ValueError(f"{file} is a folder; name a file in it.")
    if not file.parent.is_dir():
        raise ValueError(f"{file.parent}: there is no such folder.")
    if file.exists() and not force:
        raise ValueError(f"{file} exists already; choose another name or use --force.")


def _test_users(
    model: ISplitLBI, quiet: bool, client: Any = None, fdr: float | None = None
) -> None:
    with progress_bar("Testing users", quiet) as progress:

        def tell(done: float) -> None:
            if progress is not None:
                progress(done, "drawing votes")

        model.abnormality(fdr, tell, client)


def _write_report(model: ISplitLBI, file: Path, title: str | None, quiet: bool) -> None:
    from isplitlbi.output.report import TITLE, write_report

    with progress_bar("Report", quiet) as progress:
        write_report(model, file, title=TITLE if title is None else title, progress=progress)
    print(f"Report: {file} ({file.stat().st_size / 1e6:.1f} MB). Open it in a browser.")


def _load(folder: Path) -> ISplitLBI:
    from isplitlbi.storage import load_model

    return load_model(folder)


def _known(model: ISplitLBI, kind: str, name: str | None) -> Any:
    """Return an id of the model as the model spells it; an unknown one is an error."""
    from isplitlbi.data.vocabulary import Vocabulary, show

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
