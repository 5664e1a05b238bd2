"""Every step of a Transformer again, in plain tensor arithmetic: nothing here is shared with the bricks it judges.

x: (batch, length, dim) unless said otherwise; heads: (batch, heads, length, width); scores: (batch, heads, query, key).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


def looked_up(ids: Tensor, table: Tensor) -> Tensor:
    """The row of a table for each id: one-hot times matrix."""
    return table.index_select(0, ids.flatten()).reshape(*ids.shape, table.shape[1])


def affine(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W + b, with W stored transposed: (outputs, inputs)."""
    y = torch.einsum("...i,oi->...o", x, weight)
    return y if bias is None else y + bias


def added(x: Tensor, branch: Tensor, skip: float, branch_scale: float) -> Tensor:
    """skip * x + branch_scale * branch."""
    return skip * x + branch_scale * branch


def layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """(x - mean) / sqrt(variance + eps) * weight + bias, each token by itself."""
    mean = x.sum(-1, keepdim=True) / x.shape[-1]
    variance = ((x - mean) ** 2).sum(-1, keepdim=True) / x.shape[-1]
    return shifted((x - mean) / (variance + eps) ** 0.5, weight, bias)


def sigma_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, unbiased: bool) -> Tensor:
    """(x - mean) / (sigma + eps) * weight + bias."""
    mean = x.sum(-1, keepdim=True) / x.shape[-1]
    variance = ((x - mean) ** 2).sum(-1, keepdim=True) / (x.shape[-1] - unbiased)
    return shifted((x - mean) / (variance**0.5 + eps), weight, bias)


def rms_norm(x: Tensor, weight: Tensor, centre: float, eps: float) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * (centre + weight)."""
    square = (x**2).sum(-1, keepdim=True) / x.shape[-1]
    return x / (square + eps) ** 0.5 * (centre + weight)


def shifted(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """x * weight + bias, where they are."""
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def in_heads(x: Tensor, width: int) -> Tensor:
    """(batch, length, heads * width) -> (batch, heads, length, width)."""
    batch, length, whole = x.shape
    return x.reshape(batch, length, whole // width, width).permute(0, 2, 1, 3)


def joined(z: Tensor) -> Tensor:
    """(batch, heads, length, width) -> (batch, length, heads * width): heads side by side."""
    batch, heads, length, width = z.shape
    return z.permute(0, 2, 1, 3).reshape(batch, length, heads * width)


def scored(q: Tensor, k: Tensor, scale: float) -> Tensor:
    """scale * q k^T, the dot product of each query with each key; neighbouring heads may share one of k."""
    return scale * torch.einsum("bhqd,bhkd->bhqk", q, k[:, owners(q, k)])


def gathered(pattern: Tensor, v: Tensor) -> Tensor:
    """a v: the mean of the values, weighted."""
    return torch.einsum("bhqk,bhkd->bhqd", pattern, v[:, owners(pattern, v)])


def owners(many: Tensor, few: Tensor) -> list[int]:
    """Which of the few heads belongs to each of the many."""
    share = many.shape[1] // few.shape[1]
    return [head // share for head in range(many.shape[1])]


def masked(scores: Tensor, hidden: Tensor, bias: Tensor | None = None, softcap: float | None = None) -> Tensor:
    """The scores, capped, with a bias, and -inf where `hidden` (batch | 1, query, key) is not 0."""
    scores = capped(scores, softcap)
    scores = scores if bias is None else scores + bias.to(scores.dtype)
    return torch.where(hidden[:, None] != 0, torch.full_like(scores, -math.inf), scores)


def shares(scores: Tensor) -> Tensor:
    """exp(s - max) / sum of the same, row by row; 0 in a row where everything is hidden."""
    largest = scores.amax(-1, keepdim=True)
    weight = torch.exp(scores - torch.where(largest == -math.inf, torch.zeros_like(largest), largest))
    total = weight.sum(-1, keepdim=True)
    return weight / torch.where(total == 0, torch.ones_like(total), total)


def capped(x: Tensor, cap: float | None) -> Tensor:
    """cap * tanh(x / cap)."""
    return x if cap is None else cap * torch.tanh(x / cap)


def relu(x: Tensor) -> Tensor:
    """max(x, 0)."""
    return torch.where(x > 0, x, torch.zeros_like(x))


def gelu(x: Tensor) -> Tensor:
    """x times the share of a standard normal below x."""
    return x * (1 + torch.erf(x / 2**0.5)) / 2


def gelu_tanh(x: Tensor) -> Tensor:
    """The same, approximately."""
    return x * (1 + torch.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x**3))) / 2


def silu(x: Tensor) -> Tensor:
    """x / (1 + exp(-x))."""
    return x / (1 + torch.exp(-x))


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "silu": silu,
    "tanh": torch.tanh,
}


def activated(up: Tensor, activation: str, gate: Tensor | None = None) -> Tensor:
    """sigma(up), or sigma(gate) * up."""
    f = ACTIVATIONS[activation]
    return f(up) if gate is None else f(gate) * up


def routed(scores: Tensor, active: int, whole: bool) -> Tensor:
    """The weights of the `active` best experts of each token, best first: of the softmax over all, or over those."""
    best = scores.sort(dim=-1, descending=True, stable=True).values[:, :active]
    return shares(scores).sort(dim=-1, descending=True, stable=True).values[:, :active] if whole else shares(best)


def mixed(hidden: Tensor, chosen: Tensor, weight: Tensor, down: Tensor, length: int) -> Tensor:
    """sum over each token's chosen experts of weight * (down hidden), the tokens of all texts one after the other."""
    rows, out = rows_of_experts(chosen), []
    for token, shares_ in enumerate(weight):
        parts = [
            share * (down[expert] @ hidden[rows[token, expert]])
            for share, expert in zip(shares_, chosen[token].tolist(), strict=True)
        ]
        out.append(torch.stack(parts).sum(0))
    return torch.stack(out).reshape(-1, length, down.shape[1])


def rows_of_experts(chosen: Tensor) -> dict[tuple[int, int], int]:
    """(token, expert) -> its row among the hidden features of all experts: expert after expert, tokens in order."""
    pairs = sorted((expert, token) for token, experts in enumerate(chosen.tolist()) for expert in experts)
    return {(token, expert): row for row, (expert, token) in enumerate(pairs)}


def pooled(x: Tensor, real: Tensor, how: str) -> Tensor:
    """One vector per text: the first real token's, the last one's, or the mean of all real ones."""
    rows = []
    for text, shown in zip(x, real.expand(x.shape[:2]), strict=True):
        kept = text[shown] if bool(shown.any()) else text[:1]
        rows.append({"first": kept[0], "last": kept[-1], "mean": kept.sum(0) / len(kept)}[how])
    return torch.stack(rows)


def surprise(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean over labels that are not -100 of -log softmax(logits)[label]."""
    flat, wanted = logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)
    found = [torch.log(shares(row))[int(label)] for row, label in zip(flat, wanted, strict=True) if int(label) != -100]
    return -torch.stack(found).sum() / len(found) if found else flat.sum() * 0
