"""What each mask means: one line per rule. True = may look. This one polarity holds in the whole library."""

from __future__ import annotations

from functools import singledispatch

import torch
from torch import Tensor

from oneblock.mask.places import Places
from oneblock.spec import Causal, Every, Full, Mask, Window


@singledispatch
def rule(mask: Mask, q: Tensor, k: Tensor) -> Tensor:  # noqa: ARG001
    """Whether a query at index `q` may look at a key at index `k`: q (batch, query, 1), k (batch, 1, key)."""
    raise TypeError(f"no meaning for a mask of type {type(mask).__name__}; register one with mask.rule.register")


@rule.register
def _(mask: Full, q: Tensor, k: Tensor) -> Tensor:  # noqa: ARG001
    return torch.ones_like(k, dtype=torch.bool)


@rule.register
def _(mask: Causal, q: Tensor, k: Tensor) -> Tensor:  # noqa: ARG001
    return k <= q


@rule.register
def _(mask: Window, q: Tensor, k: Tensor) -> Tensor:
    near = q - k < mask.back
    return near if mask.ahead is None else near & (k - q <= mask.ahead)


@rule.register
def _(mask: Every, q: Tensor, k: Tensor) -> Tensor:
    first, *others = (rule(one, q, k) for one in mask.rules)
    for other in others:
        first = first & other
    return first


def allowed(mask: Mask, q: Places, k: Places) -> Tensor:
    """Which keys each query may see: the mask's rule, and the key is no padding, and both are of one document.

    Returns:
        bool (batch | 1, query | 1, key); 1 where it is alike for all.

    >>> from oneblock.mask import places
    >>> allowed(Causal() & Window(back=2), places(3), places(3)).int()[0].tolist()
    [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """
    see = rule(mask, q.index[:, :, None], k.index[:, None, :])
    if k.real is not None:
        see = see & k.real[:, None, :]
    if q.document is not None and k.document is not None:
        see = see & (q.document[:, :, None] == k.document[:, None, :])
    return see
