"""Head: the stream becomes one logit per token of the vocabulary. x: (..., dim); logits: (..., vocab)."""

from __future__ import annotations

from torch import Tensor, nn

from oneblock.bricks.attend import capped
from oneblock.bricks.block import times
from oneblock.bricks.build import build
from oneblock.bricks.feedforward import ACTIVATIONS
from oneblock.spec import Head, Transform
from oneblock.tap import tap


class TransformBrick(nn.Module):
    """norm(activation(dense(x)))."""

    def __init__(self, spec: Transform, dim: int) -> None:
        super().__init__()
        self.dense, self.norm = nn.Linear(dim, dim), build(spec.norm, dim)
        self.activation = ACTIVATIONS[spec.activation]

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.activation(self.dense(x)))


class HeadBrick(nn.Module):
    """scale * (transform(x) W^T + bias), capped; W is the token table when tied (Press and Wolf 2017, 1608.05859)."""

    def __init__(self, spec: Head, dim: int, table: nn.Embedding) -> None:
        super().__init__()
        self.softcap, self.scale = spec.softcap, 1.0 if spec.scale is None else spec.scale
        self.transform = build(spec.transform, dim)
        self.out = nn.Linear(dim, table.num_embeddings, bias=spec.bias)
        if spec.tied:
            self.out.weight = table.weight

    def forward(self, x: Tensor) -> Tensor:
        logits = capped(times(self.scale, self.out(self.transform(x))), self.softcap)
        return tap(logits, "logits", x=x)


build.register(Transform, TransformBrick)
