"""AdamW with each parameter in exactly one group, chosen by its role: decay for matrices, none for the rest."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.optim import AdamW

from oneblock.train.config import OptimizerPart

__all__ = ["make_optimizer", "parameter_groups"]


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Two groups: matrices that are no embeddings (decayed), and embeddings, norms, biases (never decayed).

    By role, not by name: a norm is one-dimensional whatever it is called; a table is an embedding when a module whose
    class is called an embedding owns it, also when an output head shares it.

    >>> groups = parameter_groups(nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 4), nn.LayerNorm(4)), 0.1)
    >>> [(group["weight_decay"], len(group["params"])) for group in groups]
    [(0.1, 1), (0.0, 4)]
    """
    tables = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, nn.Embedding) or "Embedding" in type(module).__name__
        for parameter in module.parameters(recurse=False)
    }
    matrices, others = [], []
    for parameter in model.parameters():  # tied parameters come once
        decayed = parameter.ndim >= 2 and id(parameter) not in tables
        (matrices if decayed else others).append(parameter)
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


def make_optimizer(model: nn.Module, part: OptimizerPart) -> AdamW:
    """AdamW over `parameter_groups`, in one fused kernel per group; the loop sets the learning rate at every step."""
    groups = [group for group in parameter_groups(model, part.weight_decay) if group["params"]]
    return AdamW(groups, lr=part.lr, betas=part.betas, eps=part.eps, fused=True)
