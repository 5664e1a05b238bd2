"""Norms: a vector back to unit scale. x: (..., dim)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oneblock.bricks.build import build
from oneblock.spec import LayerNorm, RMSNorm, SigmaNorm, Whole
from oneblock.tap import tap


class LayerNormBrick(nn.LayerNorm):
    """(x - mean) / sqrt(variance + eps) * weight + bias (Ba et al. 2016, arXiv:1607.06450)."""

    def __init__(self, spec: LayerNorm, dim: int) -> None:
        super().__init__(dim, spec.eps, bias=spec.bias)

    def forward(self, x: Tensor) -> Tensor:
        return tap(super().forward(x), "norm", x=x, weight=self.weight, bias=self.bias, eps=self.eps)


class SigmaNormBrick(nn.Module):
    """(x - mean) / (sigma + eps) * weight + bias: eps outside the root."""

    def __init__(self, spec: SigmaNorm, dim: int) -> None:
        super().__init__()
        self.eps, self.unbiased = spec.eps, spec.unbiased
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim)) if spec.bias else None

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        y = centred / (x.std(-1, keepdim=True, correction=int(self.unbiased)) + self.eps) * self.weight
        y = y if self.bias is None else y + self.bias
        return tap(y, "norm", x=x, weight=self.weight, bias=self.bias, eps=self.eps)


class RMSNormBrick(nn.Module):
    """x / sqrt(mean(x^2) + eps) * weight, in float32 (Zhang and Sennrich 2019, arXiv:1910.07467)."""

    def __init__(self, spec: RMSNorm, dim: int) -> None:
        super().__init__()
        self.eps, self.centre = spec.eps, float(spec.centred)
        self.weight = nn.Parameter(torch.zeros(dim) if spec.centred else torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        unit = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        y = (unit * (self.centre + self.weight.to(wide.dtype))).type_as(x)
        return tap(y, "norm", x=x, weight=self.weight, centre=self.centre, eps=self.eps)


class WholeBrick(nn.Module):
    """A norm over all heads of a token together: x (batch, heads, length, head_dim)."""

    def __init__(self, spec: Whole, dim: int) -> None:
        super().__init__()
        self.norm = build(spec.norm, dim)

    def forward(self, x: Tensor) -> Tensor:
        together = self.norm(x.transpose(1, 2).flatten(2))  # (batch, length, heads * head_dim)
        return together.unflatten(-1, (-1, x.shape[-1])).transpose(1, 2)


build.register(LayerNorm, LayerNormBrick)
build.register(SigmaNorm, SigmaNormBrick)
build.register(RMSNorm, RMSNormBrick)
build.register(Whole, WholeBrick)
