"""Checkpoints: a path that was interrupted goes on where it was, and ends where it would have.

A checkpoint is one file (NumPy's zip of arrays, no pickle), replaced as a whole, so that whatever
interrupts the writing leaves the one before. Where users are on several machines, each machine has
its own, in a folder that all of them reach.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Self

import numpy as np

from isplitlbi.errors import UnreadableCheckpoint
from isplitlbi.files import written_whole
from isplitlbi.runtime.base import Runtime
from isplitlbi.solvers.settings import Scheme
from isplitlbi.solvers.state import State
from isplitlbi.typing import Floats

__all__ = ["Checkpoint", "Checkpoints"]

# Writing may take this share of the time at most.
MOST_WRITING = 0.05


class Resumed(NamedTuple):
    """What a checkpoint holds."""

    state: State
    n_done: int  # requested times behind it
    is_over: bool  # whether the path ends there
    extra: dict[str, Floats]


class Checkpoint:
    """The last state of one path, on disk.

    Parameters
    ----------
    file
        Where it is.
    scheme
        Of the path: it knows what to keep of its own memory.
    every
        Seconds between two writings, at least.
    results
        Arrays that the path's observer fills; they are kept along and filled again.
    """

    def __init__(
        self,
        file: Path,
        scheme: Scheme,
        every: float = 10.0,
        results: Mapping[str, Floats] | None = None,
    ) -> None:
        self.file, self.scheme, self.every = file, scheme, every
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
            memory, remembered = None, _taken(arrays, "memory_")
            if header["memory"] is not None:
                memory = self.scheme.unpack(header["memory"], remembered)
            state = State(
                header["time"],
                **_taken(arrays, "state_"),
                n_steps=header["n_steps"],
                memory=memory,
            )
            found = _taken(arrays, "result_")
            for name, result in self.results.items():
                result[:] = found[name]
            return Resumed(state, header["n_done"], header["is_over"], arrays)
        except Exception as error:  # a damaged file may fail in any way
            raise UnreadableCheckpoint(
                f"{self.file}: this checkpoint is damaged ({type(error).__name__}); "
                "start a new fit."
            ) from None

    def offer(
        self, state: State, n_done: int, extra: Mapping[str, Floats], *, last: bool = False
    ) -> None:
        """Write a state if it is time to, and always the last one of a path."""
        if last or monotonic() >= self._due:
            self._write(state, n_done, extra, is_over=last)

    def _write(
        self, state: State, n_done: int, extra: Mapping[str, Floats], *, is_over: bool
    ) -> None:
        begun = monotonic()
        memory, remembered = None, dict[str, Floats]()
        if state.memory is not None:
            memory, remembered = self.scheme.pack(state.memory)
        header = {
            "time": state.time,
            "n_steps": state.n_steps,
            "n_done": n_done,
            "is_over": is_over,
            "memory": memory,
        }
        arrays = {
            **{f"state_{name}": getattr(state, name) for name in _arrays_of(State)},
            **{f"memory_{name}": values for name, values in remembered.items()},
            **{f"result_{name}": result for name, result in self.results.items()},
        }
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


class SharedCheckpoint(Checkpoint):
    """The checkpoint of one machine's users, in a folder that all machines reach.

    All machines write at the same times of the path, each beside its last one, which it deletes
    only when all have written: whatever happens, there is a time at which all have one.
    """

    def __init__(
        self,
        folder: Path,
        scheme: Scheme,
        runtime: Runtime,
        every: float = 10.0,
        results: Mapping[str, Floats] | None = None,
    ) -> None:
        super().__init__(folder, scheme, every, results)
        self._folder, self._runtime = folder, runtime
        self._name = f"users-from-{runtime.first}"

    def restore(self) -> Resumed | None:
        """Return what all machines have written last; nothing if there is no such time."""
        written = {int(file.stem.rpartition("-")[2]): file for file in self._files()}
        # The sum of the last times is at least the last of all, which is all that is needed.
        most, n_machines = self._runtime.total(float(max(written, default=0)), 1.0)
        has = np.zeros(1 + int(most))
        has[list(written)] = 1.0
        (has,) = self._runtime.total(has)
        common = np.flatnonzero(has == n_machines)
        if len(common) == 0:
            return None
        self.file = written[int(common[-1])]
        return super().restore()

    def offer(
        self, state: State, n_done: int, extra: Mapping[str, Floats], *, last: bool = False
    ) -> None:
        """Write a state if it is time to, on any of the machines."""
        if not self._runtime.any(last or monotonic() >= self._due):
            return
        old = self._files()
        self._folder.mkdir(parents=True, exist_ok=True)
        self.file = self._folder / f"{self._name}-{n_done}.npz"
        self._write(state, n_done, extra, is_over=last)
        self._runtime.any(False)  # until all have written
        for file in old:
            if file != self.file:
                file.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob(f"{self._name}-[0-9]*.npz"))


@dataclass(frozen=True)
class Checkpoints:
    """A folder with the checkpoints of all paths of one fit.

    Attributes
    ----------
    folder : Path
    every : float
        Seconds between two writings of a path, at least.
    """

    folder: Path
    every: float = 10.0

    @classmethod
    def of_fit(cls, folder: Path, identity: Mapping[str, Any], every: float = 10.0) -> Self:
        """Make the folder if need be, and refuse one that holds checkpoints of another fit.

        The identity is what the fit is made from.
        """
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
                    "start a new fit."
                )
        else:
            note.write_text(json.dumps(wanted), encoding="utf-8")
        return cls(folder.absolute(), every)

    def of_path(
        self,
        name: str,
        scheme: Scheme,
        runtime: Runtime,
        results: Mapping[str, Floats] | None = None,
    ) -> Checkpoint:
        """Return the checkpoint of one path, for the users that are here."""
        if runtime.is_alone:
            return Checkpoint(self.folder / f"{name}.npz", scheme, self.every, results)
        return SharedCheckpoint(self.folder / name, scheme, runtime, self.every, results)


def _arrays_of(kind: type[Any]) -> list[str]:
    return [field.name for field in fields(kind) if field.type == "Floats"]


def _taken(arrays: dict[str, Floats], prefix: str) -> dict[str, Floats]:
    """Take the arrays whose name begins like that, without the beginning."""
    names = [name for name in arrays if name.startswith(prefix)]
    return {name.removeprefix(prefix): arrays.pop(name) for name in names}
