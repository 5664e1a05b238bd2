"""What an example of a call tells: which argument holds the tokens, ids or vectors, how wide, and what stays fixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from oneblock.check.calling.sizes import Sizes


@dataclass(frozen=True)
class Example:
    """`tokens`: the argument that holds them, None where that is open; `ids` None: open; `fixed`: given as they are."""

    tokens: str | None = None
    ids: bool | None = None
    dim: int | None = None
    least_vocab: int | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def sized(self, sizes: Sizes) -> Sizes:
        """Sizes with what the example shows."""
        if self.dim is not None:
            sizes = replace(sizes, dim=self.dim, source_dim=self.dim, dims=(self.dim, *sizes.dims))
        if self.least_vocab is not None and (sizes.vocab or 0) < self.least_vocab:
            sizes = replace(sizes, vocab=self.least_vocab, embeds=True)
        return sizes


def read_example(inputs: Any) -> Example:
    """Read an example: a tensor of tokens, or a mapping from argument to value. ValueError: no tokens in it."""
    if inputs is None:
        return Example()
    if isinstance(inputs, Mapping):
        tensors = {name: x for name, x in inputs.items() if isinstance(x, Tensor) and holds_tokens(x)}
        if not tensors:
            return Example(fixed=dict(inputs))
        name = next(iter(tensors))
        rest = {key: x for key, x in inputs.items() if key not in tensors}
        return replace(read_example(tensors[name]), tokens=name, fixed=rest)
    if not isinstance(inputs, Tensor) or not holds_tokens(inputs):
        got = tuple(inputs.shape) if isinstance(inputs, Tensor) else type(inputs).__name__
        raise ValueError(f"check: inputs: expected ids (batch, length) or vectors (batch, length, dim), got {got}")
    ids = not inputs.is_floating_point()
    most = int(inputs.max()) + 1 if ids and inputs.numel() else None
    return Example(None, ids, None if ids else inputs.shape[-1], most)


def holds_tokens(x: Tensor) -> bool:
    """Whether a tensor may be ids (batch, length) or vectors (batch, length, dim)."""
    whole = not x.is_floating_point() and x.dtype != torch.bool
    return (x.ndim == 3 and x.is_floating_point()) or (x.ndim == 2 and whole)
