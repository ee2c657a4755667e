"""How a command ends: what went wrong becomes a sentence and an exit code.

0    done
1    a bug of ours, with its traceback
2    what was asked for cannot be done, and the sentence says what to do instead
3    `check`: the votes are usable, with serious warnings or, with --strict, any warnings
130  interrupted
"""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING, NoReturn

from isplitlbi.cli.flags import as_option
from isplitlbi.errors import ISplitLBIError
from isplitlbi.markup import printable

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WARNED", "Interrupted"]

BUG, REFUSED, WARNED, INTERRUPTED = 1, 2, 3, 130


class Interrupted(Exception):
    """A person has interrupted a command; the message says how to go on."""


def run(command: Callable[[], object]) -> None:
    """Run a command and exit as its errors ask for."""
    try:
        command()
    except SystemExit as ended:
        if ended.code == INTERRUPTED:  # typer makes this of Ctrl-C
            _exit("interrupted.", INTERRUPTED)
        raise
    except KeyboardInterrupt:
        _exit("interrupted.", INTERRUPTED)
    except Interrupted as error:
        _exit(f"interrupted; {error}", INTERRUPTED)
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
    except Exception:
        traceback.print_exc()
        _exit(
            "this is a bug in isplitlbi, not your mistake. Please report it, with the lines above "
            "and the command.",
            BUG,
        )


def _exit(sentence: str, code: int) -> NoReturn:
    print(f"isplitlbi: {printable(sentence)}", file=sys.stderr)
    raise SystemExit(code) from None
