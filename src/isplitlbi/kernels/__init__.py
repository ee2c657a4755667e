"""The loops over votes, twice: readable in `plain` (NumPy), fast in `compiled` (numba).

Both modules hold the same functions with the same signatures; tests hold them equal. The compiled
one is used unless ``ISPLITLBI_BACKEND=numpy`` is set. It is imported on first use, because
importing numba takes longer than most commands.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

BACKENDS = {"numba": "compiled", "numpy": "plain"}


def backend(name: str | None = None) -> Any:
    """Return the module with the loops; by default the compiled one."""
    chosen = name or os.environ.get("ISPLITLBI_BACKEND", "numba")
    if chosen not in BACKENDS:
        raise ValueError(f"backend {chosen!r} is not one of {', '.join(BACKENDS)}.")
    return importlib.import_module(f"{__name__}.{BACKENDS[chosen]}")
