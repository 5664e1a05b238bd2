"""How the loss changes with each step and each brick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from oneblock.explain.step import Step


@dataclass(frozen=True, eq=False)
class Gradients:
    """`steps`: d loss / d step, shaped as the step; `bricks`: the norm of the gradient of each brick's own weights."""

    steps: Mapping[str, Tensor] = field(repr=False)
    bricks: Mapping[str, float]


def gradients_of(model: nn.Module, steps: Sequence[Step]) -> Gradients:
    """Both, of a trace whose last step is the loss. ValueError: a loss that nothing leads to."""
    loss = steps[-1].tensor
    if steps[-1].kind != "step.loss" or not loss.requires_grad:
        raise ValueError("gradients: expected a loss over tokens at the end of the trace, got none; give target=")
    inner = [step for step in steps[:-1] if step.tensor.requires_grad]
    weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    found = torch.autograd.grad(loss, [*(step.tensor for step in inner), *weights.values()], allow_unused=True)
    of_steps = {step.path: slope for step, slope in zip(inner, found, strict=False) if slope is not None}
    square: dict[str, float] = {}
    for name, slope in zip(weights, found[len(inner) :], strict=True):
        brick = name.rpartition(".")[0]
        square[brick] = square.get(brick, 0.0) + (0.0 if slope is None else slope.double().square().sum().item())
    return Gradients(of_steps, {brick: total**0.5 for brick, total in square.items()})
