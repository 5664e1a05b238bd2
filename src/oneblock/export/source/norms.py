"""Norms: a vector back to unit scale. x: (..., dim)."""

from typing import Any

import torch
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * weight."""

    def __init__(self, dim: int, spec: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim) if spec.centred else torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))  # half precision is too coarse for squares
        unit = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.spec.eps)
        return (unit * (1 + self.weight if self.spec.centred else self.weight)).type_as(x)


class SigmaNorm(nn.Module):
    """(x - mean) / (sigma + eps) * weight."""

    def __init__(self, dim: int, spec: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        if spec.shifted:
            self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> Tensor:
        sigma = x.std(-1, keepdim=True, correction=self.spec.correction)
        y = (x - x.mean(-1, keepdim=True)) / (sigma + self.spec.eps) * self.weight
        return y + self.bias if self.spec.shifted else y
