"""Feed-forward: each token on its own, wide and back. Transforms features, mixes no tokens. x: (..., dim)."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from oneblock.bricks.build import build
from oneblock.bricks.context import Context
from oneblock.bricks.dropout import Dropout
from oneblock.spec import Activation, FeedForward
from oneblock.tap import tap


def gelu_tanh(x: Tensor) -> Tensor:
    """GELU by its tanh approximation, within 4.8e-4 of the exact one (Hendrycks and Gimpel 2016, arXiv:1606.08415)."""
    return F.gelu(x, approximate="tanh")


ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": gelu_tanh,
    "silu": F.silu,
    "tanh": torch.tanh,
}


class FeedForwardBrick(nn.Module):
    """down(activation(up(x))), or gated: down(activation(gate(x)) * up(x)) (Shazeer 2020, arXiv:2002.05202)."""

    def __init__(self, spec: FeedForward, dim: int) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[spec.activation]
        self.up = nn.Linear(dim, spec.hidden, bias=spec.bias)
        self.gate = nn.Linear(dim, spec.hidden, bias=spec.bias) if spec.gated else None
        self.down = nn.Linear(spec.hidden, dim, bias=spec.bias)
        self.dropout = Dropout(spec.dropout)

    def forward(self, x: Tensor, ctx: Context | None = None) -> Tensor:  # noqa: ARG002
        h = self.activation(self.up(x)) if self.gate is None else self.activation(self.gate(x)) * self.up(x)
        h = self.dropout(tap(h, "hidden", x=x))  # (..., hidden)
        return tap(self.down(h), "out", hidden=h)


build.register(FeedForward, FeedForwardBrick)
