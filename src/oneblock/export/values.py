"""Values as text: what a fold knows of a brick, as Python writes it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any


class Code(str):
    """The text of an expression, where other values stand for themselves."""

    __slots__ = ()


Use = Mapping[str, Any]
"""What is known of one use of a brick: name -> number, word, truth, None, or Code."""


def literal(value: Any) -> str:
    """A value as Python and ruff write it.

    >>> literal(50257), literal("half"), literal(1e-05)
    ('50_257', '"half"', '1e-5')
    """
    if isinstance(value, Code):
        return str(value)
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, int):
        return f"{value:_}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, float) and not isfinite(value):
        return f'float("{value}")'
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' * (len(value) == 1)})"
    return f"{value:_}" if 10_000 <= abs(value) < 1e16 else repr(value).replace("e-0", "e-")


def hint(values: Sequence[Any]) -> str:
    """The type of a parameter that takes these values.

    >>> hint([3, None])
    'int | None'
    """
    kinds: dict[str, None] = {}
    for value in values:
        kinds[_kind(value)] = None
    return " | ".join(sorted(kinds, key=lambda kind: kind == "None"))


def _kind(value: Any) -> str:
    if isinstance(value, Code):
        made = re.match(r"(nn\.)?([A-Z]\w*)\(", value)
        return made[0][:-1] if made else "Callable[[Tensor], Tensor]"
    return "None" if value is None else type(value).__name__
