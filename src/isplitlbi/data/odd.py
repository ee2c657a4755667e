"""Values of JSON that are no ids: they would become texts, of which nobody sees what they were.

Ids are texts or whole numbers. Values of other kinds are looked for in the bytes, which takes next
to no time; where there may be some, every object is looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from isplitlbi.typing import Mask

__all__ = ["Odd", "odd_values"]

# A list, an object, true or false; a fraction or a power; half of a pair of surrogates.
_VALUES = rb'(?:[\[{tf]|-?[0-9]+[.eE]|"(?:[^"\\]|\\.)*?\\u[dD][89a-fA-F])'


class Odd(NamedTuple):
    """The rows in which a column has a value that is no id, and the first such value."""

    rows: Mask
    first: Any


def odd_values(data: bytes, column: str, *, is_array: bool) -> Odd | None:
    """Return which objects have a value in a column that is no id, if there are any."""
    name = re.escape(json.dumps(column, ensure_ascii=False)[1:-1].encode("utf-8", "replace"))
    if re.search(rb'"%s"\s*:\s*%s' % (name, _VALUES), data) is None:
        return None
    values = [each.get(column) for each in _objects(data, is_array=is_array)]
    rows = np.array([_is_odd(value) for value in values])
    return Odd(rows, values[int(rows.argmax())]) if rows.any() else None


def _objects(data: bytes, *, is_array: bool) -> Iterator[dict[str, Any]]:
    if is_array:
        yield from (each for each in json.loads(data) if isinstance(each, dict))
    else:
        yield from (json.loads(line) for line in data.split(b"\n") if line.strip())


def _is_odd(value: Any) -> bool:
    if isinstance(value, str):
        return any("\ud800" <= character <= "\udfff" for character in value)
    return isinstance(value, bool | float | list | dict)
