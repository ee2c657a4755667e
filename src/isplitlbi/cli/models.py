"""The commands on a fitted model: rank, abnormal, predict, recommend, report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isplitlbi.cli.options import (
    As,
    Call,
    FileFormat,
    LeftColumn,
    Model,
    Quiet,
    RightColumn,
    Threads,
    User,
    UserColumn,
    called,
    refuse_existing_file,
)
from isplitlbi.errors import InvalidSetting
from isplitlbi.markup import printable
from isplitlbi.output.people import print_abnormal, print_user
from isplitlbi.output.summary import (
    print_card,
    print_leaderboard,
    print_pairs,
    print_ranking,
    print_recommended,
    print_tiers,
)
from isplitlbi.output.terminal import (
    Format,
    emit,
    late_bar,
    listen_to_remarks,
    progress_bar,
    remark,
    standard_output,
)

if TYPE_CHECKING:
    from isplitlbi.abnormal import Abnormality
    from isplitlbi.estimators.base import ScoreEstimator
    from isplitlbi.estimators.effect import Effect
    from isplitlbi.nouns import Nouns

__all__ = ["RowsFile", "known", "load", "refuse_same_folder", "save_report"]


Matrix = Annotated[
    bool,
    typer.Option("--matrix", help="Show every pair instead: what was voted, what is expected."),
]


def rank(
    model: Model,
    user: User = None,
    matrix: Matrix = False,
    estimate: Annotated[
        str,
        typer.Option(
            help="dense, or sparse: if the user has not left the consensus at the chosen time, the "
            "ranking is the consensus."
        ),
    ] = "dense",
    call: Call = None,
    format: As = Format.table,
) -> None:
    """Show the leaderboard of the consensus: ranks and scores with intervals, tiers and groups.

    A tier says that people call these items equal.
    A group says that the votes cannot tell these items apart yet.
    With --user, it shows that user's own ranking and describes the user.
    """
    from isplitlbi.output.tables import as_polars, ranking_table

    if matrix and user is not None:
        raise InvalidSetting("give --user or --matrix, not both: --matrix is for everybody.")
    if estimate != "dense" and user is None:
        raise InvalidSetting(
            f"--estimate {estimate} is for --user: the consensus is the same by any estimate."
        )
    fitted = load(model, call)
    who = known(fitted, "user", user)
    is_table = format is Format.table
    if matrix and is_table:
        print_pairs(standard_output(), fitted)
    elif matrix:
        emit(as_polars(fitted.head_to_head()), format)
    elif who is not None and estimate != "dense":
        _show_sparse(fitted, who, estimate, format)
    elif who is not None and is_table:
        print_card(standard_output(), fitted, who)
        print_ranking(standard_output(), fitted, who)
    elif who is not None:
        emit(ranking_table(fitted, who), format)
    elif not is_table:
        emit(as_polars(fitted.leaderboard()), format)
    elif fitted.has_votes():
        print_leaderboard(standard_output(), fitted)
    else:  # a table must not wait for files to be read
        print_tiers(standard_output(), fitted)
        remark(
            "Intervals and groups need the votes, which are not stored with this model: "
            "--format csv reads them."
        )


def _show_sparse(model: ScoreEstimator, user: Any, estimate: Any, format: Format) -> None:
    """Show a user's ranking by the sparse estimate, and say what that means for this user."""
    from isplitlbi.output.tables import as_polars

    found = model.ranking(user, estimate)
    if format is not Format.table:
        emit(as_polars(found), format)
        return
    print_ranking(standard_output(), model, user, estimate=estimate)
    if user in model.left_consensus_:
        meaning = "has left the consensus at the chosen time, so both estimates are the same"
    else:
        meaning = "has not left the consensus at the chosen time, so this is the consensus"
    remark(f"{printable(str(user))} {meaning}.")


# --- abnormal ------------------------------------------------------------------------------

Fdr = Annotated[
    float | None,
    typer.Option(
        help="Share of the named users who may be named by chance; by default the model's, 0.05."
    ),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        help="Only users of this kind, or of several separated by commas; may be repeated.",
    ),
]
Lists = Annotated[
    list[str] | None,
    typer.Option(
        "--list",
        help="Only users on this list: unreliable or different; several as with --kind. With "
        "--effect, the users on this list are left out; by default the unreliable ones.",
    ),
]
Everybody = Annotated[bool, typer.Option("--all", help="Also show users who are not abnormal.")]
OneUser = Annotated[
    str | None,
    typer.Option(
        "--user", help="Show only this user, with the votes that the consensus least expected."
    ),
]
WithEffect = Annotated[
    bool,
    typer.Option("--effect", help="Show every item instead, with and without these users."),
]


def abnormal(
    model: Model,
    fdr: Fdr = None,
    lists: Lists = None,
    kinds: Kinds = None,
    everybody: Everybody = False,
    user: OneUser = None,
    effect: WithEffect = False,
    call: Call = None,
    threads: Threads = None,
    quiet: Quiet = False,
    format: As = Format.table,
) -> None:
    """Show which users are unreliable, which are different, by how much and in which way.

    It also says whether the unreliable users change the result. With --format csv or json, it
    writes every user, and a column names the list.
    """
    import polars as pl

    from isplitlbi.output.tables import users_table, with_cards

    lists, kinds = _split(lists), _split(kinds)
    _refuse_unknown(lists, kinds)
    fitted = load(model, call, threads)
    found = _test_users(fitted, fdr, quiet)
    if effect:
        of_leaving_out = fitted.effect_of_leaving_out(kinds, found.fdr, lists)
        _show_effect(of_leaving_out, format, fitted.nouns)
        return
    if user is not None:
        _show_user(fitted, user, found.fdr, format)
        return
    table = users_table(fitted, found.fdr)
    if lists:
        table = table.filter(pl.col("list").is_in(lists))
    if kinds:
        table = table.filter(pl.col("kind").is_in(kinds))
    if format is not Format.table:
        emit(with_cards(table, fitted), format)
        return
    shown = table if everybody else table.filter("abnormal")
    print_abnormal(standard_output(), fitted, found, shown)


def _split(names: list[str] | None) -> list[str] | None:
    """Return names that are repeated or separated by commas, one by one."""
    if names is None:
        return None
    return [name.strip() for several in names for name in several.split(",")]


def _refuse_unknown(lists: list[str] | None, kinds: list[str] | None) -> None:
    from isplitlbi.abnormal import KINDS, LISTS

    for option, names, known in (("list", lists, LISTS), ("kind", kinds, tuple(KINDS))):
        for name in names or ():
            if name not in known:
                raise InvalidSetting(f"--{option} {name!r} is not one of {', '.join(known)}.")


def _test_users(model: ScoreEstimator, fdr: float | None, quiet: bool) -> Abnormality:
    """Return what is known of the users at this rate; where nothing is, they are tested now."""
    with progress_bar("Testing users", quiet) as progress:

        def tell(done: float) -> None:
            if progress is not None:
                progress(done, "drawing votes")

        return model.test_users(fdr, progress=tell)


def _show_effect(found: Effect, format: Format, nouns: Nouns) -> None:
    from isplitlbi.output.tables import as_polars

    emit(as_polars(found), format, nouns)
    if format is Format.table:
        standard_output().print(f"\n{found.sentence(nouns)}")


def _show_user(model: ScoreEstimator, user: str, fdr: float, format: Format) -> None:
    import polars as pl

    from isplitlbi.output.tables import as_polars, users_table

    votes = as_polars(model.telling_votes(known(model, "user", user)))
    if format is Format.table:
        print_user(standard_output(), users_table(model, fdr), user, model.nouns)
        chances = [f"{chance:.2g}" for chance in votes["probability"]]
        votes = votes.with_columns(pl.Series("probability", chances))
    emit(votes, format)


# --- predict, recommend, report ------------------------------------------------------------

PairsFile = Annotated[
    str,
    typer.Argument(
        help="File with the columns user, left and right, or in another layout of votes; - for "
        "standard input. Without a column of users, everybody is an unknown user. Where two sides "
        "differ in features of the model, the file also needs the columns of these features."
    ),
]
RowsFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="File to write instead of standard output; its ending says how: .csv, .jsonl or "
        ".parquet.",
    ),
]
RowsAs = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="How to write to standard output; csv by default. csv and json are written while "
        "the file is read, a table at the end.",
    ),
]


def predict(
    model: Model,
    pairs: PairsFile,
    output: RowsFile = None,
    input_format: FileFormat = None,
    user: UserColumn = None,
    left: LeftColumn = None,
    right: RightColumn = None,
    estimate: Annotated[
        str | None,
        typer.Option(help="dense or sparse, as for fit; by default as the model was fitted."),
    ] = None,
    call: Call = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    quiet: Quiet = False,
    format: RowsAs = None,
) -> None:
    """Predict the outcome of every (user, left, right), with its probabilities.

    The file may be larger than memory: it is read and predicted in batches. A file that is written
    with -o is there as a whole at the end or, where a row cannot be predicted, not at all.
    """
    from isplitlbi.data.pairs import stream_pairs
    from isplitlbi.output.predictions import predict_in_bulk
    from isplitlbi.output.rows import refuse_unknown_ending, rows_to_file, rows_to_output

    if output is not None:
        if format is not None:
            raise InvalidSetting("give --output or --format: the ending of a file is its format.")
        refuse_unknown_ending(output)
        refuse_existing_file(output, force=force)
    listen_to_remarks(quiet)
    fitted = load(model, call)
    if estimate is not None:  # what is none is refused before anything is read
        fitted.estimated(estimate)  # type: ignore[arg-type]
    units = fitted.fitted_.summary.units
    batches = stream_pairs(
        pairs, format=input_format, user=user, left=left, right=right,
        features=None if units is None else units.names,
    )  # fmt: skip
    if output is None:
        rows = rows_to_output(format or Format.csv, fitted.nouns)
    else:
        rows = rows_to_file(output)
    shows_rows = output is None and sys.stdout.isatty()
    with late_bar("Predicting", quiet or shows_rows) as progress, rows as write:
        found = predict_in_bulk(fitted, batches, write, progress, estimate)  # type: ignore[arg-type]
    if output is not None:
        print(f"Predictions: {printable(str(output))} ({found.n_pairs:,} pairs).")
    if not quiet and (sentence := found.unknown.sentence()):
        remark(sentence)


def recommend(
    model: Model,
    user: User = None,
    same_as: Annotated[str | None, typer.Option(help="Items as good as this one.")] = None,
    better_than: Annotated[
        str | None, typer.Option(help="Items a little better than this one.")
    ] = None,
    call: Call = None,
    format: As = Format.table,
) -> None:
    """Recommend items that can replace an item, for everybody or for one user.

    For a user, it marks items that the user never compared: the consensus places these.
    """
    from isplitlbi.output.tables import as_polars

    if (same_as is None) == (better_than is None):
        raise InvalidSetting("give exactly one of --same-as and --better-than.")
    fitted = load(model, call)
    found = fitted.recommend(
        known(fitted, "user", user),
        same_as=known(fitted, "item", same_as),
        better_than=known(fitted, "item", better_than),
    )
    if format is Format.table and not found:
        other = "as good as" if better_than is None else "better than"
        none = f"No {fitted.nouns.item} is {other} {printable(same_as or better_than or '')}."
        standard_output().print(none, markup=False)
    elif format is Format.table:
        print_recommended(standard_output(), fitted, found)
    else:
        emit(as_polars(found), format)


def report(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")],
    title: Annotated[str | None, typer.Option(help="Heading of the report.")] = None,
    since: Annotated[
        Path | None,
        typer.Option(help="An earlier model: the report also says what changed since then."),
    ] = None,
    call: Call = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Write all results into one HTML file to open, send and present. It needs no network."""
    refuse_existing_file(output, force=force)
    if since is not None:
        refuse_same_folder(since, model)
    fitted = load(model, call, threads)
    earlier = None if since is None else load(since, call, threads)
    if fitted.has_users:
        _test_users(fitted, None, quiet)
    save_report(fitted, output, title, quiet, earlier)


def save_report(
    model: ScoreEstimator,
    file: Path,
    title: str | None,
    quiet: bool,
    since: ScoreEstimator | None = None,
) -> None:
    """Write the report of a model and say where it is."""
    from isplitlbi.output.report import write_report

    with progress_bar("Report", quiet) as progress:
        write_report(model, file, title=title, since=since, progress=progress)
    size = f"{file.stat().st_size / 1e6:.1f} MB"
    print(f"Report: {printable(str(file))} ({size}). Open it in a browser.")


# --- models and their ids ------------------------------------------------------------------


def load(folder: Path, call: list[str] | None = None, threads: int | None = None) -> ScoreEstimator:
    """Read a model; what is called otherwise now is so for this command only."""
    from isplitlbi.nouns import Nouns
    from isplitlbi.storage import load_model

    words = called(call)
    model = load_model(folder)
    if words is not None:
        model.call = {**(model.call or {}), **words}
        Nouns.of(model.call)  # together with those that the model knows
    if "n_jobs" in model.get_params():
        model.set_params(n_jobs=threads)
    return model


def refuse_same_folder(before: Path, after: Path) -> None:
    """Refuse to compare a model with itself."""
    if before.resolve() == after.resolve():
        raise InvalidSetting(
            f"{before} and {after} are the same folder, so nothing can have changed. Give two "
            "models."
        )


def known(model: ScoreEstimator, kind: str, name: str | None) -> Any:
    """Return an id of the model as the model spells it; an unknown one is an error."""
    from isplitlbi.data.vocabulary import Vocabulary

    if kind == "user" and name is not None:
        model.refuse_without_users("no user to ask for")
    ids = model.users_ if kind == "user" else model.items_
    return None if name is None else Vocabulary(ids, kind).spelled(name)
