"""A model of a spec with random weights, where memory has room for two of them in float64."""

from __future__ import annotations

import torch
from torch import nn

from oneblock.bricks import build_model
from oneblock.cost import parameters
from oneblock.explain.memory import GIB, available
from oneblock.spec import Spec


def drawn(spec: Spec, name: str, seed: int = 0) -> nn.Module:
    """The model of a spec, its weights drawn from a seed; two models of one shape and seed are equal.

    ValueError: a model that does not fit into memory twice in float64, with both sizes.

    >>> from oneblock.zoo import named
    >>> a, b = (drawn(named("gpt2", dim=8, depth=1, heads=2, vocab=9), "small") for _ in range(2))
    >>> torch.equal(a.layers[0].attention.q.weight, b.layers[0].attention.q.weight)
    True
    """
    needed, free = 3 * 8 * parameters(spec), available()
    if needed > free:
        sizes = f"{needed / GIB:.1f} GiB, {free / GIB:.1f} are free"
        raise ValueError(f"{name}: two of them in float64 need {sizes}; take a smaller one")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build_model(spec).eval()
