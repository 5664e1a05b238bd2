"""Both ends of a stack: ids become vectors, vectors become logits. ids: (batch, length); x: (batch, length, dim)."""

from typing import Any

import torch
from torch import Tensor, nn


class Embedding(nn.Module):
    """A vector per token."""

    def __init__(self, spec: Any) -> None:
        super().__init__()
        self.token = nn.Embedding(spec.vocab, spec.dim)
        self.position = spec.position
        if spec.segments:
            self.segment = nn.Embedding(spec.segments, spec.dim)
        self.norm = spec.norm
        self.dropout = spec.dropout

    def forward(self, ids: Tensor, position: Tensor, segment: Tensor) -> Tensor:
        """ids: (batch, length)."""
        x = self.token(ids)  # (batch, length, dim)
        if self.spec.scaled:
            x = x * torch.tensor(self.spec.dim**0.5, dtype=x.dtype)
        if self.spec.kind == "learned":
            x = x + self.position(position + self.spec.offset if self.spec.offset else position)
        if self.spec.kind == "sinusoidal":
            x = x + self.position(position).type_as(x)
        if self.spec.segments:
            x = x + self.segment(segment)
        if self.spec.norm is not None:
            x = self.norm(x)
        if self.spec.dropout is not None:
            x = self.dropout(x)
        return x


class Transform(nn.Module):
    """norm(activation(dense(x)))."""

    def __init__(self, spec: Any) -> None:
        super().__init__()
        self.dense = nn.Linear(spec.dim, spec.dim)
        self.norm = spec.norm

    def forward(self, x: Tensor) -> Tensor:
        x = self.spec.activation(self.dense(x))
        if self.spec.norm is not None:
            x = self.norm(x)
        return x


class Head(nn.Module):
    """One logit per token of the vocabulary."""

    def __init__(self, spec: Any) -> None:
        super().__init__()
        self.transform = spec.transform
        self.out = nn.Linear(spec.dim, spec.outputs, bias=spec.bias)

    def forward(self, x: Tensor) -> Tensor:
        if self.spec.transform is not None:
            x = self.transform(x)
        logits = self.spec.scale * self.out(x) if self.spec.scale not in (None, 1) else self.out(x)
        if self.spec.softcap is not None:
            logits = self.spec.softcap * (logits / self.spec.softcap).tanh()
        return logits  # (batch, length, vocab)


class Pool(nn.Module):
    """One vector per text."""

    def __init__(self, spec: Any) -> None:
        super().__init__()
        self.transform = spec.transform
        if spec.outputs:
            self.out = nn.Linear(spec.dim, spec.outputs, bias=spec.bias)
        self.dropout = spec.dropout

    def forward(self, x: Tensor, real: Tensor) -> Tensor:
        """x: (batch, length, dim); real: (batch, length), False at padding."""
        if self.spec.pool == "first":
            at = real.int().argmax(1)  # where each text begins
        if self.spec.pool == "last":
            at = x.shape[1] - 1 - real.int().flip(1).argmax(1)  # where each text ends
        if self.spec.pool == "mean":
            share = real[:, :, None].type_as(x)
            x = (x * share).sum(1) / share.sum(1).clamp(min=1)  # (batch, dim)
        else:
            x = x[torch.arange(x.shape[0], device=x.device), at]  # (batch, dim)
        if self.spec.transform is not None:
            x = self.transform(x)
        if self.spec.dropout is not None:
            x = self.dropout(x)
        if self.spec.outputs:
            x = self.out(x)  # (batch, labels)
        return x
