"""The commands on files of votes: check, fit, evaluate, simulate."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isplitlbi.cli.exits import WARNED, Interrupted
from isplitlbi.cli.options import (
    As,
    Call,
    EstimateBy,
    Quiet,
    Rule,
    Seed,
    Threads,
    VotesToRead,
    called,
    reads_votes,
    refuse_existing_file,
)
from isplitlbi.cli.settings import (
    ModelSettings,
    SidesOf,
    refuse_unknown_scales,
    refuse_unknown_sides,
    takes_settings,
    takes_terms,
)
from isplitlbi.errors import InvalidSetting
from isplitlbi.output.summary import print_fit
from isplitlbi.output.terminal import (
    Format,
    emit,
    listen_to_remarks,
    model_bar,
    print_check,
    print_evaluation,
    print_json,
    progress_bar,
    remark,
    standard_output,
)

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import polars as pl

    from isplitlbi.data.comparisons import Comparisons
    from isplitlbi.data.readers import Parts
    from isplitlbi.estimators.isplitlbi import ISplitLBI
    from isplitlbi.evaluation.simulate import Study


# --- check ---------------------------------------------------------------------------------


Strict = Annotated[
    bool, typer.Option("--strict", help="Exit code 3 for any warning, not only for serious ones.")
]


@reads_votes
def check(
    votes: VotesToRead,
    strict: Strict = False,
    sides: SidesOf = "known",
    call: Call = None,
    format: As = Format.table,
) -> None:
    """Say what is in a file of votes, and what is wrong with it.

    Exit code 0: the votes are usable.
    Exit code 3: they are usable, but there are serious warnings, or any warnings with --strict.
    Exit code 2: they are not usable.
    """
    from isplitlbi.diagnostics.check import check as examine
    from isplitlbi.nouns import Nouns

    nouns = Nouns.of(called(call))
    refuse_unknown_sides(sides)
    reading = votes.read(quiet=True)
    with progress_bar("Checking", quiet=False) as progress:
        if progress is not None:  # nobody knows beforehand how long it takes
            progress(None, "fitting rankings to the votes")
        diagnosis = examine(reading.votes, sides=sides)  # type: ignore[arg-type]
    if format is Format.table:
        print_check(standard_output(), reading, diagnosis, nouns)
    elif format is Format.json:
        notes = [str(note) for note in reading.notes]
        print_json({"preset": reading.preset, "notes": notes, **diagnosis.as_dict()})
    else:
        import polars as pl

        columns = ("severity", "code", "sentence")
        rows = [[finding.as_dict()[name] for name in columns] for finding in diagnosis.findings]
        schema = dict.fromkeys(columns, pl.String)
        emit(pl.DataFrame(rows, schema=schema, orient="row"), format)
    bad = diagnosis.has_warnings if strict else diagnosis.is_serious
    raise typer.Exit(WARNED if bad else 0)


# --- fit -----------------------------------------------------------------------------------


ModelOutput = Annotated[Path, typer.Option("--output", "-o", help="Model folder to write.")]
LinkName = Annotated[str, typer.Option(help="logistic, probit or uniform.")]
TimeScoring = Annotated[
    str,
    typer.Option(
        help="Score that chooses the time: log_loss, micro_f1 or macro_f1; or, with --rule "
        "threshold, paper_micro_f1 or paper_macro_f1."
    ),
]
Folds = Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")]
StopTime = Annotated[
    float | None, typer.Option(help="Stop at this time, instead of cross-validation.")
]
ForceModel = Annotated[bool, typer.Option("--force", help="Replace an existing model.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with an interrupted fit.")]
CheckpointSeconds = Annotated[
    float, typer.Option(min=0.0, help="Shortest time between two checkpoints.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(help="Fit on the workers of this Dask scheduler, such as tcp://host:8786."),
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Start this many Dask workers here, and fit on them.")
]


@reads_votes
@takes_settings
def fit(
    votes: VotesToRead,
    output: ModelOutput,
    settings: ModelSettings,
    link: LinkName = "logistic",
    rule: Rule = "map",
    scoring: TimeScoring = "log_loss",
    estimate: EstimateBy = "dense",
    folds: Folds = 5,
    time: StopTime = None,
    call: Call = None,
    force: ForceModel = False,
    resume: Resume = False,
    checkpoint_seconds: CheckpointSeconds = 10.0,
    scheduler: Scheduler = None,
    workers: Workers = None,
    threads: Threads = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    format: As = Format.table,
) -> None:
    """Fit a model to votes and write it to a folder."""
    from isplitlbi.estimators.isplitlbi import ISplitLBI
    from isplitlbi.storage import save_model
    from isplitlbi.unfinished import Unfinished

    listen_to_remarks(quiet)
    refuse_unknown_scales(settings, votes.options["features"])
    words = called(call)
    cluster = _cluster(scheduler, workers)
    unfinished = Unfinished.fit_of(output, resume=resume, force=force)
    if resume and not unfinished.exists and not quiet:
        remark(f"There is no interrupted fit of {output}: this is a new fit.")
    model = ISplitLBI(
        link=link, rule=rule, scoring=scoring, estimate=estimate,  # type: ignore[arg-type]
        n_folds=folds, time=time,
        snapshots=unfinished.snapshots, n_jobs=threads, random_state=seed, call=words, **settings,
    )  # fmt: skip
    given: Comparisons | Parts | None = None if cluster is None else votes.parts()
    if given is None:
        given = votes.read(quiet=quiet).votes
    begun = perf_counter()
    try:
        with unfinished:
            with cluster or nullcontext() as client, model_bar("Fitting", quiet) as progress:
                model.fit(
                    given, progress=progress, checkpoints=unfinished.folder,
                    checkpoint_every=checkpoint_seconds, client=client,
                )  # fmt: skip
            save_model(model, output, force=force)
    except KeyboardInterrupt:
        if unfinished.can_be_resumed:
            raise Interrupted("go on with the same command and --resume.") from None
        raise
    show_fit(model, output, perf_counter() - begun, format)


def _cluster(scheduler: str | None, workers: int | None) -> AbstractContextManager[Any] | None:
    """Return the cluster to fit on, which begins when it is entered."""
    if scheduler is not None and workers is not None:
        raise InvalidSetting("give --scheduler or --workers, not both.")
    if scheduler is None and workers is None:
        return None
    from isplitlbi.runtime.dask import client_of

    return client_of(scheduler, workers)


def show_fit(model: ISplitLBI, output: Path, seconds: float, format: Format) -> None:
    """Print the main figures of a model that was written."""
    from isplitlbi.output.tables import main_figures

    if format is Format.table:
        print_fit(standard_output(), model, output, seconds)
        return
    figures: dict[str, Any] = {"model": str(output), "seconds": round(seconds, 2)}
    if model.has_users:
        figures |= {"time": model.time_, "nu": model.nu_, "kappa": model.kappa_}
    figures |= main_figures(model)
    if format is Format.json:
        print_json(figures)
    else:
        import polars as pl

        scores = figures.pop("held_out", {})
        emit(pl.DataFrame([figures | scores]), format)


# --- evaluate ------------------------------------------------------------------------------


Methods = Annotated[
    str | None,
    typer.Option(
        help="Names or families, separated by commas: isplitlbi, lbi, per-user, margin-mle, "
        "alpha-cut, all; all but alpha-cut by default."
    ),
]
Repeats = Annotated[int, typer.Option(min=1, help="Number of random splits.")]
TestShare = Annotated[float, typer.Option(help="Share of every user's votes that is held out.")]
MinVotes = Annotated[
    int, typer.Option(min=1, help="Leave out users with fewer votes; 7 in the published program.")
]
SettingsScoring = Annotated[
    str,
    typer.Option(
        help="Score that chooses nu, kappa and time: log_loss, micro_f1 or macro_f1; or, with "
        "--rule threshold, paper_micro_f1 or paper_macro_f1."
    ),
]
WithReliability = Annotated[
    bool, typer.Option("--reliability", help="Also show how far probabilities can be trusted.")
]


@reads_votes
@takes_terms
def evaluate(
    votes: VotesToRead,
    settings: ModelSettings,
    methods: Methods = None,
    repeats: Repeats = 20,
    test_share: TestShare = 0.2,
    min_votes: MinVotes = 1,
    rule: Rule = "map",
    scoring: SettingsScoring = "log_loss",
    estimate: EstimateBy = "dense",
    with_reliability: WithReliability = False,
    threads: Threads = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    format: As = Format.table,
) -> None:
    """Say whether individual rankings predict these votes better than other methods do.

    This is the paper's protocol: hold out a fifth of every user's votes, fit every method on the
    other votes, and predict the held-out votes. Repeat this with other random splits.
    """
    from isplitlbi.evaluation.protocol import evaluate as run

    listen_to_remarks(quiet)
    asked = None if methods is None else [name.strip() for name in methods.split(",")]
    reading = votes.read(quiet=quiet)
    with progress_bar("Evaluating", quiet) as progress:
        found = run(
            reading.votes, asked, repeats=repeats, test_share=test_share, min_votes=min_votes,
            rule=rule, scoring=scoring, estimate=estimate,  # type: ignore[arg-type]
            seed=seed, n_jobs=threads, progress=progress, **settings,
        )  # fmt: skip
    if format is Format.json:
        print_json(found.as_dict())
    elif format is Format.csv:
        emit(found.summary(), format)
    else:
        print_evaluation(standard_output(), found, with_reliability)


# --- simulate ------------------------------------------------------------------------------


Sharpness = Annotated[
    str,
    typer.Option(help="How much users' slopes differ from 1; or the slopes, such as 0,.5,1,2,-1."),
]
Side = Annotated[
    str,
    typer.Option(
        help="How much users lean to a side; or COMMON,OWN: how much everybody does, and how much "
        "users differ. Positive is to the left."
    ),
]
Taste = Annotated[float, typer.Option(help="How much everybody's scores differ.")]
TieHabit = Annotated[float, typer.Option(help="How much items differ in how often they tie.")]
FeatureEffects = Annotated[
    list[str] | None,
    typer.Option(
        "--feature", metavar="NAME=EFFECT",
        help="A column of differences and its effect in logits per unit, or NAME=COMMON,OWN.",
    ),
]  # fmt: skip
Forced = Annotated[bool, typer.Option("--forced", help="No ties: every vote names a winner.")]


def simulate(
    output: Annotated[
        str, typer.Option("--output", "-o", help="CSV file to write; - for standard output.")
    ],
    users: Annotated[int, typer.Option(min=2, help="Number of users.")] = 50,
    items: Annotated[int, typer.Option(min=2, help="Number of items.")] = 20,
    least: Annotated[int, typer.Option(min=1, help="Fewest votes of a user.")] = 200,
    most: Annotated[int, typer.Option(min=1, help="Most votes of a user.")] = 400,
    sharpness: Sharpness = "0",
    side: Side = "0",
    taste: Taste = 0.0,
    tie_habit: TieHabit = 0.0,
    feature: FeatureEffects = None,
    forced: Forced = False,
    truth: Annotated[
        Path | None, typer.Option(help="Also write who is truly abnormal, and how, to this file.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    seed: Seed = 0,
) -> None:
    """Write simulated votes: the paper's study, or a similar one."""
    from isplitlbi.evaluation.simulate import simulate as draw
    from isplitlbi.files import write_table, written_whole

    if least > most:
        raise InvalidSetting(f"--least {least} is more than --most {most}.")
    no_ties: dict[str, Any] = {"threshold": None} if forced else {}
    study = draw(
        n_users=users, n_items=items, votes_per_user=(least, most), random_state=seed,
        sharpness=_numbers("--sharpness", sharpness), side=_numbers("--side", side),
        taste_sd=taste, tie_habit=tie_habit, features=_effects(feature or []),
        **no_ties,
    )  # fmt: skip
    tables = {output: _votes_table(study)}
    if truth is not None:
        tables[str(truth)] = _truth_table(study)
    for name in tables:
        if name != "-":
            refuse_existing_file(Path(name), force=force)
    for name, table in tables.items():
        if name == "-":
            emit(table, Format.csv)
        else:
            with written_whole(Path(name)) as unfinished:
                write_table(unfinished, table)


def _numbers(flag: str, text: str) -> Any:
    """Return a number, or several that commas separate."""
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InvalidSetting(
            f"{flag} {text}: expected a number, or numbers separated by commas."
        ) from None
    return numbers if len(numbers) > 1 else numbers[0]


def _effects(given: list[str]) -> dict[str, Any]:
    """Return the effects of features by their names."""
    effects = {}
    for each in given:
        name, is_there, effect = each.partition("=")
        if not is_there:
            raise InvalidSetting(f"--feature {each}: expected NAME=EFFECT, such as length=0.5.")
        if name in effects:
            raise InvalidSetting(f"--feature {name} is given twice; give it once.")
        effects[name] = _numbers(f"--feature {name}:", effect)
    return effects


def _votes_table(study: Study) -> pl.DataFrame:
    import polars as pl

    from isplitlbi.data.outcomes import WINNERS

    votes = study.votes
    columns = {
        "user": votes.users[votes.user],
        "left": votes.items[votes.left],
        "right": votes.items[votes.right],
        "winner": [WINNERS[outcome] for outcome in votes.outcome.tolist()],
    }
    features: Any = getattr(votes, "features", None)
    if features is not None:
        raw = features.values * features.scale
        columns |= dict(zip(features.names, raw.T, strict=True))
    return pl.DataFrame(columns)


def _truth_table(study: Study) -> pl.DataFrame:
    """Return what is true of every user; sharpness and side where users differ in them."""
    import polars as pl

    truth = study.truth
    columns = {"user": study.votes.users, "abnormal": truth.abnormal, "kind": truth.kind}
    for name, usual in (("sharpness", 1.0), ("side", 0.0)):
        if (getattr(truth, name) != usual).any():
            columns[name] = getattr(truth, name)
    return pl.DataFrame(columns)
