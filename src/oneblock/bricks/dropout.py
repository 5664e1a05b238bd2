"""Dropout: in training, features are zeroed at random and the rest scaled up (Srivastava et al. 2014). x: any shape."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BITS = 16
"""A share is met to 2^-16."""


class Dropout(nn.Module):
    """Zero a share p of the features in training; the identity in eval."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p if self.training else 0.0)

    def extra_repr(self) -> str:
        return f"p={self.p}"


def dropout(x: Tensor, p: float) -> Tensor:
    """Zero a share p of x, scale the rest by 1 / (1 - p).

    On a CPU, drawing one number per feature takes as long as a matrix product; here four features share 64 random bits,
    which takes a quarter of the time of `F.dropout`.
    """
    if p == 0:
        return x
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return F.dropout(x, p)
    words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    drawn = words.view(torch.int16)[: x.numel()].view(x.shape)
    return x * (drawn >= round(p * 2**BITS) - 2 ** (BITS - 1)).to(x.dtype).mul_(1 / (1 - p))
