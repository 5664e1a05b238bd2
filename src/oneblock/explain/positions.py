"""Positions again, number by number: waves, rotations, biases by distance. Nothing here is shared with the bricks.

position: (batch | 1, length); heads: (batch, heads, length, width); bias: (batch | 1, heads, query, key).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from oneblock.spec import Alibi, DynamicBase, Interpolate, LongRope, Relative, Rope, Sinusoidal, Smooth, Yarn


def waves(spec: Sinusoidal, position: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    """sin and cos of each position at each wave length: (batch | 1, length, dim)."""
    pairs = (dim + 1) // 2
    last = max(pairs - 1, 1) if spec.closed else dim / 2
    rows = []
    for place in position.flatten().tolist():
        angles = [(place + spec.start) * spec.theta ** (-pair / last) for pair in range(pairs)]
        if spec.layout == "interleaved":
            row = [wave(angle) for angle in angles for wave in (math.sin, math.cos)]
        else:
            row = [*map(math.sin, angles), *map(math.cos, angles)]
        rows.append(row[:dim])
    return torch.tensor(rows, dtype=torch.float64, device=position.device).reshape(*position.shape, dim).to(dtype)


def turned(x: Tensor, position: Tensor, rope: Rope) -> Tensor:
    """Each pair of features (a, b) as the complex number a + ib, times size * exp(i * position * frequency)."""
    n = 2 * round(x.shape[-1] * rope.fraction / 2)
    wide = torch.promote_types(x.dtype, torch.float32)
    head, rest = x[..., :n].to(wide), x[..., n:]
    longest = [int(row.max()) + 1 for row in position]
    found = [[turning(rope, pair, n, length) for pair in range(n // 2)] for length in longest]
    frequency = torch.tensor([[f for f, _ in row] for row in found], dtype=torch.float64, device=x.device)
    size = found[0][0][1] if n else 1.0
    angle = position[:, None, :, None].double() * frequency[:, None, None, :]  # (batch, 1, length, n / 2)
    spin = torch.polar(torch.full_like(angle, size), angle).to(torch.complex128)
    if rope.layout == "interleaved":
        pairs = head.reshape(*head.shape[:-1], n // 2, 2)
    else:
        pairs = head.reshape(*head.shape[:-1], 2, n // 2).transpose(-1, -2)
    spun = torch.view_as_real(torch.complex(pairs[..., 0].double(), pairs[..., 1].double()) * spin)
    spun = spun if rope.layout == "interleaved" else spun.transpose(-1, -2)
    return torch.cat([spun.reshape(head.shape).to(x.dtype), rest], -1)


def turning(rope: Rope, pair: int, n: int, longest: int) -> tuple[float, float]:
    """(how far pair number `pair` of n / 2 turns per position, what it is multiplied by) in a text of that length."""
    scaling, share = rope.scaling, 2 * pair / n
    plain = rope.theta**-share
    match scaling:
        case None:
            return plain, 1.0
        case Interpolate():
            return plain / scaling.factor, 1.0
        case DynamicBase():
            beyond = max(longest, scaling.length) / scaling.length
            theta = rope.theta * (scaling.factor * beyond - scaling.factor + 1) ** (n / (n - 2))
            return theta**-share, 1.0
        case LongRope():
            factors = scaling.long if longest > scaling.length else scaling.short
            return plain / factors[pair], scaling.attention
        case Smooth():
            turns = scaling.length * plain / (2 * math.pi)
            kept = min(max((turns - scaling.low) / (scaling.high - scaling.low), 0.0), 1.0)
            return kept * plain + (1 - kept) * plain / scaling.factor, 1.0
        case Yarn():
            return ramped(rope, scaling, pair, n)
    raise ValueError(f"position.scaling: no arithmetic for {type(scaling).__name__}")


def ramped(rope: Rope, scaling: Yarn, pair: int, n: int) -> tuple[float, float]:
    """Fast pairs turn as before, slow ones a factor less, those between in between."""
    plain, base = rope.theta ** (-2 * pair / n), 2 * math.log(rope.theta)
    low = n * math.log(scaling.length / (2 * math.pi * scaling.fast)) / base
    high = n * math.log(scaling.length / (2 * math.pi * scaling.slow)) / base
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, n - 1)
    slow = min(max((pair - low) / (high - low if high != low else 0.001), 0.0), 1.0)
    size = scaling.attention or (0.1 * math.log(scaling.factor) + 1 if scaling.factor > 1 else 1.0)
    return plain * (1 - slow) + plain / scaling.factor * slow, size


def by_distance(spec: Alibi | Relative, q: Tensor, k: Tensor, heads: int, table: Tensor | None) -> Tensor:
    """What each head adds to the score of a query at q (batch | 1, query) for a key at k (batch | 1, key)."""
    ahead = k[:, None, :] - q[:, :, None]
    known = sorted(set(ahead.flatten().tolist()))
    rows = torch.tensor([known.index(far) for far in ahead.flatten().tolist()], device=ahead.device)
    if isinstance(spec, Alibi):
        per = torch.tensor([[-slope(head, heads) * abs(far) for head in range(heads)] for far in known])
    else:
        assert table is not None
        per = torch.stack([table[bucket(spec, far)] for far in known])  # (distances, heads)
    return per.to(ahead.device)[rows].reshape(*ahead.shape, heads).permute(0, 3, 1, 2)


def slope(head: int, heads: int) -> float:
    """How fast a head forgets; heads beyond a power of two lie between those of it."""
    power = 2 ** int(math.log2(heads))
    return 2.0 ** (-8 * (head + 1) / power) if head < power else 2.0 ** (-4 * (2 * (head - power) + 1) / power)


def bucket(spec: Relative, ahead: int) -> int:
    """Which row of the table a distance has: near ones a row each, far ones share."""
    buckets, base = spec.buckets, 0
    if spec.both_ways:
        buckets //= 2
        base = buckets if ahead > 0 else 0
    distance = abs(ahead) if spec.both_ways else max(-ahead, 0)
    exact = buckets // 2
    if distance < exact:
        return base + distance
    far = math.log(distance / exact) / math.log(spec.distance / exact) * (buckets - exact)
    return base + min(exact + int(far), buckets - 1)
