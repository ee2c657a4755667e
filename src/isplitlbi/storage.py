"""The model folder: a fitted model on disk, for people and for programs.

    model.json       settings, what was chosen, the votes' fingerprint, a summary
    consensus.csv    tier,item,score
    users.csv        every user: entry, p-value, whether abnormal, kind, quality
    abnormal.npz     the same, for programs
    votes.npz        the votes, indexed; where workers have read them, only who voted how often
    path.npz         the regularization path
    selection.npz    the score curves of the cross-validation, where there was one

A folder is written beside its place and then renamed, so that it is whole or not there at all.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import isplitlbi
from isplitlbi.abnormal import Abnormality
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.readers import OPTIONS, Parts
from isplitlbi.data.summary import Overview
from isplitlbi.errors import PlaceTaken, UnreadableModel, UnreadablePath
from isplitlbi.estimators.isplitlbi import SOLVERS, ISplitLBI
from isplitlbi.model.links import LINKS, link_named
from isplitlbi.output.tables import ranking_table, users_table
from isplitlbi.path import MOST_SNAPSHOTS, RegularizationPath, spread_out
from isplitlbi.selection import ESTIMATES, SCORINGS, Curves, Selection
from isplitlbi.solvers import Dynamics, Scheme

FORMAT, FORMAT_VERSION = "isplitlbi model", 3

_IDS, _COLUMNS, _OPTIONAL = (
    ("users", "items"),
    ("user", "left", "right", "outcome"),
    ("weight", "group"),
)
_COUNTS = ("votes_per_user", "n_ties", "digest")


def refuse_existing(folder: Path, *, force: bool = False) -> None:
    """Refuse to write a model where something is, unless forced, and then only over a model."""
    if not folder.exists() and not folder.is_symlink():
        return
    if not force:
        raise PlaceTaken(f"{folder} exists already; choose another name or use --force.")
    if not (folder / "model.json").is_file():
        raise PlaceTaken(f"{folder} is not a model folder, and is not replaced even by --force.")


def save_model(model: ISplitLBI, folder: str | Path, *, force: bool = False) -> None:
    """Write a fitted model; an existing one is replaced only by ``force``."""
    check_is_fitted(model)
    if type(model) is not ISplitLBI:
        raise ValueError(f"only ISplitLBI can be stored, not {type(model).__name__}.")
    _refuse_some_of_the_votes(model._votes)
    target = Path(folder)
    refuse_existing(target, force=force)
    described = json.dumps(_description(model), indent=2, ensure_ascii=False)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    replaced = target.with_name(f".{target.name}.{os.getpid()}.old")
    try:
        unfinished.mkdir()
        # A file's name may be no text; it comes back as it was.
        (unfinished / "model.json").write_text(
            described + "\n", encoding="utf-8", errors="surrogateescape"
        )
        ranking_table(model).write_csv(unfinished / "consensus.csv")
        users_table(model).write_csv(unfinished / "users.csv")
        np.savez(unfinished / "votes.npz", allow_pickle=False, **_arrays(model))
        np.savez(unfinished / "abnormal.npz", allow_pickle=False, **_tested(model))
        _small_enough(model.path_, model.time_).save(unfinished / "path.npz")
        if model.selection_ is not None:
            np.savez(unfinished / "selection.npz", allow_pickle=False, **_curves(model.selection_))
        if target.exists():
            target.rename(replaced)
        unfinished.rename(target)
    except BaseException:
        if replaced.exists() and not target.exists():
            replaced.rename(target)
        raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)


def load_model(folder: str | Path) -> ISplitLBI:
    """Read a model that `save_model` wrote; anything else gives one clear error."""
    source = Path(folder)
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


def summary(model: ISplitLBI) -> dict[str, Any]:
    """Return the main figures of a fitted model."""
    votes = model.overview_
    found: dict[str, Any] = {
        "votes": votes.n_votes,
        "users": len(votes.users),
        "items": len(votes.items),
        "ties": votes.tie_share,
        "threshold": model.threshold_,
        "left_consensus": len(model.left_consensus_),
        "abnormal_users": len(model.abnormal_users_),
        "steps": model.path_.n_steps,
    }
    if model.selection_ is not None:
        curves = model.selection_.chosen
        best = int(np.argmin(np.abs(curves.times - model.time_)))
        found["held_out"] = {
            scoring: float(curves.mean(scoring)[best])  # type: ignore[arg-type]
            for scoring in SCORINGS
        }
    return found


def _description(model: ISplitLBI) -> dict[str, Any]:
    link = link_named(model.link)
    if type(link) is not LINKS.get(link.name):
        raise ValueError(f"a model with a link of one's own ({link.name}) cannot be stored.")
    scheme = model._scheme()
    settings = model.get_params()
    for name in ("nu", "kappa", "times"):
        settings[name] = np.asarray(settings[name]).tolist()
    settings["link"], settings["snapshots"] = link.name, None
    settings["solver"] = {"name": _name_of(scheme), **asdict(scheme)}  # type: ignore[call-overload]
    description = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "isplitlbi": isplitlbi.__version__,
        "fingerprint": model.overview_.fingerprint,
        "settings": settings,
        "chosen": {"time": model.time_, "nu": model.nu_, "kappa": model.kappa_},
        "summary": summary(model),
    }
    if isinstance(model._votes, Parts):
        parts = model._votes
        description["votes_in"] = {
            "folder": str(parts.folder),
            "files": [file.name for file in parts.files],
            "options": dict(parts.options),
        }
    if model.selection_ is not None:
        candidates = model.selection_.candidates
        description["selection"] = {
            "scoring": model.selection_.scoring,
            "rule": model.selection_.rule,
            "candidates": [asdict(curves.dynamics) for curves in candidates],
            "chosen": candidates.index(model.selection_.chosen),
        }
    return description


def _name_of(scheme: Scheme) -> str:
    for name, kind in SOLVERS.items():
        if type(scheme) is kind:
            return name
    raise ValueError(f"a model with a solver of one's own ({scheme!r}) cannot be stored.")


def _small_enough(path: RegularizationPath, time: float) -> RegularizationPath:
    """Thin out the snapshots until they fit; the one at the chosen time is always kept."""
    size = path.deviation.nbytes + path.sparse.nbytes
    if size <= MOST_SNAPSHOTS:
        return path
    n_times = len(path.times)
    n_kept = max(int(n_times * MOST_SNAPSHOTS / size) - 1, 0)
    at = spread_out(n_times, n_kept, int(np.searchsorted(path.times, time)))
    return replace(
        path,
        times=path.times[at],
        consensus=path.consensus[at],
        deviation=np.array(path.deviation[at]),
        sparse=np.array(path.sparse[at]),
    )


def _refuse_some_of_the_votes(votes: Comparisons | Parts) -> None:
    if isinstance(votes, Comparisons):
        alone = Comparisons(*(getattr(votes, name) for name in (*_IDS, *_COLUMNS, *_OPTIONAL)))
        if not np.array_equal(alone.slots.coordinate, votes.slots.coordinate):
            raise ValueError(
                "a model of a part of votes, where a user or an item has none left, cannot be "
                "stored; fit it on Comparisons of their own."
            )


def _arrays(model: ISplitLBI) -> dict[str, Any]:
    """Return the votes as plain arrays; ids, which may be of any length, as the bytes of JSON."""
    overview, votes = model.overview_, model._votes
    arrays: dict[str, Any] = {name: _bytes_of(getattr(overview, name)) for name in _IDS}
    if isinstance(votes, Parts):
        return arrays | {name: getattr(overview, name) for name in _COUNTS}
    for name in (*_COLUMNS, *_OPTIONAL):
        if getattr(votes, name) is not None:
            arrays[name] = getattr(votes, name)
    if votes.groups is not None:
        arrays["groups"] = _bytes_of(votes.groups)
    return arrays


def _bytes_of(ids: NDArray[Any]) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(ids.tolist()).encode(), dtype=np.uint8)


def _tested(model: ISplitLBI) -> dict[str, Any]:
    """Return the tests of all users as plain arrays, texts as the bytes of JSON."""
    values = vars(model.abnormality()) | {"fingerprint": model.overview_.fingerprint}
    return {
        name: np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)
        if isinstance(value, list | str)
        else value
        for name, value in values.items()
    }


def _curves(selection: Selection) -> dict[str, Any]:
    arrays = {}
    for number, curves in enumerate(selection.candidates):
        arrays[f"{number}_times"] = curves.times
        arrays[f"{number}_fold_weight"] = curves.fold_weight
        for estimate in ESTIMATES:
            for scoring in SCORINGS:
                arrays[f"{number}_{estimate}_{scoring}"] = curves.scores[estimate][scoring]
    return arrays


def _loaded(source: Path) -> ISplitLBI:
    text = (source / "model.json").read_text(encoding="utf-8", errors="surrogateescape")
    described = json.loads(text)
    if described["format"] != FORMAT:
        raise UnreadableModel(f"{source}: this is not a model folder.")
    if described["version"] != FORMAT_VERSION:
        raise UnreadableModel(
            f"{source}: format version {described['version']} cannot be read here; this release "
            f"reads version {FORMAT_VERSION}. Fit the model again."
        )
    votes, overview = _votes_of(source, described.get("votes_in"))
    path = RegularizationPath.load(source / "path.npz")
    same_votes = overview.fingerprint == described["fingerprint"]
    same_slots = path.slots.n_users == len(overview.users)
    if isinstance(votes, Comparisons):
        same_slots &= np.array_equal(path.slots.coordinate, votes.slots.coordinate)
    chosen = described["chosen"]
    same_fit = all(path.settings[name] == chosen[name] for name in ("nu", "kappa"))
    if not (same_votes and same_slots and same_fit):
        raise UnreadableModel(f"{source}: its files do not belong together; fit the model again.")
    settings = dict(described["settings"])
    solver = dict(settings.pop("solver"))
    model = ISplitLBI(**settings, solver=SOLVERS[solver.pop("name")](**solver))
    selection = None
    if "selection" in described:
        selection = _selection(source, described["selection"], chosen["time"])
    dynamics = Dynamics(chosen["nu"], chosen["kappa"], model.delta)
    model._adopt(votes, selection, path, dynamics, chosen["time"], overview)
    with (source / "abnormal.npz").open("rb") as stream, np.load(stream) as content:
        tested = {
            name: json.loads(value.tobytes()) if value.dtype == np.uint8 else value
            for name, value in content.items()
        }
    same_votes = tested.pop("fingerprint") == described["fingerprint"]
    lengths = {len(value) for name, value in tested.items() if name not in ("fdr", "consensus")}
    if not same_votes or lengths != {len(overview.users)}:
        raise UnreadableModel(f"{source}: its files do not belong together; fit the model again.")
    found = Abnormality(**tested | {"fdr": float(tested["fdr"])})
    model._abnormality[found.fdr] = found
    return model


def _votes_of(
    source: Path, votes_in: dict[str, Any] | None
) -> tuple[Comparisons | Parts, Overview]:
    """Return the votes, or the parts they are in, and their main figures."""
    with (source / "votes.npz").open("rb") as stream, np.load(stream) as content:
        arrays: dict[str, Any] = dict(content)
    for name in {*_IDS, "groups"} & arrays.keys():
        ids = json.loads(arrays[name].tobytes())
        arrays[name] = np.array(ids, dtype=object if isinstance(ids[0], str) else np.int64)
    if votes_in is None:
        votes = Comparisons(**arrays | {name: arrays.get(name) for name in _OPTIONAL})
        return votes, Overview.of(votes)
    folder, names, options = (votes_in[name] for name in ("folder", "files", "options"))
    if not (isinstance(names, list) and names and set(options) <= set(OPTIONS)):
        raise UnreadableModel(
            f"{source}: where its votes are is not readable; fit the model again."
        )
    parts = Parts(Path(folder), tuple(Path(folder) / name for name in names), options)
    return parts, Overview(**arrays | {"n_ties": int(arrays["n_ties"])})


def _selection(source: Path, described: dict[str, Any], time: float) -> Selection:
    with (source / "selection.npz").open("rb") as stream, np.load(stream) as content:
        candidates = tuple(
            Curves(
                Dynamics(**dynamics),
                content[f"{number}_times"],
                content[f"{number}_fold_weight"],
                {
                    estimate: {name: content[f"{number}_{estimate}_{name}"] for name in SCORINGS}
                    for estimate in ESTIMATES
                },
            )
            for number, dynamics in enumerate(described["candidates"])
        )
    chosen = candidates[described["chosen"]]
    return Selection(candidates, described["scoring"], described["rule"], chosen, time)
