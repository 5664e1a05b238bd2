"""One step of a forward pass, as it is shown: what it is called, what went in, what came out.

A tensor keeps the axes it had in the model; `dims` names them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

from oneblock.words import Said, say

Source = Literal["step", "weight", "input", "number"]
"""Where an operand comes from: an earlier step, a parameter, what was given to the model, a number of the spec."""


@dataclass(frozen=True, eq=False)
class Operand:
    """What a step was computed from: its value, and where that comes from (`path` of a step or a parameter)."""

    source: Source
    path: str
    value: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """As stored: a matrix of `nn.Linear` is (outputs, inputs), the transpose of the formula's."""
        return tuple(self.value.shape) if isinstance(self.value, Tensor) else ()


@dataclass(frozen=True)
class Statistics:
    """Of all finite numbers of a tensor; `nonfinite` counts the others."""

    min: float
    mean: float
    max: float
    norm: float
    nonfinite: int


@dataclass(frozen=True, eq=False)
class Step:
    """A named tensor on the way from tokens to logits.

    `path` is its full name, `kind` its entry in the dictionary of words, `brick` the type of the spec it belongs to,
    `dims` the names of its axes. `again` computes it anew from its operands, by arithmetic of its own.
    """

    path: str
    kind: str
    brick: str
    dims: tuple[str, ...]
    tensor: Tensor = field(repr=False)
    operands: Mapping[str, Operand] = field(repr=False)
    again: Callable[..., Tensor] = field(repr=False)
    where: str = ""

    def say(self, lang: str = "en") -> Said:
        """Name, symbol, formula, LaTeX and what the step is for, in a language."""
        return say(self.kind, lang)

    @property
    def symbol(self) -> str:
        """How the step is written in formulas."""
        return self.say().symbol

    @property
    def formula(self) -> str:
        """The step in LaTeX."""
        return self.say().latex

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the tensor."""
        return tuple(self.tensor.shape)

    @cached_property
    def statistics(self) -> Statistics:
        """Least, mean, greatest, norm, and how many numbers are not finite."""
        x = self.tensor.detach().double()
        kept = x[x.isfinite()]
        if not len(kept):
            return Statistics(math.nan, math.nan, math.nan, math.nan, x.numel())
        return Statistics(
            kept.min().item(), kept.mean().item(), kept.max().item(), kept.norm().item(), x.numel() - len(kept)
        )

    def recomputed(self, values: Mapping[str, Any] | None = None) -> Tensor:
        """The tensor anew, from the recorded operands, some of them replaced by `values`."""
        known = {name: operand.value for name, operand in self.operands.items()}
        return self.again(**(known | dict(values or {})))

    def error(self, values: Mapping[str, Any] | None = None) -> float:
        """The largest difference between the tensor and itself anew, relative to its largest entry (at least 1)."""
        return difference(self.tensor, self.recomputed(values))


def difference(a: Tensor, b: Tensor) -> float:
    """The largest difference, relative to the largest finite entry of a (at least 1); infinite if shapes or infinities
    differ."""
    if a.shape != b.shape or not torch.equal(a.isfinite(), b.isfinite()):
        return math.inf
    kept = a.isfinite()
    if not bool(kept.any()):
        return 0.0
    size = max(a[kept].abs().max().item(), 1.0)
    return (a[kept].double() - b[kept].double()).abs().max().item() / size
