"""Texts with padding: where it stands, what stands there, and which numbers must not care.

Shapes: tokens (batch, length) or (batch, length, dim); real (batch, length), True = a real token.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from oneblock.check.calling.adapter import Ask
from oneblock.check.finding import Where
from oneblock.check.seeing.locate import Same, first
from oneblock.check.seeing.watch import Operation
from oneblock.check.subject import Subject, gap

SIDES = ("right", "left", "holes")
AMOUNT = 3


def shown(length: int, side: str) -> Tensor:
    """(length,), True where a text padded on this side has real tokens."""
    real = torch.ones(length, dtype=torch.bool)
    at = {"right": slice(length - min(AMOUNT, length - 2), None), "left": slice(0, min(AMOUNT, length - 2))}
    real[at[side] if side in at else slice(1, length - 1, 3)] = False
    return real


def filled(subject: Subject, x: Tensor, real: Tensor, with_pad: bool = True) -> Tensor:
    """Row 0 with padding (the pad id, or zeros) or with anything else where it is not real."""
    x = x.clone()
    if with_pad:
        x[0, ~real] = 0.0 if x.is_floating_point() else subject.adapter.pad
    else:
        x[0] = torch.where(real if x.ndim == 2 else real[:, None], x[0], subject.others(x[:1])[0])
        if x.is_floating_point():
            x[0, ~real] *= 3.0
    return x


def first_row(real: Tensor, batch: int) -> Tensor:
    """(batch, length): row 0 padded, all others real."""
    return torch.cat([real[None], torch.ones(batch - 1, len(real), dtype=torch.bool)])


def two_fillings(subject: Subject, side: str) -> tuple[Ask, Ask, Tensor]:
    """Two questions that differ in nothing but what stands at the hidden places of row 0, and (length,) who is real.

    Neither has the pad id there: some models count their positions by it.
    """
    ask = subject.ask()
    real = shown(ask.length, side)
    both = first_row(real, len(ask.tokens))
    return ask.but(real=both), ask.but(tokens=filled(subject, ask.tokens, real, False), real=both), real


def padded_row(subject: Subject, side: str) -> tuple[Ask, Ask, Tensor]:
    """(a padded text, the same text alone, (length,) who is real), one row each."""
    ask = subject.ask(1)
    real = shown(ask.length, side)
    padded = ask.but(tokens=filled(subject, ask.tokens, real), real=real[None])
    return padded, ask.but(tokens=ask.tokens[:, real]), real


def content_matters(subject: Subject, side: str) -> float:
    """How far row 0's real outputs move when only hidden tokens change."""
    key = ("padding content", side)
    if key not in subject.memo:
        a, b, real = two_fillings(subject, side)
        y, z = subject.answer(a).y[0], subject.answer(b).y[0]
        if subject.timed and len(y) == len(real):
            y, z = y[real], z[real]
        subject.memo[key] = gap(z, y) if y.shape == z.shape else float("inf")
    return float(subject.memo[key])


def among(kept: Mapping[int, Tensor], batch: int, tolerance: float, row: int | None = None) -> Same:
    """Tensors must agree at the kept places of every axis of that size; with `row`, other tensors in that row."""

    def same(x: Tensor, y: Tensor) -> bool | None:
        found = False
        for axis in range(x.ndim):
            size = x.shape[axis]
            if batch > 1 and size % batch == 0 and size // batch in kept and size not in kept:
                orders = ((batch, size // batch), (size // batch, batch))  # batch first or length first
                pairs = [[z.reshape(*z.shape[:axis], *order, *z.shape[axis + 1 :]) for z in (x, y)] for order in orders]
                return any(same(a, b) for a, b in pairs)
            if size in kept:
                x, y, found = x[(slice(None),) * axis + (kept[size],)], y[(slice(None),) * axis + (kept[size],)], True
        if not found and row is not None and x.ndim > 1 and x.shape[0] == batch:
            return gap(x[row], y[row]) <= tolerance
        return gap(x, y) <= tolerance if found else None

    return same


def first_differing(
    subject: Subject, a: Ask, b: Ask, kept: Mapping[int, Tensor], row: int | None = None
) -> Operation | None:
    """The first operation by which two questions that agree at the kept places part there."""
    one, other = (subject.watched(ask)[1] for ask in (a, b))
    return first(one, other, among(kept, len(a.tokens), subject.floor(), row))


def cut(padded: Tensor, alone: Tensor, real: Tensor) -> Tensor | None:
    """The real part of a padded tensor, as large as the other one; None where they cannot be laid side by side."""
    if padded.ndim != alone.ndim:
        return None
    length, kept = len(real), int(real.sum())
    for axis in range(padded.ndim):
        if padded.shape[axis] == alone.shape[axis]:
            continue
        if (padded.shape[axis], alone.shape[axis]) != (length, kept):
            return None
        padded = padded[(slice(None),) * axis + (real,)]
    return padded


def first_apart(
    padded: Sequence[Operation], alone: Sequence[Operation], real: Tensor, tolerance: float
) -> Operation | None:
    """The first operation that agrees in its operands with the run of the bare text, and not in its result."""
    queues: dict[tuple[str, str], list[Operation]] = defaultdict(list)
    for one in alone:
        queues[one.path, one.name].append(one)

    def same(x: Tensor, y: Tensor) -> bool | None:
        part = cut(x, y, real)
        if part is None or y.numel() < 2 or y.dtype == torch.bool:
            return None
        return gap(part, y) <= tolerance

    for one in padded:
        queue = queues[one.path, one.name]
        if not queue:
            continue
        other = queue.pop(0)
        if same(one.result, other.result) is False and all(
            same(x, y) is not False for x, y in zip(one.operands, other.operands, strict=False)
        ):
            return one
    return None


def parted(subject: Subject, padded: Ask, alone: Ask, real: Tensor) -> Where:
    """Where a padded text (one row) and the bare text part."""
    a, b = (subject.watched(one)[1] for one in (padded, alone))
    one = first_apart(a, b, real, subject.floor())
    return one.where if one else Where()
