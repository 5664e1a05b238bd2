"""Positions in three ways: added to the embedding, turned into queries and keys, added to the scores.

x of the embedding: (batch, length, dim); q and k: (batch, heads, length, head_dim); a score bias:
(batch | 1, heads, query, key). Angles of rotations are always float32 (float64 in a float64 model), those of sinusoids
float64 where the device has it: half precision cannot hold odd positions above 256.
"""

from __future__ import annotations

import math
from functools import singledispatch

import torch
from torch import Tensor, nn

from oneblock.bricks.build import build
from oneblock.bricks.context import Context
from oneblock.bricks.frequencies import FREQUENCIES
from oneblock.mask import Places
from oneblock.spec import Alibi, Learned, Relative, Rope, Sinusoidal


def sinusoids(spec: Sinusoidal, position: Tensor, dim: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """sin and cos of (position + start) / theta^(2i/dim): (batch | 1, length) -> (batch | 1, length, dim).

    The angle is float64 where the device has it: at position 511 a float32 one is off by 3e-5.

    >>> sinusoids(Sinusoidal(), torch.tensor([[0, 1]]), 4)[0].round(decimals=3).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.8410000205039978, 0.5400000214576721, 0.009999999776482582, 1.0]]
    """
    half = (dim + 1) // 2
    last = max(half - 1, 1) if spec.closed else dim / 2
    wide = torch.float32 if position.device.type == "mps" else torch.float64
    exponent = torch.arange(half, device=position.device, dtype=wide) / last
    angle = (position + spec.start)[..., None].to(wide) * spec.theta**-exponent  # (batch, length, dim / 2)
    waves = [angle.sin().to(dtype), angle.cos().to(dtype)]
    if spec.layout == "interleaved":
        return torch.stack(waves, -1).flatten(-2)[..., :dim]
    return torch.cat(waves, -1)[..., :dim]


class LearnedBrick(nn.Embedding):
    """A trainable vector per position."""

    def __init__(self, spec: Learned, dim: int) -> None:
        super().__init__(spec.length + spec.offset, dim)
        self.offset = spec.offset

    def forward(self, position: Tensor) -> Tensor:
        return super().forward(position + self.offset)


class SinusoidalBrick(nn.Module):
    """The sinusoids of each position; nothing to train, nothing stored, no longest length."""

    def __init__(self, spec: Sinusoidal, dim: int) -> None:
        super().__init__()
        self.spec, self.dim = spec, dim

    def forward(self, position: Tensor) -> Tensor:
        return sinusoids(self.spec, position, self.dim)


build.register(Learned, LearnedBrick)
build.register(Sinusoidal, SinusoidalBrick)


@singledispatch
def rotate(spec: object, x: Tensor, there: Places, ctx: Context) -> Tensor:  # noqa: ARG001
    """Turn each head's feature pairs by an angle that grows with position; other position specs leave x as it is."""
    return x


@rotate.register
def _(spec: Rope, x: Tensor, there: Places, ctx: Context) -> Tensor:
    wide = torch.promote_types(x.dtype, torch.float32)
    n = 2 * round(x.shape[-1] * spec.fraction / 2)
    cos, sin = ctx.kept((spec, n, there), lambda: _angles(spec, n, there.position, ctx.longest, wide))
    turn, rest = x[..., :n].to(wide), x[..., n:]
    a, b = (turn[..., ::2], turn[..., 1::2]) if spec.layout == "interleaved" else turn.chunk(2, -1)
    pair = (a * cos - b * sin, b * cos + a * sin)
    turned = torch.stack(pair, -1).flatten(-2) if spec.layout == "interleaved" else torch.cat(pair, -1)
    return torch.cat([turned.type_as(x), rest], -1) if rest.shape[-1] else turned.type_as(x)


def _angles(spec: Rope, n: int, position: Tensor, longest: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    pairs = torch.arange(0, n, 2, device=position.device, dtype=dtype) / n
    frequency, size = FREQUENCIES[type(spec.scaling)](spec, pairs, longest)
    angle = position[:, None, :, None].to(dtype) * frequency  # (batch, 1, length, n / 2)
    return size * angle.cos(), size * angle.sin()


@singledispatch
def score_bias(spec: object, heads: int) -> nn.Module | None:  # noqa: ARG001
    """The module that gives what a position spec adds to the scores, or None."""
    return None


@score_bias.register
def _(spec: Alibi, heads: int) -> nn.Module:  # noqa: ARG001
    return AlibiBrick(heads)


@score_bias.register
def _(spec: Relative, heads: int) -> nn.Module:
    return RelativeBrick(spec, heads)


def slopes(heads: int) -> list[float]:
    """How fast each head forgets: 2^(-8h/heads), as the authors interpolate it for heads that are no power of two.

    >>> slopes(4)
    [0.25, 0.0625, 0.015625, 0.00390625]
    """
    power = 2 ** math.floor(math.log2(heads))
    first = [2 ** (-8 * (h + 1) / power) for h in range(power)]
    return first + [2 ** (-4 * (2 * h + 1) / power) for h in range(heads - power)]


class AlibiBrick(nn.Module):
    """-slope * distance (Press et al. 2022, arXiv:2108.12409)."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def forward(self, q: Places, k: Places) -> Tensor:
        distance = (q.position[:, None, :, None] - k.position[:, None, None, :]).abs()
        slope = torch.tensor(slopes(self.heads), device=distance.device)[:, None, None]
        return -slope * distance


def bucket(spec: Relative, ahead: Tensor) -> Tensor:
    """Which bucket a key that stands `ahead` of its query falls into (Raffel et al. 2020, arXiv:1910.10683).

    >>> bucket(Relative(), torch.tensor([-200, -16, -1, 0, 5])).tolist()
    [31, 16, 1, 0, 0]
    """
    buckets = spec.buckets // 2 if spec.both_ways else spec.buckets
    base = (ahead > 0).long() * buckets if spec.both_ways else torch.zeros_like(ahead)
    distance = ahead.abs() if spec.both_ways else (-ahead).clamp(min=0)
    exact = buckets // 2
    wide = (distance.clamp(min=1).float() / exact).log() / math.log(spec.distance / exact) * (buckets - exact)
    far = (exact + wide.long()).clamp(max=buckets - 1)
    return base + torch.where(distance < exact, distance, far)


class RelativeBrick(nn.Embedding):
    """A learned number per bucket of distance and head."""

    def __init__(self, spec: Relative, heads: int) -> None:
        super().__init__(spec.buckets, heads)
        self.spec = spec

    def forward(self, q: Places, k: Places) -> Tensor:
        ahead = k.position[:, None, :] - q.position[:, :, None]  # (batch, query, key)
        return super().forward(bucket(self.spec, ahead)).permute(0, 3, 1, 2)
