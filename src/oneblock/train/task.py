"""One optimizer step of translation: every target token predicted from the ones before it (teacher forcing).

Legend: batch, target = target length, real = target tokens that are not padding, dim.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from oneblock.bricks.loss import chunked_cross_entropy
from oneblock.train.data import Batch

__all__ = ["Outcome", "loss_sum", "mean_loss", "precision", "reseed", "update"]


class Outcome(NamedTuple):
    """What one step did: the summed loss in nats, the target tokens it was summed over, the gradient's norm."""

    loss: float
    tokens: int
    norm: float


def loss_sum(model: nn.Module, batch: Batch, smoothing: float = 0.0) -> Tensor:
    """The summed loss of a batch's real target tokens, a scalar; output head and loss never touch padding."""
    memory = model.encode(batch.source, batch.mask)
    hidden = model.features(memory, batch.inputs)[0].flatten(0, 1)  # (batch · target, dim)
    if batch.places is not None:
        hidden = hidden.index_select(0, batch.places)  # (real, dim)
    total, _ = chunked_cross_entropy(hidden, model.decoder.head, batch.labels, smoothing=smoothing)
    return total


def update(
    model: nn.Module,
    optimizer: Optimizer,
    window: Sequence[Batch],
    *,
    lr: float,
    smoothing: float = 0.0,
    clip: float = 0.0,
    autocast: AbstractContextManager[object] = nullcontext(),
) -> Outcome | None:
    """One step over a window of batches: the gradient of (sum of losses) / (real tokens of the whole window).

    So batches of any sizes weigh their tokens alike. A window without a single token changes nothing and gives None.
    `clip` bounds the gradient's global norm (0 = no bound). Raises ValueError when loss or gradient is not finite,
    before the weights are touched.
    """
    count = sum(batch.tokens for batch in window)
    if not count:
        return None
    sums = []
    for batch in window:
        if not batch.tokens:
            continue
        with autocast:
            loss = loss_sum(model, batch, smoothing)
        (loss / count).backward()
        sums.append(loss.detach())
    total = sum(value.item() for value in sums)
    norm = nn.utils.clip_grad_norm_(model.parameters(), clip or math.inf).item()
    if not (math.isfinite(total) and math.isfinite(norm)):
        optimizer.zero_grad()
        raise ValueError(f"loss {total / count:.4g} per token, gradient norm {norm:.4g}: not finite")
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.step()
    optimizer.zero_grad()
    return Outcome(total, count, norm)


@torch.inference_mode()
def mean_loss(
    model: nn.Module, batches: Iterable[Batch], smoothing: float, device: torch.device
) -> tuple[float, float]:
    """Validation loss in nats per target token over all batches: (without, with label smoothing). Uses eval mode."""
    training = model.training
    model.eval()
    sums, count = [0.0, 0.0], 0
    for batch in batches:
        here = batch.to(device)
        for index, share in enumerate((0.0, smoothing)):
            sums[index] += loss_sum(model, here, share).item() if share or not index else 0.0
        count += batch.tokens
    model.train(training)
    plain, smoothed = (value / max(count, 1) for value in sums)
    return plain, smoothed if smoothing else plain


def reseed(seed: int, step: int) -> None:
    """Set torch's generator from (seed, step), so that a step's dropout depends on nothing that ran before it."""
    torch.manual_seed(int.from_bytes(hashlib.blake2b(f"{seed}/{step}".encode(), digest_size=8).digest()) >> 1)


def precision(dtype: str, device: torch.device) -> torch.dtype:
    """The dtype of matrix products; weights, moments, softmax and loss stay float32.

    "auto" is bfloat16 on GPUs and on CPUs with instructions for it, where a step took 0.6 of the time; else float32.
    """
    known = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    if dtype == "auto":
        able = torch.cpu.get_capabilities()
        fast = device.type == "cuda" or able.get("avx512_bf16") or able.get("amx_bf16")
        return torch.bfloat16 if fast else torch.float32
    if dtype not in known:
        raise ValueError(f"dtype: expected auto, {' or '.join(known)}, got {dtype!r}")
    return known[dtype]
