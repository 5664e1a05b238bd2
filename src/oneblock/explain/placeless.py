"""A model that is told no positions: the same weights in a spec that leaves out whatever says where tokens stand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import nn

from oneblock.explain.variant import Variant
from oneblock.spec import Attention, Block, Model, Seq2Seq, Spec


def placeless(model: nn.Module) -> nn.Module:
    """A copy of a model of ours without positions: none added to the embedding, none in attention.

    A causal mask still lets tokens know what stands before them. ValueError: a model that is told none anyway.

    >>> import oneblock, torch
    >>> model = oneblock.build(oneblock.named("bert", dim=8, depth=1, heads=2, hidden=8, vocab=9)).eval()
    >>> first, second = placeless(model)(torch.tensor([[3, 4, 5], [5, 3, 4]])).logits
    >>> torch.allclose(first[0], second[1], atol=1e-6)
    True
    """
    spec: Any = model.spec
    bare = bared(spec)
    if bare == spec:
        raise ValueError(
            "positions: expected a model that is told positions, got one that is told none; there is nothing to "
            "leave out"
        )
    return Variant.of(model, {}).respecced(bare).built()


def bared(spec: Spec) -> Spec:
    """A spec without positions."""
    if isinstance(spec, Seq2Seq):
        return replace(spec, encoder=bared(spec.encoder), decoder=bared(spec.decoder))
    assert isinstance(spec, Model)
    embedding = replace(spec.embedding, position=None)
    return replace(spec, embedding=embedding, position_bias=None, layers=tuple(map(still, spec.layers)))


def still(block: Block) -> Block:
    """A block whose attention is told no positions."""

    def bare(attention: Attention | None) -> Attention | None:
        return None if attention is None else replace(attention, position=None)

    return replace(block, attention=bare(block.attention), cross=bare(block.cross))
