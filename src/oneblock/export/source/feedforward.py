"""Feed-forward: each token on its own, wide and back. x: (batch, length, dim)."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def gelu_tanh(x: Tensor) -> Tensor:
    """GELU by its tanh approximation (arXiv:1606.08415)."""
    return F.gelu(x, approximate="tanh")


class FeedForward(nn.Module):
    """down(activation(up(x)))."""

    def __init__(self, spec: Any) -> None:
        super().__init__()
        if spec.gated:
            self.gate = nn.Linear(spec.dim, spec.hidden, bias=spec.bias)
        self.up = nn.Linear(spec.dim, spec.hidden, bias=spec.bias)
        self.down = nn.Linear(spec.hidden, spec.dim, bias=spec.bias)

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, length, dim), before and after; h: (batch, length, hidden)."""
        h = self.spec.activation(self.gate(x)) * self.up(x) if self.spec.gated else self.spec.activation(self.up(x))
        if self.spec.dropout:
            h = F.dropout(h, self.spec.dropout, self.training)
        return self.down(h)


class Stacked(nn.Module):
    """One matrix per expert, as a tensor (experts, outputs, inputs)."""

    def __init__(self, experts: int, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(experts, outputs, inputs) * (2 / (inputs + outputs)) ** 0.5)


class Experts(nn.Module):
    """Many feed-forwards side by side."""

    def __init__(self, spec: Any) -> None:
        super().__init__()
        if spec.gated:
            self.gate = Stacked(spec.experts, spec.dim, spec.hidden)
        self.up = Stacked(spec.experts, spec.dim, spec.hidden)
        self.down = Stacked(spec.experts, spec.hidden, spec.dim)

    def forward(self, x: Tensor, expert: int) -> Tensor:
        """What one expert makes of some tokens: (tokens, dim)."""
        up = x @ self.up.weight[expert].T  # (tokens, hidden)
        h = self.spec.activation(x @ self.gate.weight[expert].T) * up if self.spec.gated else self.spec.activation(up)
        return h @ self.down.weight[expert].T


class MoE(nn.Module):
    """Each token goes to the experts that a router scores highest; their sum is weighted (arXiv:1701.06538)."""

    def __init__(self, spec: Any) -> None:
        super().__init__()
        self.router = nn.Linear(spec.dim, spec.experts, bias=False)
        self.experts = spec.stack

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.flatten(0, 1)  # (tokens, dim)
        weight, chosen = self.router(tokens).softmax(-1).topk(self.spec.active)  # (tokens, active) each
        if self.spec.renormalise:
            weight = weight / weight.sum(-1, keepdim=True)
        y = torch.zeros_like(tokens)
        for expert in range(self.spec.experts):
            token, rank = torch.where(chosen == expert)  # who chose it, and as which of their choices
            y = y.index_add(0, token, weight[token, rank, None] * self.experts(tokens[token], expert))
        return y.view_as(x)
