"""The kinds of arrays that functions here take and give, named once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "Indices", "Integers", "Labels", "Mask", "Places"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]  # indices that are kept, one per vote or slot
Places = NDArray[np.int64]  # indices on their way: keys, starts, counts
Indices = NDArray[np.integer]  # either
Mask = NDArray[np.bool_]
Labels = NDArray[Any]  # ids: strings or integers
