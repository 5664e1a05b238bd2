"""Tensors under our names and under theirs: one table of rows, carried out both ways.

Projections are stored (outputs, inputs); experts (experts, outputs, inputs).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import singledispatch
from itertools import product

import torch
from torch import Tensor

from oneblock.zoo.family import Experts, Flat, Flip, Fused, Paired, Row

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Group:
    """Some tensors of ours and those of theirs that hold the same numbers, and the row that says how."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    row: Row


def groups(rows: Mapping[str, tuple[Row, str]], shapes: Shapes) -> Iterator[Group]:
    """What each row means for a model whose tensors have these shapes; each of ours is in exactly one group.

    Args:
        rows: our module -> (row, prefix of their name). `*` stands for a number, {a,b} for several; a name without
            leaf takes weight and bias along, one that ends in a leaf is a whole name on both sides.
        shapes: our names of tensors -> shapes.

    Raises:
        ValueError: a tensor of ours that no row names.
    """
    left = set(shapes)
    for pattern, (row, prefix) in rows.items():
        names = braces(pattern)
        whole = names[0].endswith((".weight", ".bias"))
        matcher = re.compile(re.escape(names[0]).replace(r"\*", r"(\d+)") + ("()" if whole else r"(\.weight|\.bias)"))
        for first in sorted(shapes):
            if not (match := matcher.fullmatch(first)) or first not in left:
                continue
            *numbers, leaf = match.groups()
            ours = [filled(name, numbers) + leaf for name in names]
            theirs = list(spread(row, prefix, numbers, leaf, len(names), shapes[first]))
            left -= set(ours)
            each = isinstance(row, str | Flip | Flat | Paired | Experts)
            yield from _pairs(ours, theirs, row) if each else [Group(tuple(ours), tuple(theirs), row)]
    if left:
        raise ValueError(f"weights: no row of the family's table names {', '.join(sorted(left)[:3])}")


def _pairs(ours: list[str], theirs: list[str], row: Row) -> Iterator[Group]:
    """One of ours at a time, with its share of theirs."""
    share = len(theirs) // len(ours)
    for i, name in enumerate(ours):
        yield Group((name,), tuple(theirs[i * share : (i + 1) * share]), row)


def spread(
    row: Row, prefix: str, numbers: Iterable[str], leaf: str, count: int, shape: tuple[int, ...]
) -> Iterator[str]:
    """Their names that a row speaks of."""
    pattern = row if isinstance(row, str) else row.theirs
    names = braces(pattern)
    if len(names) == 1 and count > 1 and not isinstance(row, Fused):
        raise ValueError(f"weights: {pattern} is one name for {count} of ours; only Fused is that")
    for name in names:
        for expert in range(shape[0]) if isinstance(row, Experts) else [0]:
            yield prefix + filled(name, [*numbers, str(expert)]) + leaf


def braces(pattern: str) -> list[str]:
    """A pattern with {a,b} as the patterns it stands for.

    >>> braces("layers.*.{q,k}_proj")
    ['layers.*.q_proj', 'layers.*.k_proj']
    """
    parts = re.split(r"\{([^}]*)\}", pattern)
    choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
    return ["".join(chosen) for chosen in product(*choices)]


def filled(pattern: str, numbers: Iterable[str]) -> str:
    """A pattern with its stars replaced, in order."""
    left = iter(numbers)
    return re.sub(r"\*", lambda _: next(left), pattern)


@singledispatch
def ours(row: Row, theirs: list[Tensor], shapes: list[tuple[int, ...]]) -> list[Tensor]:  # noqa: ARG001
    """Our tensors from theirs; views where nothing must move."""
    return theirs


@singledispatch
def theirs(row: Row, ours: list[Tensor]) -> list[Tensor]:  # noqa: ARG001
    """Their tensors from ours."""
    return ours


@ours.register
def _(row: Flip, theirs: list[Tensor], shapes: list[tuple[int, ...]]) -> list[Tensor]:  # noqa: ARG001
    return [flipped(x) for x in theirs]


@theirs.register
def _(row: Flip, ours: list[Tensor]) -> list[Tensor]:  # noqa: ARG001
    return [flipped(x) for x in ours]


@ours.register
def _(row: Fused, theirs: list[Tensor], shapes: list[tuple[int, ...]]) -> list[Tensor]:
    (x,) = theirs
    x = flipped(x) if row.flip else x
    sizes = [shape[0] // row.groups for shape in shapes]
    if sum(sizes) * row.groups != len(x):
        raise ValueError(f"{row.theirs}: expected {sum(sizes) * row.groups} rows, got {len(x)}")
    return [part.flatten(0, 1) for part in x.unflatten(0, (row.groups, -1)).split(sizes, dim=1)]


@theirs.register
def _(row: Fused, ours: list[Tensor]) -> list[Tensor]:
    x = torch.cat([part.unflatten(0, (row.groups, -1)) for part in ours], dim=1).flatten(0, 1)
    return [flipped(x) if row.flip else x]


@ours.register
def _(row: Experts, theirs: list[Tensor], shapes: list[tuple[int, ...]]) -> list[Tensor]:  # noqa: ARG001
    return [torch.stack(theirs)]


@theirs.register
def _(row: Experts, ours: list[Tensor]) -> list[Tensor]:  # noqa: ARG001
    return list(ours[0].unbind(0))


@ours.register
def _(row: Flat, theirs: list[Tensor], shapes: list[tuple[int, ...]]) -> list[Tensor]:  # noqa: ARG001
    return [x.reshape(shape) for x, shape in zip(theirs, shapes, strict=True)]


@theirs.register
def _(row: Flat, ours: list[Tensor]) -> list[Tensor]:  # noqa: ARG001
    return [x[None] for x in ours]


@ours.register
def _(row: Paired, theirs: list[Tensor], shapes: list[tuple[int, ...]]) -> list[Tensor]:  # noqa: ARG001
    return [x.unflatten(0, (row.heads, -1, 2)).transpose(1, 2).reshape(x.shape) for x in theirs]


@theirs.register
def _(row: Paired, ours: list[Tensor]) -> list[Tensor]:
    return [x.unflatten(0, (row.heads, 2, -1)).transpose(1, 2).reshape(x.shape) for x in ours]


def flipped(x: Tensor) -> Tensor:
    """A matrix turned over; a bias as it is."""
    return x.mT if x.ndim == 2 else x


__all__ = ["Group", "Shapes", "braces", "groups", "ours", "theirs"]
