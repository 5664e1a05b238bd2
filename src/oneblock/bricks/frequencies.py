"""How fast each feature pair of a rotary position turns, and how a model is stretched beyond its trained length.

Frequencies are (n / 2) angles per position, or (batch, 1, 1, n / 2) where they depend on how long each text is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from oneblock.spec import DynamicBase, Interpolate, LongRope, Rope, Smooth, Yarn

Turning = tuple[Tensor, float]
"""Frequencies, and what cos and sin are multiplied by."""


def plain(rope: Rope, pairs: Tensor, longest: Tensor) -> Turning:  # noqa: ARG001
    """theta^(-2i / n): `pairs` is 2i / n (n / 2); `longest` (batch | 1, 1, 1, 1) counts the tokens of each text."""
    return rope.theta**-pairs, 1.0


def interpolated(rope: Rope, pairs: Tensor, longest: Tensor) -> Turning:
    """Every position is divided by the factor."""
    return plain(rope, pairs, longest)[0] / rope.scaling.factor, 1.0


def dynamic(rope: Rope, pairs: Tensor, longest: Tensor) -> Turning:
    """Theta grows with the text beyond the trained length."""
    factor, length, n = rope.scaling.factor, rope.scaling.length, 2 * len(pairs)
    stretch = factor * longest.clamp(min=length).to(pairs.dtype) / length - (factor - 1)
    return (rope.theta * stretch ** (n / (n - 2))) ** -pairs, 1.0


def ramped(rope: Rope, pairs: Tensor, longest: Tensor) -> Turning:
    """Fast waves kept, slow ones interpolated, a ramp over the features between them."""
    spec, n = rope.scaling, 2 * len(pairs)
    waves = (spec.length / (2 * math.pi * turns) for turns in (spec.fast, spec.slow))
    ends = [n * math.log(wave) / (2 * math.log(rope.theta)) for wave in waves]
    low, high = (math.floor(ends[0]), math.ceil(ends[1])) if spec.truncate else ends
    low, high = max(low, 0), min(high, n - 1)
    ramp = (torch.arange(len(pairs), device=pairs.device) - low) / (high - low if high != low else 0.001)
    slow = ramp.clamp(0, 1).to(pairs.dtype)
    kept = plain(rope, pairs, longest)[0]
    attention = spec.attention or (0.1 * math.log(spec.factor) + 1 if spec.factor > 1 else 1.0)
    return kept / spec.factor * slow + kept * (1 - slow), attention


def smooth(rope: Rope, pairs: Tensor, longest: Tensor) -> Turning:
    """Long waves interpolated, short ones kept, those between blended by how often they turn over the length."""
    spec = rope.scaling
    kept = plain(rope, pairs, longest)[0]
    turns = spec.length * kept / (2 * math.pi)
    share = ((turns - spec.low) / (spec.high - spec.low)).clamp(0, 1)
    return (1 - share) * kept / spec.factor + share * kept, 1.0


def searched(rope: Rope, pairs: Tensor, longest: Tensor) -> Turning:
    """Each wave divided by a factor of its own, another one in long texts."""
    spec = rope.scaling
    short, long = (torch.tensor(x, device=pairs.device, dtype=pairs.dtype) for x in (spec.short, spec.long))
    return plain(rope, pairs, longest)[0] / torch.where(longest > spec.length, long, short), spec.attention


FREQUENCIES: dict[type, Callable[[Any, Tensor, Tensor], Turning]] = {
    type(None): plain,
    Interpolate: interpolated,
    DynamicBase: dynamic,
    Yarn: ramped,
    Smooth: smooth,
    LongRope: searched,
}
