"""Specs become modules: one file per brick, one open function `build`."""

from __future__ import annotations

from torch import nn

from oneblock.bricks import block, embedding, experts, feedforward, head, norms  # noqa: F401  (they register their bricks)
from oneblock.bricks.attend import attend, written
from oneblock.bricks.build import build
from oneblock.bricks.context import Context, Memory
from oneblock.bricks.loss import chunked_cross_entropy, cross_entropy
from oneblock.bricks.output import Output
from oneblock.bricks.seq2seq import EncoderDecoder, shift_right
from oneblock.bricks.transformer import Transformer
from oneblock.spec import Model, Seq2Seq, Spec


def build_model(spec: Spec | object, dim: int | None = None) -> nn.Module:
    """The module of a spec: of a whole model, or of any brick when `dim`, the width of its stream, is given.

    Works under `torch.device("meta")`. Raises ValueError where parts of the spec do not fit each other.

    >>> from oneblock.zoo import named
    >>> sum(p.numel() for p in build_model(named("vaswani", dim=8, depth=1, heads=2, hidden=16, vocab=9)).parameters())
    1576
    """
    if isinstance(spec, Seq2Seq):
        return EncoderDecoder(spec)
    if isinstance(spec, Model):
        return Transformer(spec)
    if dim is None:
        raise ValueError(f"build: {type(spec).__name__} is no whole model: expected dim, the width of its stream")
    return build(spec, dim)


__all__ = [
    "Context",
    "EncoderDecoder",
    "Memory",
    "Output",
    "Transformer",
    "attend",
    "build",
    "build_model",
    "chunked_cross_entropy",
    "cross_entropy",
    "shift_right",
    "written",
]
