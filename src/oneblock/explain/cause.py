"""Why a query may not see a key: the cause of each hidden entry of a mask, as a number.

index, document: (batch | 1, length); cause: (batch | 1, query, key).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from oneblock.spec import Causal, Full, Mask, Window, atoms

CAUSES = ("seen", "causal", "window", "padding", "document")
"""What a number of a cause means; the first that applies is named, padding before all."""


@dataclass(frozen=True, eq=False)
class Stand:
    """Where the tokens of one side of an attention stand, worked out from the input alone: each (batch | 1, length)."""

    index: Tensor
    position: Tensor
    real: Tensor
    document: Tensor | None = None


def stand(
    ids: Tensor, mask: Tensor | None, position: Tensor | None, counted: str, document: Tensor | None = None
) -> Stand:
    """The places of ids (batch, length): real tokens are counted from 0, unless all are, or positions are given."""
    index = torch.arange(ids.shape[1], device=ids.device)[None]
    real = torch.ones_like(index, dtype=torch.bool) if mask is None else mask != 0
    if position is None and counted == "all":
        position = index
    elif position is None:
        position = torch.stack([torch.tensor(count(row), device=ids.device) for row in real.tolist()])
    return Stand(index, position.reshape(-1, ids.shape[1]), real, document)


def count(real: list[bool]) -> list[int]:
    """How many real tokens stand before each; padding takes the number of the last real one, at least 0."""
    found, seen = [], -1
    for shown in real:
        seen += shown
        found.append(max(seen, 0))
    return found


def causes(mask: Mask, q: Stand, k: Stand) -> Tensor:
    """0 where a query sees a key, else the number of the cause in `CAUSES`."""
    ahead = k.index[:, None, :] - q.index[:, :, None]  # (1, query, key)
    found = torch.zeros_like(ahead)
    rules = atoms(mask)
    for rule in sorted(rules, key=lambda rule: type(rule).__name__, reverse=True):
        if isinstance(rule, Window):
            far = (-ahead >= rule.back) | (ahead > (rule.ahead if rule.ahead is not None else ahead.shape[-1]))
            found = torch.where(far, 2, found)
        elif isinstance(rule, Causal):
            found = torch.where(ahead > 0, 1, found)
        elif not isinstance(rule, Full):
            raise ValueError(f"mask: no cause is known for {type(rule).__name__}")
    if q.document is not None and k.document is not None:
        found = torch.where(q.document[:, :, None] != k.document[:, None, :], 4, found)
    return torch.where(k.real[:, None, :], found, 3)
