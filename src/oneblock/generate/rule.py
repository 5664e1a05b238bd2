"""What does not change during a beam search, and the checks on it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from oneblock.generate.checks import checked

__all__ = ["EarlyStopping", "Rule", "limits"]

EarlyStopping = bool | Literal["never"]


@dataclass(frozen=True)
class Rule:
    """What does not change during a search."""

    eos: tuple[int, ...]
    beam: int
    n_best: int
    alpha: float
    early_stopping: EarlyStopping
    ready: bool = False
    ends: Callable[[Tensor, Tensor], Tensor] | None = None
    draw: torch.Generator | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.beam, int) and isinstance(self.n_best, int) and 1 <= self.n_best <= self.beam):
            raise ValueError(
                f"beam and n_best: expected 1 <= n_best <= beam, got n_best {self.n_best}, beam {self.beam}"
            )
        checked("length_penalty", self.alpha)
        checked("early_stopping", self.early_stopping)

    @property
    def spare(self) -> int:
        """How many continuations are enough: `beam` to go on with, even if each beam proposes every end token."""
        return max(2, 1 + len(self.eos)) * self.beam


def limits(max_length: int | Tensor, batch: int, alpha: float) -> Tensor:
    limit = torch.as_tensor(max_length)
    if limit.is_floating_point() or limit.dtype == torch.bool or limit.shape not in ((), (batch,)):
        raise ValueError(
            f"max_length: expected a whole number, or one for each of {batch} sentences, got {max_length!r}"
        )
    limit = limit.expand(batch)
    if batch and (limit < 0).any():
        raise ValueError(f"max_length: expected 0 or more new tokens, got {int(limit.min())}")
    if batch and abs(alpha) * math.log(max(2, int(limit.max()))) > 80:
        raise ValueError(
            f"length_penalty: {int(limit.max())} tokens to the power {alpha} leave no number; take one near 1"
        )
    return limit
