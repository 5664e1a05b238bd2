"""Where two runs part: the first operation whose operands agree on what must agree and whose result does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from oneblock.check.finding import Where
from oneblock.check.seeing.watch import Operation
from oneblock.check.subject import gap

UNWRITTEN = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
"""Operations whose result is whatever stood in memory."""
Same = Callable[[Tensor, Tensor], bool | None]
"""Whether two tensors agree where they must; None: where that is cannot be told from their shape."""


def first(a: Sequence[Operation], b: Sequence[Operation], same: Same) -> Operation | None:
    """The first operation that brings the difference in, None where no single one can be named."""
    for one, other in zip(a, b, strict=False):
        if one.name != other.name or one.path != other.path or one.result.shape != other.result.shape:
            return other
        if one.name in UNWRITTEN:
            continue
        if same(one.result, other.result) is False and all(
            same(x, y) is not False for x, y in zip(one.operands, other.operands, strict=False) if x.shape == y.shape
        ):
            return one
    return None


def place(operation: Operation | None) -> Where:
    """The place of an operation: its module, and its line of source where that is not torch's own."""
    return Where() if operation is None else operation.where


def before(position: int, length: int, batch: int, tolerance: float) -> Same:
    """Tensors must agree before `position`: on every axis as long as the text, and within flattened rows."""

    def same(x: Tensor, y: Tensor) -> bool | None:
        kept = (slice(None, position),)
        found = False
        for axis in range(x.ndim):
            if x.shape[axis] == length:
                at = (slice(None),) * axis + kept
                x, y, found = x[at], y[at], True
            elif x.shape[axis] == batch * length and batch > 1:
                x, y = (z.unflatten(axis, (batch, length)) for z in (x, y))
                at = (slice(None),) * (axis + 1) + kept
                x, y, found = x[at], y[at], True
        return gap(x, y) <= tolerance if found else None

    return same


def within_row(row: int, batch: int, length: int, tolerance: float) -> Same:
    """Tensors must agree in one row of the batch: on the first axis as large as the batch, or within flattened rows."""

    def same(x: Tensor, y: Tensor) -> bool | None:
        for axis in range(x.ndim):
            size = x.shape[axis]
            if size == batch:
                return gap(x.select(axis, row), y.select(axis, row)) <= tolerance
            if size > batch and size % batch == 0 and axis == 0 and (size == batch * length or x.ndim > 2):
                whole = [z.unflatten(0, (batch, size // batch))[row] for z in (x, y)]
                agreed = gap(*whole) <= tolerance
                if size == batch * length and not agreed:  # the length may come first
                    whole = [z.unflatten(0, (length, batch))[:, row] for z in (x, y)]
                    agreed = gap(*whole) <= tolerance
                return agreed
        return None

    return same
