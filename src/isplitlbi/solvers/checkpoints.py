"""Checkpoints: a path that was interrupted goes on where it was, and ends where it would have.

A checkpoint is one file (NumPy's zip of arrays, no pickle), replaced as a whole, so that whatever
interrupts the writing leaves the one before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from isplitlbi.errors import UnreadableCheckpoint
from isplitlbi.files import written_whole
from isplitlbi.solvers.state import Momentum, State
from isplitlbi.typing import Floats

# Writing may take this share of the time at most.
MOST_WRITING = 0.05


class Resumed(NamedTuple):
    """What a checkpoint holds."""

    state: State
    n_done: int  # requested times behind it
    extra: dict[str, Floats]


class Checkpoint:
    """The last state of one path, on disk.

    Parameters
    ----------
    file
        Where it is.
    every
        Seconds between two writings, at least.
    results
        Arrays that the path's observer fills; they are kept along and filled again.
    """

    def __init__(
        self, file: Path, every: float = 10.0, results: Mapping[str, Floats] | None = None
    ) -> None:
        self.file, self.every = file, every
        self.results = dict(results or {})
        self._due = monotonic() + every

    def restore(self) -> Resumed | None:
        """Return what was written last, and fill the results; nothing if there is none."""
        if not self.file.exists():
            return None
        try:
            with self.file.open("rb") as stream, np.load(stream, allow_pickle=False) as content:
                arrays = {name: content[name] for name in content.files}
            header = json.loads(arrays.pop("header").tobytes())
            momentum = None
            if header["next_step"] is not None:
                momentum = Momentum(
                    header["next_step"],
                    tuple(header["last_steps"]),
                    **{name: arrays.pop(f"momentum_{name}") for name in _arrays_of(Momentum)},
                )
            state = State(
                header["time"],
                **{name: arrays.pop(f"state_{name}") for name in _arrays_of(State)},
                n_steps=header["n_steps"],
                momentum=momentum,
            )
            for name, result in self.results.items():
                result[:] = arrays.pop(f"result_{name}")
            return Resumed(state, header["n_done"], arrays)
        except Exception as error:  # a damaged file may fail in any way
            raise UnreadableCheckpoint(
                f"{self.file}: this checkpoint is damaged ({type(error).__name__}); "
                "start the fit anew."
            ) from None

    def offer(
        self, state: State, n_done: int, extra: Mapping[str, Floats], *, last: bool = False
    ) -> None:
        """Write a state if it is time to, and always the last one of a path."""
        begun = monotonic()
        if not last and begun < self._due:
            return
        momentum = state.momentum
        header = {
            "time": state.time,
            "n_steps": state.n_steps,
            "n_done": n_done,
            "next_step": None if momentum is None else momentum.next_step,
            "last_steps": None if momentum is None else momentum.last_steps,
        }
        arrays = {f"state_{name}": getattr(state, name) for name in _arrays_of(State)}
        if momentum is not None:
            arrays |= {f"momentum_{name}": getattr(momentum, name) for name in _arrays_of(Momentum)}
        arrays |= {f"result_{name}": result for name, result in self.results.items()}
        with written_whole(self.file) as unfinished, unfinished.open("wb") as stream:
            np.savez(
                stream,
                allow_pickle=False,
                header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8),
                **arrays,
                **extra,
            )
        now = monotonic()
        self._due = now + max(self.every, (now - begun) / MOST_WRITING)


class Checkpoints:
    """A folder with the checkpoints of all paths of one fit.

    Parameters
    ----------
    folder
        Made if need be.
    identity
        What the fit is made from. A folder that holds checkpoints of another fit is refused.
    every
        Seconds between two writings of a path, at least.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any], every: float = 10.0) -> None:
        self.folder, self.every = folder, every
        folder.mkdir(parents=True, exist_ok=True)
        note, wanted = folder / "identity.json", json.loads(json.dumps(identity))
        if note.exists():
            try:
                found = json.loads(note.read_text(encoding="utf-8"))
            except ValueError:
                found = None
            if found != wanted:
                raise UnreadableCheckpoint(
                    f"{folder}: these checkpoints belong to other votes or settings; "
                    "start the fit anew."
                )
        else:
            note.write_text(json.dumps(wanted), encoding="utf-8")

    def of(self, name: str, results: Mapping[str, Floats] | None = None) -> Checkpoint:
        """Return the checkpoint of one path."""
        return Checkpoint(self.folder / f"{name}.npz", self.every, results)


def _arrays_of(kind: type[Any]) -> list[str]:
    return [field.name for field in fields(kind) if field.type == "Floats"]
