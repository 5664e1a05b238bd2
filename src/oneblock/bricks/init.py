"""First values of all parameters, by the role a tensor plays: one table for every model."""

from __future__ import annotations

import torch
from torch import nn

from oneblock.bricks.attention import AttentionBrick
from oneblock.bricks.experts import MoEBrick, Stacked
from oneblock.bricks.feedforward import FeedForwardBrick

RESIDUAL = ("out", "down")
"""Projections that write into the stream."""


@torch.no_grad()
def initialise(model: nn.Module, depth: int) -> None:
    """Fill parameters in place; each tensor draws on its own, so layers never start alike.

    Matrices: uniform with variance 2 / (fan_in + fan_out) (Glorot and Bengio 2010); those that write into a stream that
    no norm rescales afterwards are divided by sqrt(2 * depth) (Radford et al. 2019), so that its variance does not grow
    with depth. Tables: normal, deviation dim^-0.5. Biases 0; norms are the identity.
    """
    if any(parameter.is_meta for parameter in model.parameters()):
        return  # nothing to fill; arithmetic on meta would import the compiler
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        if isinstance(module, Stacked):
            for expert in module.weight:
                nn.init.xavier_uniform_(expert)
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
        if isinstance(module, AttentionBrick | FeedForwardBrick | MoEBrick) and not _normed_after(model, name):
            for inner, projection in module.named_modules():
                if inner.rpartition(".")[2] in RESIDUAL:
                    projection.weight /= (2 * depth) ** 0.5


def _normed_after(model: nn.Module, name: str) -> bool:
    block, _, sublayer = name.rpartition(".")
    names = model.get_submodule(block).norms if block else {}
    return f"{sublayer}_post" in names or f"{sublayer}_branch" in names
