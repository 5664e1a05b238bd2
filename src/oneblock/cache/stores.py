"""What one attention layer keeps between steps, in three kinds: growing, static, rolling.

Kept tensors are (batch, kv_heads, length, head_dim).
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from oneblock.mask import Places

Tensors = dict[str, Tensor]


class Store(Protocol):
    """What a cache needs of a layer's store."""

    kept: Tensors

    def extend(self, new: Tensors, here: Places) -> Tensors:
        """Take in new tokens, which stand `here`; give all that the new queries may look at."""

    def places(self, seen: Places) -> Places:
        """The places of what `extend` gives; `seen` are those of all tokens so far, the new ones included."""

    def crop(self, length: int, before: int) -> None:
        """Forget all but the first `length` of the `before` tokens so far."""


class Growing:
    """Keeps everything, with room behind it: new tokens are written there, and old ones seldom move."""

    def __init__(self) -> None:
        self.kept: Tensors = {}
        self.room: Tensors = {}

    def extend(self, new: Tensors, here: Places) -> Tensors:  # noqa: ARG002
        # What a gradient needs is not written over.
        alone = not self.kept or any(x.requires_grad for x in (*self.kept.values(), *new.values()))
        self.kept = _joined(self.kept, new) if alone else {name: self.behind(name, x) for name, x in new.items()}
        return self.kept

    def behind(self, name: str, new: Tensor) -> Tensor:
        """What is kept, followed by new tokens."""
        old, room = self.kept[name], self.room.get(name)
        start, stop = old.shape[2], old.shape[2] + new.shape[2]
        if room is None or room.data_ptr() != old.data_ptr() or room.shape[2] < stop:
            room = self.room[name] = old.new_empty(*old.shape[:2], stop + stop // 2, old.shape[3])
            room[:, :, :start] = old
        room[:, :, start:stop] = new
        return room[:, :, :stop]

    def places(self, seen: Places) -> Places:
        return seen

    def crop(self, length: int, before: int) -> None:  # noqa: ARG002
        self.kept = {name: tensor[:, :, :length] for name, tensor in self.kept.items()}


class Rolling:
    """Keeps the last `window` tokens. A prefill looks at all its tokens first, then the tail is kept."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.kept: Tensors = {}
        self.joined = 0

    def extend(self, new: Tensors, here: Places) -> Tensors:  # noqa: ARG002
        joined = _joined(self.kept, new)
        self.joined = _length(joined)
        self.kept = {name: tensor[:, :, -self.window :] for name, tensor in joined.items()}
        return joined

    def places(self, seen: Places) -> Places:
        return seen.part(seen.length - self.joined, seen.length)

    def crop(self, length: int, before: int) -> None:
        kept = _length(self.kept)
        left = length - (before - kept)
        if left < min(self.window - 1, length):
            raise ValueError(
                f"cache.crop: expected at least {before - kept + self.window - 1} tokens to stay, got {length}: "
                f"a rolling cache keeps the last {self.window} only; start again from an empty cache"
            )
        self.kept = {name: tensor[:, :, :left] for name, tensor in self.kept.items()}


class Static:
    """Room for `length` tokens made once; unused room is hidden by places that are not real.

    Where tokens go is told by their places, a tensor: so every step is the same graph when compiled.
    """

    def __init__(self, length: int) -> None:
        self.length, self.empty = length, True
        self.kept: Tensors = {}

    def extend(self, new: Tensors, here: Places) -> Tensors:
        for name, tensor in new.items():
            batch, heads, _, width = tensor.shape
            if name not in self.kept or (self.empty and len(self.kept[name]) != batch):
                self.kept[name] = tensor.new_zeros(batch, heads, self.length, width)
            self.kept[name].index_copy_(2, here.index[0], tensor)
        self.empty = False
        return self.kept

    def places(self, seen: Places) -> Places:
        room = torch.arange(seen.length, self.length, device=seen.index.device)[None]
        return seen.then(Places(room, room, torch.zeros_like(room, dtype=torch.bool)))

    def crop(self, length: int, before: int) -> None:  # noqa: ARG002
        """What is beyond the places that are left is hidden, then written over."""
        self.empty = length == 0


def _joined(kept: Tensors, new: Tensors) -> Tensors:
    return {name: torch.cat([kept[name], tensor], dim=2) if name in kept else tensor for name, tensor in new.items()}


def _length(kept: Tensors) -> int:
    return next((tensor.shape[2] for tensor in kept.values()), 0)
