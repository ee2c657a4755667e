"""Where a fit in progress is kept: a hidden folder beside the model folder that it will become."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from isplitlbi.errors import PlaceTaken, Setting
from isplitlbi.files import remove
from isplitlbi.storage import refuse_existing

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Unfinished"]

LOCK = "lock"


class Unfinished:
    """The folder of a fit in progress, for as long as the fit goes on.

    It is used in a ``with`` block around fitting and saving. When the block ends well, the folder
    is removed. When an error or an interrupt ends the block, the folder stays if there is something
    in it to go on from, and is removed otherwise. Only one process at a time is in such a block.

    Parameters
    ----------
    model_folder
        Where the model will be.

    Attributes
    ----------
    folder : Path
        For the checkpoints of the fit.
    snapshots : Path
        For the snapshots of its path.
    """

    def __init__(self, model_folder: Path) -> None:
        self.folder = model_folder.with_name(f".{model_folder.name}.unfinished")
        self.snapshots = self.folder / "snapshots"
        self._model_folder = model_folder
        self._lock: IO[bytes] | None = None

    @classmethod
    def fit_of(cls, model_folder: Path, *, resume: bool = False, force: bool = False) -> Self:
        """Return the folder for a fit that begins or goes on.

        Parameters
        ----------
        model_folder
            Where the model will be; what is there already is replaced only by ``force``.
        resume
            Whether to go on with an interrupted fit, if there is one. Without it, an interrupted
            fit is refused, or thrown away by ``force``.
        """
        refuse_existing(model_folder, force=force)
        place = cls(model_folder)
        if (place.folder / LOCK).exists():
            place._release(place._take())
        if place.folder.exists() and not resume:
            if not force:
                raise PlaceTaken(
                    f"a fit of {model_folder} was interrupted; go on with ",
                    Setting("resume", True), ", or begin again with ", Setting("force", True), ".",
                )  # fmt: skip
            remove(place.folder)
        return place

    @property
    def exists(self) -> bool:
        """Whether a fit was begun here before, or has been by now."""
        return self.folder.exists()

    @property
    def can_be_resumed(self) -> bool:
        """Whether there is something to go on from."""
        return any(self.folder.rglob("*.npz"))

    def __enter__(self) -> Self:
        self._lock = self._take()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None or not self.can_be_resumed:
            remove(self.folder)
        self._release(self._lock)

    def _take(self) -> IO[bytes] | None:
        """Keep others out until the file is closed or this process ends, however it ends."""
        if find_spec("fcntl") is None:  # Windows: there, nobody notices another process
            return None
        import fcntl

        while True:
            self.folder.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # another fit has ended and removed it by now
                lock = (self.folder / LOCK).open("wb")
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    lock.close()
                    raise PlaceTaken(
                        f"another process is fitting {self._model_folder}; wait until it is done, "
                        "or choose another name."
                    ) from None
                except OSError:  # a file system without locks
                    return lock
                if os.path.samestat(os.fstat(lock.fileno()), (self.folder / LOCK).stat()):
                    return lock

    @staticmethod
    def _release(lock: IO[bytes] | None) -> None:
        if lock is not None:
            lock.close()
