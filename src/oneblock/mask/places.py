"""Where tokens stand: all that masks, position embeddings and rotations may ask about a token.

batch: sentences, or 1 where all are alike; length: tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Places:
    """The places of the tokens of a batch. Each field is (batch | 1, length).

    index: where a token lies in the sequence; causal and window masks compare it. position: what embeddings and
    rotations use; it skips left padding and restarts per document. real: False at padding, None when all are real.
    document: which document a token belongs to, None when there is one.
    last: the plain places that these end with, when they were joined.
    """

    index: Tensor
    position: Tensor
    real: Tensor | None = None
    document: Tensor | None = None
    last: Places | None = None

    @property
    def length(self) -> int:
        """How many tokens."""
        return self.index.shape[1]

    @property
    def plain(self) -> bool:
        """Whether every token is real and of one document."""
        return self.real is None and self.document is None

    def part(self, start: int, stop: int) -> Places:
        """The places of tokens start ... stop - 1."""
        return self.map(lambda field: field[:, start:stop])

    def rows(self, rows: Tensor) -> Places:
        """The places of some sentences; a field that is alike for all stays so."""
        return self.map(lambda field: field if len(field) == 1 else field.index_select(0, rows))

    def map(self, f: Callable[[Tensor], Tensor]) -> Places:
        """Apply `f` to every field that is there."""
        fields = (self.index, self.position, self.real, self.document)
        return Places(*(None if field is None else f(field) for field in fields))

    def then(self, more: Places) -> Places:
        """These places followed by others."""
        return Places(
            _join(self.index, more.index),
            _join(self.position, more.position),
            _join_optional(self, more, "real", True),
            _join_optional(self, more, "document", 0),
            more if more.plain else None,
        )


def places(
    length: int,
    mask: Tensor | None = None,
    position: Tensor | None = None,
    document: Tensor | None = None,
    past: Places | None = None,
    device: torch.device | None = None,
    counted: str = "real",
) -> Places:
    """The places of `length` new tokens after `past`.

    Args:
        length: number of new tokens.
        mask: (batch, past + length) or (batch, length), 1 at real tokens. All ones is the same as None.
        position: (batch | 1, length); by default real tokens are counted from 0 (cumulative sum of the mask - 1,
            at least 0), or counted on from the past.
        document: (batch | 1, length) document numbers.
        past: places of the tokens already in a cache.
        device: where to make them.
        counted: "all" makes the position the index, padding counted too.

    Raises:
        ValueError: when shapes do not fit.

    >>> places(5, mask=torch.tensor([[0, 0, 1, 1, 1]])).position
    tensor([[0, 0, 0, 1, 2]])
    """
    before = 0 if past is None else past.length
    index = torch.arange(before, before + length, device=device)[None]
    real = _real(mask, length, before)
    if position is None:
        position = index if counted == "all" else _count(real, index, past)
    elif position.shape[-1] != length:
        raise ValueError(f"position_ids: expected length {length}, got {position.shape[-1]}")
    real = None if real is None else real[:, -length:]
    return Places(index, position if position.ndim == 2 else position[None], real, document)


def _real(mask: Tensor | None, length: int, before: int) -> Tensor | None:
    if mask is None:
        return None
    if mask.ndim != 2 or mask.shape[1] not in (length, before + length):
        raise ValueError(f"attention_mask: expected (batch, {before + length}), got {tuple(mask.shape)}")
    if not torch.compiler.is_compiling() and bool(mask.all()):
        return None
    return mask.bool()


def _count(real: Tensor | None, index: Tensor, past: Places | None) -> Tensor:
    length = index.shape[1]
    if real is None:
        return index if past is None else _next(past) + torch.arange(length, device=index.device)
    counted = real.long().cumsum(-1) - 1
    if past is not None and real.shape[1] == length:
        counted = counted + _next(past)
    return counted.clamp(min=0)[:, -length:]


def _next(past: Places) -> Tensor:
    """The position after the last real token: (batch | 1, 1); still 0 where all was padding so far."""
    return past.position[:, -1:] + (1 if past.real is None else past.real.any(-1, keepdim=True).long())


def _join(a: Tensor, b: Tensor) -> Tensor:
    batch = max(len(a), len(b))
    return torch.cat([a.expand(batch, -1), b.expand(batch, -1)], dim=1)


def _join_optional(a: Places, b: Places, name: str, default: bool | int) -> Tensor | None:
    first, second = getattr(a, name), getattr(b, name)
    if first is None and second is None:
        return None
    dtype = torch.tensor(default).dtype
    sides = ((a.index, first), (b.index, second))
    return _join(*(torch.full_like(like, default, dtype=dtype) if x is None else x for like, x in sides))
