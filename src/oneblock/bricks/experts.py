"""Mixture of experts: a router sends each token to a few of many feed-forwards and weighs what they give.

x: (..., dim), flattened to (tokens, dim); scores: (tokens, experts); weight, chosen: (tokens, active).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from oneblock.bricks.build import build
from oneblock.bricks.context import Context
from oneblock.bricks.feedforward import ACTIVATIONS
from oneblock.spec import MoE, Softmax
from oneblock.tap import tap


class Stacked(nn.Module):
    """One matrix per expert, as a tensor (experts, outputs, inputs)."""

    def __init__(self, experts: int, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(experts, outputs, inputs))

    def forward(self, x: Tensor, counts: Tensor) -> Tensor:
        """x: (tokens, inputs), the first counts[0] for expert 0, the next counts[1] for expert 1, ..."""
        if self.weight.dtype != torch.float64 and all(n * x.element_size() % 16 == 0 for n in self.weight.shape[1:]):
            return F.grouped_mm(x, self.weight.mT, offs=counts.cumsum(0).int())
        return torch.cat([part @ w.mT for part, w in zip(x.split(counts.tolist()), self.weight, strict=True)])


class ExpertsBrick(nn.Module):
    """The feed-forwards of all experts, side by side."""

    def __init__(self, spec: MoE, dim: int) -> None:
        super().__init__()
        self.activation, hidden = ACTIVATIONS[spec.expert.activation], spec.expert.hidden
        self.up = Stacked(spec.experts, dim, hidden)
        self.gate = Stacked(spec.experts, dim, hidden) if spec.expert.gated else None
        self.down = Stacked(spec.experts, hidden, dim)

    def forward(self, x: Tensor, counts: Tensor) -> Tensor:
        up = self.up(x, counts)
        h = self.activation(up) if self.gate is None else self.activation(self.gate(x, counts)) * up
        return self.down(tap(h, "hidden", x=x, counts=counts), counts)


class MoEBrick(nn.Module):
    """sum over the chosen experts of weight * expert(x) (Shazeer et al. 2017, arXiv:1701.06538)."""

    def __init__(self, spec: MoE, dim: int) -> None:
        super().__init__()
        self.active, self.renormalise = spec.active, spec.router != Softmax(renormalise=False)
        self.router = nn.Linear(dim, spec.experts, bias=False)
        self.experts = ExpertsBrick(spec, dim)

    def forward(self, x: Tensor, ctx: Context | None = None) -> Tensor:
        tokens = x.flatten(0, -2)  # (tokens, dim)
        weight, chosen = self.route(tokens, ctx)
        order = chosen.flatten().argsort(stable=True)  # pairs of token and expert, expert by expert
        counts = chosen.flatten().bincount(minlength=self.router.out_features)
        rows = order // self.active
        y = self.experts(tokens[rows], counts) * weight.flatten()[order, None]  # (tokens * active, dim)
        return tap(torch.zeros_like(tokens).index_add(0, rows, y.type_as(tokens)).view_as(x), "out", x=x)

    def route(self, tokens: Tensor, ctx: Context | None) -> tuple[Tensor, Tensor]:
        """(weight, chosen) of each token's experts; the weights of a token are in (0, 1] and sum to at most 1."""
        scores = tap(self.router(tokens), "router", x=tokens)
        share = scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))  # (tokens, experts)
        weight, chosen = share.topk(self.active)
        weight = weight / weight.sum(-1, keepdim=True) if self.renormalise else weight
        if ctx is not None:
            ctx.routed.append((share, chosen))
        return tap(weight.type_as(tokens), "weight", scores=scores, chosen=chosen), chosen


def imbalance(routed: list[tuple[Tensor, Tensor]], real: Tensor | None) -> Tensor:
    """experts * sum over experts of (share of tokens it gets) * (mean weight it is given), padding left out.

    All MoE layers of a model are taken together; each of a token's choices counts, so that an even router gives
    `active` (Fedus et al. 2021, arXiv:2101.03961, equation 4).

    >>> even = torch.full((4, 2), 0.5)
    >>> imbalance([(even, torch.tensor([[0], [1], [0], [1]]))], None)
    tensor(1.)
    """
    keep = slice(None) if real is None else real.flatten()
    found = []
    for experts in {share.shape[1] for share, _ in routed}:  # layers of equally many experts are one sample
        pairs = [(share[keep], chosen[keep].flatten()) for share, chosen in routed if share.shape[1] == experts]
        shares, chosen = (torch.cat(parts) for parts in zip(*pairs, strict=True))
        counts = chosen.bincount(minlength=experts)
        found += [experts * (counts / len(shares) * shares.mean(0)).sum()] * len(pairs)
    return torch.stack(found).mean()


build.register(MoE, MoEBrick)
