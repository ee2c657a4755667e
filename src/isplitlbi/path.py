"""The regularization path: what a solver returns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.layout import SHARPNESS, Slots, Vector
from isplitlbi.errors import InvalidSetting, UnreadablePath
from isplitlbi.files import written_whole
from isplitlbi.model.parameters import Consensus, Course, Parameters
from isplitlbi.model.terms import Terms
from isplitlbi.typing import Floats

__all__ = ["Ending", "RegularizationPath"]

FORMAT = "isplitlbi regularization path"
FORMAT_VERSION = 3

# Bytes of snapshots that are stored or sent; where there would be more, there are fewer times.
MOST_SNAPSHOTS = 256e6


class Ending(Enum):
    """How a path ended, in a sentence for the person who asked for it."""

    COMPLETE = "The path reached its last requested time."
    STEP_LIMIT = (
        "The path stopped at the step limit, before its last requested time: raise max_steps, "
        "or ask for earlier times."
    )
    NOT_FINITE = (
        "The path stopped because a value became infinite or undefined: use a smaller step_scale."
    )


@dataclass(frozen=True, repr=False)
class RegularizationPath:
    """Snapshots of the fit at increasing times, from the consensus to everybody's own ranking.

    Attributes
    ----------
    vector : Vector
        Where scores and traits lie in a consensus.
    slots : Slots
        Where the parameters of every user lie.
    times : (n_times,)
        The requested times that were reached.
    consensus : (n_times, vector.width)
        See `consensus_at` for its parts by name.
    deviation, sparse : (n_times, n_slots)
        P and Gamma: all of what a user adds, and its strong part. A path followed without keeping
        them has no rows here.
    entry_times : (n_users,)
        When each user left the consensus; infinite for who never did.
    ending : Ending
    n_steps : int
    settings : mapping
        Everything that decided the result; among it the names of the terms.
    course : Course or None
        The consensus step by step; None of a path that was stored without it.
    """

    vector: Vector
    slots: Slots
    times: Floats
    consensus: Floats
    deviation: Floats
    sparse: Floats
    entry_times: Floats
    ending: Ending
    n_steps: int
    settings: Mapping[str, Any]
    course: Course | None = None

    def __repr__(self) -> str:
        """Say how long it is, and how it ended."""
        span = f"{self.times[0]:.3g} to {self.times[-1]:.3g}" if len(self.times) else "nothing"
        n_out, n_users = int(np.isfinite(self.entry_times).sum()), len(self.entry_times)
        return (
            f"RegularizationPath: {len(self.times)} times from {span} in {self.n_steps:,} steps, "
            f"{n_out} of {n_users:,} users have left ({self.ending.name.lower()})"
        )

    def at(self, time: float) -> Parameters:
        """Return the dense estimate (c, P) at any time of the path, linear between snapshots.

        At the time of a snapshot the deviations are the snapshot itself, which may be large, to
        be read only.
        """
        return Parameters(
            self.vector,
            self.slots,
            self._between(self.consensus, time).copy(),
            self._between(self.deviation, time),
            self.terms,
        )

    @property
    def terms(self) -> Terms:
        """In which ways users may differ."""
        return Terms.from_dict(self.settings["terms"])

    def consensus_at(self, time: float) -> Consensus:
        """Return the consensus at any time of the path, linear between snapshots."""
        return Consensus(self.vector, self._between(self.consensus, time).copy(), self.terms)

    def known_course(self) -> Course:
        """Return the course; of a path that was stored without it, what snapshots tell of it.

        Before the first snapshot the consensus rests, but for that of the paper's terms, which
        begins at nothing.
        """
        if self.course is not None:
            return self.course
        start, terms = self.consensus[0].copy(), self.terms
        if terms.ties == "bounded":
            start = terms.start(self.vector, float(self.settings["delta"]))
        times = np.append(0.0, self.times)
        return Course(times, np.vstack([start, self.consensus]), np.zeros(len(times)))

    def sharper_by(self, time: float) -> float:
        """Return how much sharper the consensus is than in the coordinates of its course.

        It is the average of those who have not left; the course is what a scheme has followed.
        """
        is_sharp = SHARPNESS in self.vector.traits and self.terms.reference is not None
        if self.course is None or not is_sharp:
            return 0.0
        along, scores = self.terms.per_sharpness, self.vector.scores
        square = float(np.sum(along**2))
        followed = np.interp(time, self.course.times, self.course.consensus[:, scores] @ along)
        shown = float(self.consensus_at(time).scores @ along)
        return (shown - float(followed)) / square if square > 0.0 else 0.0

    def sparse_at(self, time: float) -> Floats:
        """Return Gamma at any time of the path, linear between snapshots."""
        return self._between(self.sparse, time)

    def support_at(self, time: float) -> NDArray[np.intp]:
        """Return the users outside the consensus at that time, in order of entry."""
        deviates = np.logical_or.reduceat(self.sparse_at(time) != 0.0, self.slots.start[:-1])
        # Between snapshots Gamma is interpolated, and nonzero a little before the entry.
        out = np.flatnonzero(deviates & (self.entry_times <= time))
        return out[np.argsort(self.entry_times[out], kind="stable")]

    def _between(self, rows: Floats, time: float) -> Floats:
        if len(self.times) == 0:
            raise InvalidSetting(f"This path has no snapshots. {self.ending.value}")
        if len(rows) == 0:
            raise InvalidSetting("This path was followed without keeping snapshots of the users.")
        if not self.times[0] <= time <= self.times[-1]:
            raise InvalidSetting(
                f"time {time:g} is not on the path, which spans {self.times[0]:g} to "
                f"{self.times[-1]:g}."
            )
        after = int(np.searchsorted(self.times, time))
        if self.times[after] == time:
            snapshot: Floats = rows[after]
            snapshot.flags.writeable = False
            return snapshot
        before = after - 1
        share = (time - self.times[before]) / (self.times[after] - self.times[before])
        return np.asarray((1.0 - share) * rows[before] + share * rows[after])

    def save(self, file: str | Path) -> None:
        """Write the path to a file (NumPy's zip of arrays, no pickle)."""
        target = Path(file)
        header = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "ending": self.ending.name,
            "n_steps": self.n_steps,
            "settings": dict(self.settings),
            "n_items": self.vector.n_items,
            "traits": list(self.vector.traits),
            "has_habits": self.vector.has_habits,
        }
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        if self.course is not None:
            arrays |= {_COURSE + name: values for name, values in self.course._asdict().items()}
        with written_whole(target) as unfinished, unfinished.open("wb") as stream:
            np.savez(
                stream,
                allow_pickle=False,
                header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8),
                slot_start=self.slots.start,
                slot_coordinate=self.slots.coordinate,
                **arrays,
            )

    @classmethod
    def load(cls, file: str | Path) -> Self:
        """Read a path that `save` wrote; anything else gives one clear error."""
        try:
            # Opened here, because NumPy leaves a damaged file open.
            with Path(file).open("rb") as stream, np.load(stream, allow_pickle=False) as content:
                header = json.loads(content["header"].tobytes())
                if header["format"] != FORMAT:
                    raise UnreadablePath(f"{file}: this is not a regularization path.")
                if header["version"] != FORMAT_VERSION:
                    raise UnreadablePath(
                        f"{file}: format version {header['version']} cannot be read here; this "
                        f"release reads version {FORMAT_VERSION}. Fit the votes again."
                    )
                vector = Vector(
                    int(header["n_items"]), tuple(header["traits"]), bool(header["has_habits"])
                )
                path = cls(
                    vector=vector,
                    slots=Slots.of(content["slot_start"], content["slot_coordinate"], vector),
                    ending=Ending[header["ending"]],
                    n_steps=int(header["n_steps"]),
                    settings=dict(header["settings"]),
                    course=_course_in(content),
                    **{name: content[name] for name in _ARRAYS},
                )
                if not path._fits_together():
                    raise UnreadablePath(
                        f"{file}: its arrays do not fit together; the file is damaged."
                    )
        except UnreadablePath:
            raise
        except FileNotFoundError:
            raise UnreadablePath(f"{file}: there is no such file.") from None
        except Exception as error:  # a foreign file may fail in any way
            raise UnreadablePath(
                f"{file}: this is not a regularization path, or it is damaged "
                f"({type(error).__name__})."
            ) from None
        return path

    def _fits_together(self) -> bool:
        n_slots, n_times = len(self.slots.coordinate), len(self.times)
        return bool(
            self.slots.start[0] == 0
            and self.slots.start[-1] == n_slots
            and np.all(np.diff(self.slots.start) >= 1)
            and self.times.shape == (n_times,)
            and self.entry_times.shape == (self.slots.n_users,)
            and self.consensus.shape == (n_times, self.vector.width)
            and self.slots.coordinate.min(initial=0) >= 0
            and np.all(self.slots.coordinate[self.slots.threshold] == self.vector.threshold)
            and self.slots.coordinate.max(initial=0) < self.vector.own_width
            and self.terms.names
            and self.deviation.shape in ((n_times, n_slots), (0, n_slots))
            and self.sparse.shape == self.deviation.shape
            and all(getattr(self, name).dtype == np.float64 for name in _ARRAYS)
            and (self.course is None or self._is_followed_by(self.course))
        )

    def _is_followed_by(self, course: Course) -> bool:
        return bool(
            course.consensus.shape == (len(course.times), self.vector.width)
            and course.pull.shape == course.times.shape
            and len(course.times) > 1
            and np.all(np.diff(course.times) > 0.0)
            and all(values.dtype == np.float64 for values in course)
        )


def spread_out(n_times: int, n_kept: int, chosen: int) -> NDArray[np.intp]:
    """Return about so many places among the times, evenly spread, the chosen one among them."""
    evenly = np.linspace(0, n_times - 1, n_kept).round()
    return np.union1d(evenly, [chosen]).astype(np.intp)


def _course_in(content: Mapping[str, Any]) -> Course | None:
    """Return the course that a file holds; it has none where an older release wrote it."""
    names = [_COURSE + name for name in Course._fields]
    if names[0] not in content:
        return None
    kept = {name: content[_COURSE + name] for name in Course._fields if _COURSE + name in content}
    return Course(**({"pull": np.zeros(len(kept["times"]))} | kept))


_COURSE = "course_"
_ARRAYS = ("times", "consensus", "deviation", "sparse", "entry_times")
