"""Masks of other libraries into ours and back: three conventions, two of them of opposite meaning.

ours and F.scaled_dot_product_attention: True = may look. nn.MultiheadAttention: True = hidden. Hugging Face: 1 = real.
"""

from __future__ import annotations

import torch
from torch import Tensor


def from_hidden(mask: Tensor) -> Tensor:
    """A mask of `nn.MultiheadAttention` (bool: True = hidden; float: added to the scores) as True = may look.

    Shapes stay as they are. A float mask must hold only 0 and -inf; one of only 0 and 1 adds 1 to the scores and hides
    nothing, so it is refused.

    >>> from_hidden(torch.tensor([[False, True]]))
    tensor([[ True, False]])
    >>> from_hidden(torch.tensor([[0.0, 1.0]]))
    Traceback (most recent call last):
    ValueError: mask: floats of only 0 and 1 would be added to the scores and hide nothing; pass a bool mask
    """
    if mask.dtype == torch.bool:
        return ~mask
    return from_added(mask)


def from_added(mask: Tensor) -> Tensor:
    """A float mask that is added to the scores (0 or -inf, or the least number of its dtype) as True = may look."""
    if not mask.dtype.is_floating_point:
        raise ValueError(f"mask: expected bool or float, got {mask.dtype}; 1 = real masks go in as attention_mask")
    if bool((mask == 1).any()) and bool(((mask == 0) | (mask == 1)).all()):
        raise ValueError("mask: floats of only 0 and 1 would be added to the scores and hide nothing; pass a bool mask")
    hidden = mask <= torch.finfo(mask.dtype).min
    if bool(((mask != 0) & ~hidden).any()):
        raise ValueError("mask: expected only 0 and -inf, got other numbers; a bias is no mask")
    return ~hidden


def to_hidden(visible: Tensor) -> Tensor:
    """True = may look as `nn.MultiheadAttention` wants it: True = hidden.

    >>> to_hidden(torch.tensor([[True, False]]))
    tensor([[False,  True]])
    """
    return ~visible


def to_added(visible: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """True = may look as numbers to add to the scores: 0, and -inf where hidden.

    >>> to_added(torch.tensor([[True, False]]))
    tensor([[0., -inf]])
    """
    return torch.zeros(visible.shape, dtype=dtype, device=visible.device).masked_fill(~visible, -torch.inf)
