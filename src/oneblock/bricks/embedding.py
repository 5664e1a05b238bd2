"""Embedding: a token id picks its row of a table (one-hot times matrix), position and segment are added.

ids: (batch, length); x: (batch, length, dim).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oneblock.bricks.build import build
from oneblock.bricks.dropout import Dropout
from oneblock.mask import Places
from oneblock.spec import Embedding
from oneblock.tap import tap


class EmbeddingBrick(nn.Module):
    """dropout(norm(scale * token + position + segment))."""

    def __init__(self, spec: Embedding, dim: int) -> None:
        super().__init__()
        self.token = nn.Embedding(spec.vocab, dim)
        self.position = None if spec.position is None else build(spec.position, dim)
        self.segment = nn.Embedding(spec.segments, dim) if spec.segments else None
        self.norm = build(spec.norm, dim)
        self.scale = dim**0.5 if spec.scale == "sqrt_dim" else 1.0
        self.dropout = Dropout(spec.dropout)

    def forward(
        self, ids: Tensor | None, here: Places, segment: Tensor | None = None, vectors: Tensor | None = None
    ) -> Tensor:
        token = tap(self.token(ids) if vectors is None else vectors, "token", ids=ids)
        x = self.segmented(self.placed(self.scaled(token), here), here, segment)
        return tap(self.dropout(self.norm(x)), "embedded", token=token, scale=self.scale)

    def scaled(self, x: Tensor) -> Tensor:
        """scale * x, the factor in the dtype of x, as where such models were trained: 55.5 for sqrt(3072) in bf16."""
        return x if self.scale == 1 else x * torch.tensor(self.scale, dtype=x.dtype)

    def placed(self, x: Tensor, here: Places) -> Tensor:
        """x plus a vector for each position, where the spec adds one."""
        if self.position is None:
            return x
        return x + tap(self.position(here.position), "position", position=here.position).type_as(x)

    def segmented(self, x: Tensor, here: Places, segment: Tensor | None) -> Tensor:
        """x plus a vector for each segment, where the spec has segments; 0 where none is given."""
        if self.segment is None:
            return x
        return x + self.segment(torch.zeros_like(here.index) if segment is None else segment)


build.register(Embedding, EmbeddingBrick)
