"""How the loops are compiled by numba, and how what was compiled is kept on disk."""

from __future__ import annotations

import gc
import logging
import pickle
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import FunctionType
from typing import Any

from numba import njit
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

from isplitlbi.files import written_whole
from isplitlbi.model import answering, links

__all__ = ["FOREIGN", "INSIDE_LOOPS", "WITHOUT_WRAPPER", "inlined", "inside", "loop", "part"]


class _WhileCompiling(event.Listener):
    """Says once that loops are being compiled; nothing is compiled that the disk still has.

    Meanwhile no garbage is collected: the millions of objects that a compiler makes live until it
    ends, and to go through them again and again would take a fifth of the time. Only one thread
    compiles at a time, and what one function needs is compiled within it.
    """

    announced, depth, collects = False, 0, False

    def on_start(self, event: Any) -> None:
        # A function that was made from a text may belong to no module.
        module = event.data["dispatcher"].py_func.__module__ or ""
        ours = module.startswith(__package__)
        if ours and not self.announced:
            self.announced = True
            is_kept = isinstance(event.data["dispatcher"]._cache, FunctionCache)
            logging.getLogger("isplitlbi").warning(
                "compiling the loops for this machine; "
                + ("later runs find them ready." if is_kept else UNKEPT)
            )
        if self.depth == 0 and ours:
            self.collects = gc.isenabled()
            gc.disable()
        if self.depth > 0 or ours:
            self.depth += 1

    def on_end(self, event: Any) -> None:
        if self.depth > 0:
            self.depth -= 1
            if self.depth == 0 and self.collects:
                gc.enable()


event.register("numba:compile", _WhileCompiling())

# Division by zero gives inf, as in NumPy: no checks in the loops. A product and a sum may become
# one instruction; nothing else of fastmath, which breaks comparisons with inf and nan.
# Nobody calls the loops from C: wrappers for that would only take time to compile.
OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"contract"},
    "no_cfunc_wrapper": True,
}

INSIDE_LOOPS: Any = {**OPTIONS, "forceinline": True}

UNKEPT = (
    "later runs must do so again, because no folder for them can be written to: set "
    "NUMBA_CACHE_DIR to one that can."
)

FOREIGN = "foreign link"  # one that is not of this package


def _stamp() -> str:
    """Return a digest of all that is compiled: numba looks at the file of a function only."""
    digest = sha256()
    modules = (links, answering)
    for file in (
        *(Path(str(each.__file__)) for each in modules),
        *sorted(Path(__file__).parent.glob("*.py")),
    ):
        digest.update(file.read_bytes())
    return digest.hexdigest()


_STAMP = _stamp()


class _FileForEach(IndexDataCacheFile):
    """Compiled code on disk, each in a file of its own that says what it is.

    numba's files have numbers, and an index says what they are. Of processes that compile at once,
    and after an interrupt, that index may name the code of other arguments, or of an older release.
    """

    def save(self, key: Any, data: Any) -> None:
        """Write compiled code, as a whole."""
        with written_whole(self._place(key)) as unfinished:
            unfinished.write_bytes(self._dump(self._origin(key)) + self._dump(data))

    def load(self, key: Any) -> Any:
        """Read compiled code; nothing where there is none, or of other sources."""
        try:
            stream = self._place(key).open("rb")
        except FileNotFoundError:
            return None
        with stream:
            return pickle.load(stream) if pickle.load(stream) == self._origin(key) else None

    def flush(self) -> None:
        """Remove the code of all arguments."""
        index = Path(self._index_path)
        for place in index.parent.glob(f"{index.stem}.*.nbc"):
            place.unlink(missing_ok=True)

    def _place(self, key: Any) -> Path:
        # Arguments and machine make the name, so that new code takes the place of older code.
        name = sha256(str(key[:2]).encode()).hexdigest()[:16]
        return Path(self._index_path).with_suffix(f".{name}.nbc")

    def _origin(self, key: Any) -> tuple[Any, ...]:
        return self._version, self._source_stamp, key


class _CacheOfOwnLinks(FunctionCache):
    """Compiled loops on disk; those of a link that is not ours never go there.

    No later process could make sense of a class that it cannot import. Nor would a change of such a
    class be noticed, as one of ours is by the stamp. What cannot be read, whatever is in it, is
    compiled anew; what cannot be written, because the disk is full or the folder gone, is not kept.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _FileForEach(self._cache_path, self._impl.filename_base, _STAMP)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Find compiled code."""
        if FOREIGN in str(sig):
            return None
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # what a foreign class or another version left may fail in any way
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code."""
        if FOREIGN not in str(sig):
            with suppress(OSError):
                super().save_overload(sig, data)


class _NoMachine:
    """Stands for the machine where code runs, for code that does not."""

    def set_env(self, _name: str, _environment: Any) -> None:
        """Tell no code where its Python objects are."""


class _PartLibrary(JITCodeLibrary):
    """Code that is only ever built into other code, and optimised and translated there.

    numba does both for every function, and then again for all who call it. What is kept on disk is
    what is built in.
    """

    @property
    def codegen(self) -> Any:
        """Where the code is made known to run."""
        return _NoMachine()

    def get_pointer_to_function(self, _name: str) -> int:
        """Return the null pointer: this cannot be called."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """Return what can be kept on disk: there is no object code."""
        name, kind, bitcode = self.serialize_using_bitcode()
        return name, kind, bitcode

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


def _call(function: Callable[[], Any]) -> Any:
    return function()


# Python keeps what running functions need in pieces of 16 kB. Where the functions of a compiler
# begin a piece, and leave it, hundreds of thousands of times, each time asks the system for memory:
# up to a fifth of all the time. So they run beneath one that seems to need half a megabyte: Python
# finds it a piece of a whole one, and the other half is theirs.
_call_with_room = FunctionType(_call.__code__.replace(co_stacksize=1 << 16), {})


class _LoopCompiler(Compiler):
    """numba's compiler, with room to run."""

    def _compile_bytecode(self) -> Any:
        return _call_with_room(super()._compile_bytecode)


class _PartCompiler(_LoopCompiler):
    """A compiler that makes a part of other code."""

    def _compile_bytecode(self) -> Any:
        codegen = self.state.targetctx.codegen()
        self.state.library = _PartLibrary(codegen, self.state.func_id.func_qualname)
        return super()._compile_bytecode()


def loop(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function on first use; it releases Python's lock, and is kept on disk."""
    options = {"pipeline_class": _LoopCompiler, **OPTIONS, **options}
    compiled = njit(nogil=True, **options)(function)
    with suppress(RuntimeError):  # no folder can be written to
        compiled._cache = _CacheOfOwnLinks(function)
    return compiled


# What only compiled functions call needs no way in from Python, which takes as long to compile as
# a short loop; or it becomes a part of them.
WITHOUT_WRAPPER: Any = {"no_cpython_wrapper": True}


def part(function: Callable[..., Any]) -> Any:
    """Compile on first use what is built into compiled functions; it is kept on disk, too."""
    return loop(function, **WITHOUT_WRAPPER, pipeline_class=_PartCompiler)


def inlined(function: Callable[..., Any]) -> Any:
    """Make a function a part of the source of compiled functions that call it."""
    return njit(inline="always", **OPTIONS, **WITHOUT_WRAPPER)(function)


def inside(compiled: Any) -> Any:
    """Return a loop as a part: the same, for those who call it from compiled functions."""
    function = compiled.py_func
    anew = FunctionType(function.__code__, function.__globals__, f"{function.__name__}_inside")
    return part(anew)
