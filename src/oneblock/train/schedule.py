"""The learning rate as a pure function of the step: warm up, then decay."""

from __future__ import annotations

import math

from oneblock.train.config import OptimizerPart

__all__ = ["rate"]


def rate(step: int, part: OptimizerPart, steps: int) -> float:
    """Learning rate of update number `step` (1 is the first, `steps` the last).

    The rate rises linearly to `part.lr` at step `part.warmup`. Then:
    "inverse-sqrt": lr · sqrt(warmup / step) (Vaswani et al. 2017, arXiv:1706.03762, with the peak given);
    "linear": a straight line to 0 at `steps`;
    "cosine": half a cosine to 0 at `steps` (Loshchilov & Hutter 2017, arXiv:1608.03983).

    >>> part = OptimizerPart(lr=1.0, warmup=4, schedule="inverse-sqrt")
    >>> [rate(step, part, 100) for step in (1, 4, 16, 64)]
    [0.25, 1.0, 0.5, 0.25]
    >>> [rate(step, OptimizerPart(lr=1.0, warmup=0, schedule="linear"), 4) for step in (1, 2, 4)]
    [0.75, 0.5, 0.0]
    """
    if step < 1:
        raise ValueError(f"step: expected 1 or more (the first update is step 1), got {step}")
    if step < part.warmup:
        return part.lr * step / part.warmup
    if part.schedule == "inverse-sqrt":
        return part.lr * math.sqrt(max(part.warmup, 1) / step)
    done = min(1.0, (step - part.warmup) / max(steps - part.warmup, 1))
    return part.lr * (1 - done) if part.schedule == "linear" else part.lr * (1 + math.cos(math.pi * done)) / 2
