"""How a command ends: what went wrong becomes a sentence and an exit code.

0    done
1    a bug of ours, with its traceback
2    what was asked for cannot be done, and the sentence says what to do instead
3    `check`: the votes are usable, with serious warnings or, with --strict, any warnings
130  interrupted by Ctrl-C
143  ended by SIGTERM, as by a system that shuts down; 129 where the terminal was closed
"""

from __future__ import annotations

import atexit
import codecs
import os
import signal
import sys
import traceback
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

from isplitlbi.cli.flags import as_option
from isplitlbi.errors import ISplitLBIError
from isplitlbi.markup import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["WARNED", "Interrupted"]

BUG, REFUSED, WARNED, INTERRUPTED = 1, 2, 3, 130
OF_SIGNAL = 128  # added to the number of a signal, as shells do


class Interrupted(Exception):
    """A person has interrupted a command; the message says how to go on."""


def run(command: Callable[[], object]) -> None:
    """Run a command and exit as its errors ask for."""
    _have_outputs()
    with _ended_by_signals() as received:
        try:
            _complete(command)
        except SystemExit as ended:
            if ended.code == INTERRUPTED:  # typer makes this of Ctrl-C
                _exit("interrupted.", received.code)
            raise
        except KeyboardInterrupt:
            _exit("interrupted.", received.code)
        except Interrupted as error:
            _exit(f"interrupted; {error}", received.code)
        except ISplitLBIError as error:
            _exit(error.told(as_option), REFUSED)
        except BrokenPipeError:
            # Whoever read the output has seen enough; nothing more may be written to it.
            sys.stdout = None
            raise SystemExit(0) from None
        except OSError as error:
            _exit(f"{error.filename or 'the system'}: {error.strerror or error}.", REFUSED)
        except MemoryError:
            _exit("there is not enough memory for this.", REFUSED)
        except Exception as error:
            if isinstance(error, UnicodeEncodeError) and _is_of_output(error.encoding):
                sign = ascii(error.object[error.start])
                _exit(
                    f"the output is written in {error.encoding}, which has no {sign}; set "
                    "PYTHONIOENCODING=utf-8.",
                    REFUSED,
                )
            with suppress(OSError):
                traceback.print_exc()
            _exit(
                "this is a bug in isplitlbi, not your mistake. Please report it, with the lines "
                "above and the command.",
                BUG,
            )


def _complete(command: Callable[[], object]) -> None:
    """Run a command, and write out what it has printed while a failure can still be told."""
    try:
        command()
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # typer makes a failure of this
            raise ended.__context__ from None
        if ended.code in (None, 0, WARNED):
            sys.stdout.flush()
        raise
    sys.stdout.flush()


def _exit(sentence: str, code: int) -> NoReturn:
    # Ctrl-C while Python ran a text, as it does to make a class, would outweigh any exit code:
    # Python forgets it with the next text.
    exec("")
    # What fails here would be tried again by Python, which tells of it in its own words.
    try:
        print(f"isplitlbi: {printable(sentence)}", file=sys.stderr)
    except OSError:
        sys.stderr = None
    try:
        sys.stdout.flush()
    except OSError:
        sys.stdout = None
    raise SystemExit(code) from None


# --- what a process is given -----------------------------------------------------------------


def _have_outputs() -> None:
    """Write nowhere where an output is closed, and file names as they are, text or not."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    if _is_of_output("utf-8") and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="surrogateescape")


def _is_of_output(encoding: str) -> bool:
    own = getattr(sys.stdout, "encoding", None)
    return own is not None and codecs.lookup(own).name == codecs.lookup(encoding).name


class _Received:
    """The exit code that the last signal asks for."""

    code = INTERRUPTED

    def end(self, number: int, _: Any) -> None:
        """End the command as Ctrl-C does; who has asked once need not ask again."""
        signal.signal(number, signal.SIG_IGN)
        self.code = OF_SIGNAL + number
        raise KeyboardInterrupt


@contextmanager
def _ended_by_signals() -> Iterator[_Received]:
    """Let what asks a process to end do so as Ctrl-C does: nothing half-made is left."""
    received, before = _Received(), {}
    for number in _ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:  # not under nohup
            with suppress(ValueError):  # only the main thread hears of signals
                before[number] = signal.signal(number, received.end)
    try:
        yield received
    finally:
        # While Python itself ends, which takes a while, there is nothing left to interrupt.
        atexit.register(_ignore_signals)
        for number, handler in before.items():
            signal.signal(number, handler)


# What asks a process to end, besides Ctrl-C; there is no SIGHUP on Windows.
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def _ignore_signals() -> None:
    for number in (signal.SIGINT, *_ENDING):
        signal.signal(number, signal.SIG_IGN)
