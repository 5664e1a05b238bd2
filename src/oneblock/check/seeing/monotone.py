"""A text of one token again and again: whatever differs between its places was brought in by the model's positions.

Shapes: tokens (1, length); q, k, v (1, heads, length, head_dim).
"""

from __future__ import annotations

import torch
from torch import Tensor

from oneblock.check.asked import CannotAskError
from oneblock.check.calling.adapter import Ask
from oneblock.check.seeing.sites import Site, sites
from oneblock.check.seeing.watch import Operation
from oneblock.check.subject import Subject, gap


def same_token(subject: Subject, length: int | None = None) -> Ask:
    """One token, `length` times; the source stays a text of many."""
    if subject.adapter.vocab is None:
        raise CannotAskError("the module takes vectors: whoever makes them adds the positions")
    ask = subject.ask(1, length)
    return ask.but(tokens=ask.tokens[:, :1].expand(-1, ask.length).contiguous())


def monotone(
    subject: Subject, dtype: torch.dtype = torch.float64, length: int | None = None, shaken: bool = True
) -> tuple[Ask, list[Operation], list[Site]]:
    """(the question, every operation, the sites where its tokens attend to each other)."""
    key = ("monotone", dtype, length, shaken)
    if key not in subject.memo:
        ask = same_token(subject, length)
        seen = subject.watched(ask, dtype, shaken=shaken)[1]
        own = [one for one in sites(seen) if one.queries == one.keys == ask.length]
        subject.memo[key] = ask, seen, own
    found: tuple[Ask, list[Operation], list[Site]] = subject.memo[key]
    return found


def rows_differ(x: Tensor, axis: int = -2) -> float:
    """How far the places of a text differ: 0 for a model that does not know where they are."""
    return gap(x, x.narrow(axis, 0, 1).expand_as(x))


def uniform(one: Operation | None, length: int) -> bool:
    """Whether a projection gave the same vector at every place of the text, in whatever precision it ran."""
    if one is None:
        return False
    x = one.result
    axis = next((n for n, size in enumerate(x.shape) if size == length), None)
    return axis is not None and rows_differ(x, axis) <= 64 * torch.finfo(x.dtype).eps
