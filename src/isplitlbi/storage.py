"""The model folder: a fitted model on disk, for people and for programs.

    model.json       which estimator, its settings, what was chosen, the votes' fingerprint,
                     figures, what outcomes are called
    about.json       the day of the fit, the name of the file of the votes, the number of threads:
                     no number rests on it
    README.txt       what people may want to know who open the folder
    consensus.csv    tier,item,score: a copy for people
    users.csv        every user: list, effect, p-values, kind, quality, entry; a copy for people
    votes.npz        the votes, indexed; where workers have read them, only who voted how often
    path.npz         the regularization path, where there is one, and the consensus at all its steps
    parameters.npz   consensus and deviations, where there is no path to take them from
    standing.npz     how surely the scores are known, where that was found or takes next to no time
    abnormal.npz     the tests of the users, where they were tested, and what is ordinary among them
    without.npz      the leaderboard without the unreliable, where that takes next to no time
    selection.npz    the score curves of the cross-validation, where there was one

A folder is written beside its place and then renamed, so that it is whole or not there at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import isplitlbi
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.features import Features, Units
from isplitlbi.data.labels import NUMBERS, OutcomeLabels
from isplitlbi.data.layout import Layout, Slots, Vector
from isplitlbi.data.outcomes import OUTCOMES, WINNERS
from isplitlbi.data.readers import OPTIONS, Parts
from isplitlbi.data.summary import Summary
from isplitlbi.errors import (
    InvalidSetting,
    InvalidVotes,
    PlaceTaken,
    Setting,
    UnreadableModel,
    UnreadablePath,
)
from isplitlbi.estimators import LBI, ISplitLBI, MarginMLE, PerUser, ScoreEstimator
from isplitlbi.estimators.certainty import Standing
from isplitlbi.estimators.contract import check_is_fitted
from isplitlbi.files import (
    folder_written_whole,
    read_arrays,
    read_whole,
    write_arrays,
    write_table,
)
from isplitlbi.fitting import Fitted
from isplitlbi.lazy import pl
from isplitlbi.model.links import LINKS, link_named
from isplitlbi.model.parameters import Parameters
from isplitlbi.model.terms import Terms
from isplitlbi.output.tables import main_figures, ranking_table, users_table
from isplitlbi.path import MOST_SNAPSHOTS, RegularizationPath, spread_out
from isplitlbi.solvers import SOLVERS, Dynamics
from isplitlbi.stored_people import board_as_arrays, board_of, tests_as_arrays, tests_of
from isplitlbi.stored_selection import selection_as_arrays, selection_from, selection_in_words

__all__ = ["ESTIMATORS", "load_model", "refuse_existing", "save_model"]

FORMAT, FORMAT_VERSION = "isplitlbi model", 8
READABLE = (7, 8)  # in version 7, outcomes were always numbers

README = """\
This folder is a fitted model of isplitlbi. To see what is in it:

    isplitlbi rank FOLDER         the consensus
    isplitlbi abnormal FOLDER     users whose votes stand out
    isplitlbi report FOLDER       all of it, as a page

consensus.csv and users.csv are copies for people. Programs do not read them: to edit or to delete
them changes nothing. All other files belong together; none of them can be edited.
"""

# What can be stored; a new estimator that has scores is added here.
ESTIMATORS: dict[str, type[ScoreEstimator]] = {
    estimator.__name__: estimator for estimator in (ISplitLBI, LBI, MarginMLE, PerUser)
}

_IDS, _COLUMNS = ("users", "items"), ("user", "left", "right", "outcome")
_OPTIONAL = ("weight", "group", "time", "duration")
_COUNTS = ("votes_per_user", "n_ties", "digest")


def refuse_existing(folder: Path, *, force: bool = False) -> None:
    """Refuse to write a model where something is, unless forced, and then only over a model."""
    if not folder.exists() and not folder.is_symlink():
        return
    if not force:
        raise PlaceTaken(
            f"{folder} exists already; choose another name or use ", Setting("force", True), "."
        )
    if not (folder / "model.json").is_file():
        raise PlaceTaken(
            f"{folder} is not a model folder, and is not replaced even by ",
            Setting("force", True), ".",
        )  # fmt: skip


def save_model(model: ScoreEstimator, folder: str | Path, *, force: bool = False) -> None:
    """Write a fitted model; an existing one is replaced only by ``force``."""
    check_is_fitted(model)
    if ESTIMATORS.get(type(model).__name__) is not type(model):
        raise InvalidSetting(
            f"only {', '.join(ESTIMATORS)} can be stored, not {type(model).__name__}."
        )
    fitted = model.fitted_
    _refuse_some_of_the_votes(fitted.votes)
    target = Path(folder)
    refuse_existing(target, force=force)
    described, about = _description(model), _about(model)
    try:
        with folder_written_whole(target, replaces=force) as unfinished:
            _write_json(unfinished / "model.json", described)
            _write_json(unfinished / "about.json", about)
            _write_model(model, unfinished)
    except FileExistsError as error:
        if error.filename != str(target):  # such as a file where a folder should be
            raise
        raise PlaceTaken(f"another process wrote {target} meanwhile; its model is kept.") from None


def load_model(folder: str | Path) -> ScoreEstimator:
    """Read a model that `save_model` wrote; anything else gives one clear error.

    Where another process replaces the model meanwhile, it is the old one or the new one.
    """
    return read_whole(Path(folder), _load)


def _load(source: Path) -> ScoreEstimator:
    if not source.is_dir():
        there_is = (
            "this is a file, not a model folder" if source.exists() else "there is no such folder"
        )
        raise UnreadableModel(f"{source}: {there_is}.")
    if not (source / "model.json").is_file():
        raise UnreadableModel(f"{source}: this is not a model folder; it has no model.json.")
    try:
        return _loaded(source)
    except (UnreadableModel, UnreadablePath):
        raise
    except Exception as error:  # a damaged file may fail in any way
        raise UnreadableModel(
            f"{source}: this model is damaged ({type(error).__name__}); fit it again."
        ) from None


# --- what is written -----------------------------------------------------------------------------


def _write_model(model: ScoreEstimator, unfinished: Path) -> None:
    fitted = model.fitted_
    (unfinished / "README.txt").write_text(README, encoding="utf-8")
    write_table(unfinished / "consensus.csv", ranking_table(model))
    if model.has_users:
        write_table(unfinished / "users.csv", users_table(model))
    write_arrays(unfinished / "votes.npz", _votes_as_arrays(fitted))
    if fitted.path is None or fitted.time is None:
        write_arrays(unfinished / "parameters.npz", _parameters_as_arrays(fitted.parameters))
    else:
        _small_enough(fitted.path, fitted.time).save(unfinished / "path.npz")
    if model.stands_already:
        standing = model.standing()._asdict() | {"fingerprint": fitted.summary.fingerprint}
        write_arrays(unfinished / "standing.npz", standing)
    if hasattr(model, "abnormality_"):
        tests = tests_as_arrays(model.abnormality_, fitted.summary.fingerprint)
        write_arrays(unfinished / "abnormal.npz", tests)
        without = model.without_unreliable() if model.stands_already else None
        if without is not None:
            board = board_as_arrays(*without, fitted.summary.fingerprint)
            write_arrays(unfinished / "without.npz", board)
    if fitted.selection is not None:
        write_arrays(unfinished / "selection.npz", selection_as_arrays(fitted.selection))


def _description(model: ScoreEstimator) -> dict[str, Any]:
    fitted = model.fitted_
    description = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "isplitlbi": isplitlbi.__version__,
        "estimator": type(model).__name__,
        "fingerprint": fitted.summary.fingerprint,
        "settings": _settings(model),
        "chosen": _chosen(fitted),
        "spreads": {name: float(spread) for name, spread in fitted.spreads.items()},
        "summary": main_figures(model),
        "tested": hasattr(model, "abnormality_"),
        "labels": {WINNERS[k]: label for k, label in model.outcome_labels_.by_outcome().items()},
    }
    if isinstance(fitted.votes, Parts):
        description["votes_in"] = {
            "folder": str(fitted.votes.folder),
            "files": [file.name for file in fitted.votes.files],
            "options": dict(fitted.votes.options),
        }
    if fitted.selection is not None:
        description["selection"] = selection_in_words(fitted.selection)
    return description


def _about(model: ScoreEstimator) -> dict[str, Any]:
    """Return what decides no number: when and how it was fitted, and the file of the votes."""
    fitted = model.fitted_
    file = None if isinstance(fitted.votes, Parts) else fitted.votes.file
    return {"date": fitted.date, "file": file, "n_jobs": model.get_params().get("n_jobs")}


def _write_json(file: Path, values: dict[str, Any]) -> None:
    text = json.dumps(values, indent=2, ensure_ascii=False)
    # A file's name may be no text; it comes back as it was.
    file.write_text(text + "\n", encoding="utf-8", errors="surrogateescape")


def _settings(model: ScoreEstimator) -> dict[str, Any]:
    """Return the parameters of the estimator as plain values."""
    link = link_named(model.get_params()["link"])
    if type(link) is not LINKS.get(link.name):
        raise InvalidSetting(f"a model with a link of one's own ({link.name}) cannot be stored.")
    settings = {name: _plain(value) for name, value in model.get_params().items()}
    settings["link"] = link.name
    settings.pop("n_jobs", None)  # how many threads decides no number
    if "snapshots" in settings:
        settings["snapshots"] = None
    if "solver" in settings:
        settings["solver"] = _described_solver(settings["solver"])
    return settings


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    is_array = isinstance(value, np.ndarray | np.generic | list | tuple)
    return np.asarray(value).tolist() if is_array else value


def _described_solver(solver: Any) -> Any:
    if isinstance(solver, str):
        return solver
    for name, scheme in SOLVERS.items():
        if type(solver) is scheme:
            return {"name": name, **asdict(solver)}  # type: ignore[call-overload]
    raise InvalidSetting(f"a model with a solver of one's own ({solver!r}) cannot be stored.")


def _chosen(fitted: Fitted) -> dict[str, float]:
    chosen = dict(fitted.chosen)
    if fitted.dynamics is not None and fitted.time is not None:
        chosen |= {
            "time": fitted.time, "nu": fitted.dynamics.nu, "kappa": fitted.dynamics.kappa,
            "delta": fitted.dynamics.delta, "reach": fitted.dynamics.reach,
        }  # fmt: skip
    return chosen


def _small_enough(path: RegularizationPath, time: float) -> RegularizationPath:
    """Thin out the snapshots until they fit; the one at the chosen time is always kept."""
    size = path.deviation.nbytes + path.sparse.nbytes
    if size <= MOST_SNAPSHOTS:
        return path
    n_times = len(path.times)
    n_kept = max(int(n_times * MOST_SNAPSHOTS / size) - 1, 0)
    at = spread_out(n_times, n_kept, int(np.searchsorted(path.times, time)))
    return replace(
        path, times=path.times[at], consensus=path.consensus[at],
        deviation=np.array(path.deviation[at]), sparse=np.array(path.sparse[at]),
    )  # fmt: skip


def _refuse_some_of_the_votes(votes: Comparisons | Parts) -> None:
    if isinstance(votes, Comparisons):
        alone = Comparisons(
            **{name: getattr(votes, name) for name in (*_IDS, *_COLUMNS, *_OPTIONAL)}
        )
        theirs, all_slots = (Layout.of(some).slots.coordinate for some in (alone, votes))
        if not np.array_equal(theirs, all_slots):
            raise InvalidVotes(
                "a model of a part of votes, where a user or an item has none left, cannot be "
                "stored; fit it on Comparisons of their own."
            )


def _votes_as_arrays(fitted: Fitted) -> dict[str, Any]:
    """Return the votes as plain arrays; ids, which may be of any length, as texts."""
    summary, votes = fitted.summary, fitted.votes
    arrays: dict[str, Any] = {name: getattr(summary, name).tolist() for name in _IDS}
    if summary.units is not None:
        arrays |= {"features": list(summary.units.names), "scale": summary.units.scale}
    if isinstance(votes, Parts):
        if summary.weight_unit != 1.0:
            arrays["weight_unit"] = np.array(summary.weight_unit)
        return arrays | {name: getattr(summary, name) for name in _COUNTS}
    for name in (*_COLUMNS, *_OPTIONAL):
        if getattr(votes, name) is not None:
            arrays[name] = getattr(votes, name)
    if votes.given_weight is not None:
        arrays |= {"weight": votes.given_weight, "weight_unit": np.array(votes.weight_unit)}
    if votes.groups is not None:
        arrays["groups"] = votes.groups.tolist()
    if votes.is_anonymous:
        arrays["is_anonymous"] = np.array(True)
    if votes.id is not None and votes.id.null_count() < len(votes):
        are_numbers = votes.id.dtype.is_integer() and not votes.id.has_nulls()
        arrays["id"] = votes.id.to_numpy() if are_numbers else votes.id.to_list()
    if votes.features is not None:
        arrays["differences"] = votes.features.differences
    return arrays


def _parameters_as_arrays(parameters: Parameters) -> dict[str, Any]:
    return {
        "terms": parameters.terms.as_dict(),
        "vector": {"n_items": parameters.vector.n_items, "traits": list(parameters.vector.traits)},
        "slot_start": parameters.slots.start,
        "slot_coordinate": parameters.slots.coordinate,
        "consensus": parameters.consensus,
        "deviation": parameters.deviation,
    }


# --- what is read --------------------------------------------------------------------------------


def _read_json(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8", errors="surrogateescape"))
    return found


def _loaded(source: Path) -> ScoreEstimator:
    described = _read_json(source / "model.json")
    if described["format"] != FORMAT:
        raise UnreadableModel(f"{source}: this is not a model folder.")
    if described["version"] not in READABLE:
        raise UnreadableModel(
            f"{source}: format version {described['version']} cannot be read here: this release "
            f"reads versions {' and '.join(map(str, READABLE))}, so fit the model again."
        )
    settings, chosen = dict(described["settings"]), dict(described["chosen"])
    if isinstance(settings.get("solver"), dict):
        solver = dict(settings["solver"])
        settings["solver"] = SOLVERS[solver.pop("name")](**solver)
    # Without this, nobody knows when, how and from where; that is all.
    about = _read_json(source / "about.json") if (source / "about.json").is_file() else {}
    if about.get("n_jobs") is not None:
        settings["n_jobs"] = about["n_jobs"]
    model = ESTIMATORS[described["estimator"]](**settings)
    votes, summary = _votes_of(source, described.get("votes_in"), about.get("file"))
    path = dynamics = time = selection = None
    if (source / "path.npz").exists() or "time" in chosen:
        time = chosen.pop("time")
        dynamics = Dynamics(*(chosen.pop(name) for name in ("nu", "kappa", "delta", "reach")))
        path = RegularizationPath.load(source / "path.npz")
        parameters = path.at(time)
        same_fit = all(path.settings[name] == value for name, value in asdict(dynamics).items())
    else:
        parameters, same_fit = _parameters_of(source), True
    same_votes = summary.fingerprint == described["fingerprint"]
    if not (same_fit and same_votes and _fit_together(parameters, votes, summary)):
        raise UnreadableModel(f"{source}: its files do not belong together; fit the model again.")
    if "selection" in described and time is not None:
        arrays = read_arrays(source / "selection.npz")
        selection = selection_from(arrays, described["selection"], time)
    link = link_named(settings["link"])
    fitted = Fitted(
        votes, summary, link, dynamics, time, parameters, path, selection, chosen=chosen,
        spreads=described["spreads"], date=about.get("date", ""),
    )  # fmt: skip
    tests = tests_of(source, fitted) if described["tested"] else None
    labels = _labels_of(described.get("labels"))
    if parameters.terms.has_ties and len(set(labels.outcomes)) != len(OUTCOMES):
        raise UnreadableModel(f"{source}: it has no words for some outcomes; fit the model again.")
    standing, without = _standing_of(source, fitted), board_of(source, fitted)
    return model.adopt(fitted, tests, labels=labels, standing=standing, without=without)


def _labels_of(described: dict[str, Any] | None) -> OutcomeLabels:
    """Return what outcomes are called."""
    if described is None:
        return NUMBERS
    return OutcomeLabels.of({OUTCOMES[word]: label for word, label in described.items()})


def _votes_of(
    source: Path, votes_in: dict[str, Any] | None, file: str | None
) -> tuple[Comparisons | Parts, Summary]:
    """Return the votes, or the parts they are in, and their main figures."""
    arrays = read_arrays(source / "votes.npz")
    for name in {*_IDS, "groups"} & arrays.keys():
        ids = arrays[name]
        arrays[name] = np.array(ids, dtype=object if isinstance(ids[0], str) else np.int64)
    if "id" in arrays:
        arrays["id"] = pl.Series("id", arrays["id"])
    units = None
    if "is_anonymous" in arrays:
        arrays["is_anonymous"] = bool(arrays["is_anonymous"])
    if "features" in arrays:
        units = Units(tuple(arrays.pop("features")), arrays.pop("scale"))
    if votes_in is None:
        if units is not None:
            arrays["features"] = Features(units.names, arrays.pop("differences"), units.scale)
        unit = arrays.pop("weight_unit", None)  # older folders have weights as they were fitted
        votes = Comparisons(**arrays | {name: arrays.get(name) for name in _OPTIONAL}, file=file)
        votes = votes if unit is None else votes.in_weight_unit(float(unit))
        return votes, Summary.of(votes)
    folder, names, options = (votes_in[name] for name in ("folder", "files", "options"))
    if not (isinstance(names, list) and names and set(options) <= set(OPTIONS)):
        raise UnreadableModel(
            f"{source}: where its votes are is not readable; fit the model again."
        )
    parts = Parts(Path(folder), tuple(Path(folder) / name for name in names), options)
    numbers = {"n_ties": int(arrays["n_ties"]), "weight_unit": float(arrays.get("weight_unit", 1))}
    return parts, Summary(**arrays | numbers, units=units)


def _parameters_of(source: Path) -> Parameters:
    arrays = read_arrays(source / "parameters.npz")
    described, terms = arrays["vector"], Terms.from_dict(arrays["terms"])
    vector = Vector(described["n_items"], tuple(described["traits"]), terms.has_habits)
    slots = Slots.of(arrays["slot_start"], arrays["slot_coordinate"], vector)
    return Parameters(vector, slots, arrays["consensus"], arrays["deviation"], terms)


def _fit_together(parameters: Parameters, votes: Comparisons | Parts, summary: Summary) -> bool:
    """Say whether parameters are of these votes, as far as one can see."""
    slots: NDArray[Any] = parameters.slots.coordinate
    fits = (
        parameters.slots.n_users == len(summary.users)
        and parameters.vector.n_items == len(summary.items)
        and parameters.consensus.shape == (parameters.vector.width,)
        and parameters.deviation.shape == slots.shape
    )
    if fits and isinstance(votes, Comparisons):
        layout = parameters.terms.layout(votes)
        return np.array_equal(slots, layout.slots.coordinate)
    return bool(fits)


def _standing_of(source: Path, fitted: Fitted) -> Standing | None:
    """Return how surely the scores are known, if that was stored."""
    if not (source / "standing.npz").is_file():
        return None
    values = read_arrays(source / "standing.npz")
    same_votes = values.pop("fingerprint") == fitted.summary.fingerprint
    freedom, prior_variance = float(values.pop("freedom")), float(values.pop("prior_variance"))
    found = Standing(**values, freedom=freedom, prior_variance=prior_variance)
    n_items = fitted.parameters.n_items
    shapes = found.estimate.shape, found.covariance.shape
    of_all = (n_items,), (n_items, n_items)
    if not same_votes or shapes not in (of_all, ((n_items,), (n_items,))):
        raise UnreadableModel(f"{source}: its files do not belong together; fit the model again.")
    return found
