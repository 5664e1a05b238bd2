"""Heads: what is made of the stream at the end: logits over the vocabulary, over labels, or one vector per text.

x: (batch, length, dim); logits: (batch, length, vocab) or (batch, labels).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from oneblock.bricks.attend import capped
from oneblock.bricks.block import times
from oneblock.bricks.build import build
from oneblock.bricks.dropout import Dropout
from oneblock.bricks.feedforward import ACTIVATIONS
from oneblock.bricks.loss import IGNORED, chunked_cross_entropy, cross_entropy
from oneblock.mask import Places
from oneblock.spec import Classify, Head, Pool, Pooling, Transform
from oneblock.tap import tap

Answer = dict[str, object]
"""Fields of an `Output`: logits, loss, tokens, pooled."""


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

    def answer(self, x: Tensor, here: Places, labels: Tensor | None, keep: int | None, shift: bool) -> Answer:
        """Logits of the last `keep` positions (None: all) and the loss; `labels` line up with x unless `shift`."""
        logits = self(x if keep is None else x[:, -keep:]) if keep != 0 else None
        if labels is None:
            return {"logits": logits}
        labels = shifted(labels, here) if shift else labels
        whole = logits is not None and logits.shape[1] == x.shape[1]
        total, tokens = cross_entropy(logits, labels) if whole else chunked_cross_entropy(x, self, labels)
        return {"logits": logits, "loss": total / max(tokens, 1), "tokens": tokens}


class PoolBrick(nn.Module):
    """One vector per text (batch, dim)."""

    def __init__(self, spec: Pool, dim: int, table: nn.Embedding) -> None:  # noqa: ARG002
        super().__init__()
        self.pool, self.transform = POOLINGS[spec.pool], build(spec.transform, dim)

    def forward(self, x: Tensor, here: Places) -> Tensor:
        return tap(self.transform(self.pool(x, here)), "pooled", x=x)

    def answer(self, x: Tensor, here: Places, labels: Tensor | None, keep: int | None, shift: bool) -> Answer:  # noqa: ARG002
        """The pooled vector."""
        return {"pooled": self(x, here)}


class ClassifyBrick(nn.Module):
    """dropout(transform(pool(x))) W^T + bias: (batch, labels)."""

    def __init__(self, spec: Classify, dim: int, table: nn.Embedding) -> None:  # noqa: ARG002
        super().__init__()
        self.pool, self.transform = POOLINGS[spec.pool], build(spec.transform, dim)
        self.dropout = Dropout(spec.dropout)
        self.out = nn.Linear(dim, spec.labels, bias=spec.bias)

    def forward(self, x: Tensor, here: Places) -> Tensor:
        return tap(self.out(self.dropout(self.transform(self.pool(x, here)))), "logits", x=x)

    def answer(self, x: Tensor, here: Places, labels: Tensor | None, keep: int | None, shift: bool) -> Answer:  # noqa: ARG002
        """Logits of the labels, and the mean loss over texts; one label alone is a number to be met (squared error)."""
        logits = self(x, here)
        if labels is None:
            return {"logits": logits}
        if logits.shape[1] == 1:
            return {"logits": logits, "loss": F.mse_loss(logits[:, 0], labels.to(logits.dtype)), "tokens": len(labels)}
        total, texts = cross_entropy(logits, labels)
        return {"logits": logits, "loss": total / max(texts, 1), "tokens": texts}


def shifted(labels: Tensor, here: Places) -> Tensor:
    """What each position must predict: the next token; nothing at the end, and nothing from padding."""
    following = F.pad(labels[:, 1:], (0, 1), value=IGNORED)
    return following if here.real is None else following.masked_fill(~here.real, IGNORED)


def weights(here: Places, x: Tensor) -> Tensor:
    """1 at real tokens, 0 at padding: (batch | 1, length, 1)."""
    real = torch.ones_like(here.index, dtype=torch.bool) if here.real is None else here.real
    return real[:, :, None].to(x.dtype)


def first(x: Tensor, here: Places) -> Tensor:
    """The stream at each text's first real token."""
    return pick(x, weights(here, x)[:, :, 0].argmax(1))


def last(x: Tensor, here: Places) -> Tensor:
    """The stream at each text's last real token."""
    return pick(x, x.shape[1] - 1 - weights(here, x)[:, :, 0].flip(1).argmax(1))


def mean(x: Tensor, here: Places) -> Tensor:
    """The mean of the stream over each text's real tokens."""
    share = weights(here, x)
    return (x * share).sum(1) / share.sum(1).clamp(min=1)


def pick(x: Tensor, at: Tensor) -> Tensor:
    """x at one position of each text: (batch, length, dim) and (batch | 1,) -> (batch, dim)."""
    return x[torch.arange(len(x), device=x.device), at]


POOLINGS: dict[Pooling, Callable[[Tensor, Places], Tensor]] = {"first": first, "last": last, "mean": mean}
HEADS = {Head: HeadBrick, Pool: PoolBrick, Classify: ClassifyBrick}


build.register(Transform, TransformBrick)
