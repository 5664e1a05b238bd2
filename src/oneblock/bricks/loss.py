"""Cross-entropy over real tokens, in chunks: the logits of a whole batch never lie in memory.

hidden: (tokens, dim); logits: (tokens, vocab); labels: (tokens,), -100 where nothing is asked.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

IGNORED = -100
CHUNK = 512
"""Tokens whose logits are held together: small enough for a CPU's cache, large enough for its matmul."""


def cross_entropy(logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> tuple[Tensor, int]:
    """(sum of losses, how many tokens it sums), from logits (..., vocab) and labels (...)."""
    flat, labels = logits.flatten(0, -2).to(torch.promote_types(logits.dtype, torch.float32)), labels.flatten()
    loss = F.cross_entropy(flat, labels, ignore_index=IGNORED, reduction="sum", label_smoothing=smoothing)
    return loss, int((labels != IGNORED).sum())


def chunked_cross_entropy(
    hidden: Tensor, head: nn.Module, labels: Tensor, smoothing: float = 0.0
) -> tuple[Tensor, int]:
    """(sum of losses, how many tokens it sums) of a head over hidden states.

    Equal to `cross_entropy(head(hidden), labels)`, but only real tokens reach the head, a chunk at a time, and each
    chunk's gradient is computed at once while its logits are at hand. Backward only scales it.

    Args:
        hidden: (..., dim).
        head: gives logits; its parameters get their gradients.
        labels: (...), -100 is ignored; all ignored gives 0 and zero gradients.
        smoothing: share of the target spread evenly over the vocabulary (Szegedy et al. 2016, arXiv:1512.00567).

    >>> head = nn.Linear(2, 3)
    >>> loss, count = chunked_cross_entropy(torch.zeros(2, 2), head, torch.tensor([-100, -100]))
    >>> loss.item(), count
    (0.0, 0)
    """
    labels = labels.flatten()
    real = labels != IGNORED
    hidden, labels = hidden.flatten(0, -2)[real], labels[real]
    if torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return _sum_without_gradient(hidden, head, labels, smoothing), len(labels)
    parameters = [p for p in head.parameters() if p.requires_grad]
    return _Chunked.apply(hidden, head, labels, smoothing, *parameters), len(labels)


def _sum_without_gradient(hidden: Tensor, head: nn.Module, labels: Tensor, smoothing: float) -> Tensor:
    chunks = zip(hidden.split(CHUNK), labels.split(CHUNK), strict=True)
    losses = [cross_entropy(head(x), y, smoothing)[0] for x, y in chunks]
    return torch.stack(losses).sum() if len(labels) else hidden.sum() * 0.0


class _Chunked(torch.autograd.Function):
    """Loss and gradient in one pass: d loss / d logits = softmax - (1 - smoothing) one_hot - smoothing / vocab."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, hidden: Tensor, head: nn.Module, labels: Tensor, smoothing: float, *parameters: Tensor
    ) -> Tensor:
        sums = [torch.zeros_like(p, dtype=torch.promote_types(p.dtype, torch.float32)) for p in parameters]
        toward = torch.zeros_like(hidden)
        total = hidden.new_zeros((), dtype=torch.promote_types(hidden.dtype, torch.float32))
        for a in range(0, len(labels), CHUNK):
            with torch.enable_grad():
                x = hidden[a : a + CHUNK].detach().requires_grad_()
                logits = head(x)
            loss, slope = _loss_and_slope(logits.detach(), labels[a : a + CHUNK], smoothing)
            total += loss
            toward[a : a + CHUNK], *steps = torch.autograd.grad(logits, [x, *parameters], slope)
            for kept, step in zip(sums, steps, strict=True):
                kept += step
        ctx.save_for_backward(toward, *sums)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        toward, *sums = ctx.saved_tensors
        return (toward * slope.type_as(toward), None, None, None, *(kept * slope for kept in sums))


def _loss_and_slope(logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Sum of losses, and d loss / d logits, of one chunk."""
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    slope = wide.softmax(-1)
    # log-sum-exp from the largest weight: it is at least 1 / vocab, so its logarithm is safe, and a pass is saved.
    norm = wide.amax(-1, keepdim=True) - slope.amax(-1, keepdim=True).log()
    picked = wide.gather(-1, labels[:, None])
    loss = (norm - (1 - smoothing) * picked).sum()
    if smoothing:
        loss = loss - smoothing * wide.mean(-1).sum()
        slope -= smoothing / logits.shape[-1]
    slope.scatter_add_(-1, labels[:, None], torch.full_like(picked, smoothing - 1))
    return loss, slope.type_as(logits)
