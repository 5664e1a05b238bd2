"""softmax(scale * q k^T, under a mask) v: one meaning, three ways to compute it.

q: (batch, heads, query, head_dim); k: (batch, kv_heads, key, head_dim); v: (batch, kv_heads, key, value_dim).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from oneblock.bricks.dropout import dropout
from oneblock.mask import Sight
from oneblock.tap import tap, wanted

CHUNK = 512
"""Queries computed together when scores are written out or masked over a long text: memory grows with length only."""
LARGE = 1 << 20
"""Entries of one head's scores beyond which they are not held whole."""


@dataclass(frozen=True)
class Softmax:
    """What a softmax over scores needs to know: the factor on q k^T, a cap on scores, dropout on the weights."""

    scale: float
    softcap: float | None = None
    dropout: float = 0.0


def attend(q: Tensor, k: Tensor, v: Tensor, sight: Sight, softmax: Softmax) -> Tensor:
    """What each query gathers from the values it may see: (batch, heads, query, value_dim).

    A query that may see nothing gets zeros, forward and backward, in every way of computing it. The fused kernel does
    the work; scores are written out when someone listens to them, or when the kernel cannot do what is asked (a cap)
    or would hold them whole (dropout, a mask over a long text): then in chunks of queries, recomputed in backward.
    """
    plain = softmax.softcap is None and softmax.dropout == 0
    way = fused if plain and not slow(q) and not wanted("scores", "masked", "pattern") else written
    small = sight.size <= LARGE or wanted("scores", "masked", "pattern")
    # The kernel writes the scores out where values are wider or narrower than keys.
    if small or (plain and sight.symbolic and k.shape[-1] == v.shape[-1]):
        return way(q, k, v, sight, softmax)

    def piece(a: int, b: int) -> Tensor:
        # A sight keeps its mask: made in here, it goes when the piece is done and is made again in backward.
        return way(q[:, :, a:b], k, v, sight.rows(a, b), softmax)

    starts = range(0, q.shape[2], CHUNK)
    return torch.cat([checkpoint(piece, a, a + CHUNK, use_reentrant=False) for a in starts], dim=2)


def fused(q: Tensor, k: Tensor, v: Tensor, sight: Sight, softmax: Softmax) -> Tensor:
    """One call of torch's kernel.

    In training on a CPU it runs in float32: the bfloat16 kernel's backward took a third of a training step.
    """
    grouped: dict[str, Any] = {"enable_gqa": True} if q.shape[1] != k.shape[1] else {}
    if q.device.type == "cpu" and torch.is_grad_enabled() and torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            return fused(q.float(), k.float(), v.float(), sight, softmax)
    return F.scaled_dot_product_attention(q, k, v, scale=softmax.scale, **sight.kernel, **grouped)


def written(q: Tensor, k: Tensor, v: Tensor, sight: Sight, softmax: Softmax) -> Tensor:
    """The equation as the papers write it; also the oracle for the other ways."""
    scores = softmax.scale * product(q, k.mT)  # (batch, heads, query, key)
    scores = tap(scores, "scores", q=q, k=k, scale=softmax.scale)
    scores = capped(scores, softmax.softcap)
    if sight.added is not None:
        scores = scores + sight.added.type_as(scores)
    scores = tap(scores.masked_fill(~sight.visible, -torch.inf), "masked", scores=scores, sight=sight)
    # A row with nothing to see is 0/0; filling its NaN with 0 also stops the gradient there.
    pattern = scores.softmax(-1).masked_fill(~sight.visible, 0)
    pattern = tap(dropout(pattern, softmax.dropout), "pattern", masked=scores)
    return product(pattern, v)


def product(a: Tensor, b: Tensor) -> Tensor:
    """a @ b for each head, where neighbours among the heads of a share one of b, of which no copies are made."""
    if a.shape[1] == b.shape[1]:
        return a @ b
    grouped = a.unflatten(1, (b.shape[1], -1))  # (batch, kv_heads, heads of each, query, ...)
    return (grouped.flatten(2, 3) @ b).unflatten(2, grouped.shape[2:4]).flatten(1, 2)


def slow(q: Tensor) -> bool:
    """Whether torch's kernel is slower than its parts: for a lone query in half precision on a CPU, up to ten times."""
    return q.shape[2] == 1 and q.dtype.itemsize == 2 and q.device.type == "cpu"


def capped(x: Tensor, cap: float | None) -> Tensor:
    """cap * tanh(x / cap): bounded, and the identity near 0 (Bello et al. 2016, arXiv:1611.09940)."""
    return x if cap is None else cap * (x / cap).tanh()
