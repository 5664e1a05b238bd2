"""Positions. x: (batch, heads, length, head_dim); position: (batch, length); a bias: (batch, heads, query, key)."""

import math
from typing import Any

import torch
from torch import Tensor, nn


class Rotary(nn.Module):
    """Turns feature pairs of queries and keys by position * theta^(-2i/n), n features in all (arXiv:2104.09864)."""

    def __init__(self, spec: Any) -> None:
        super().__init__()
        self.spec = spec

    def forward(self, x: Tensor, position: Tensor) -> Tensor:
        """x: (batch, heads, length, head_dim); position: (batch, length)."""
        wide = torch.promote_types(x.dtype, torch.float32)  # half precision is too coarse for angles
        pairs = torch.arange(0, self.spec.features, 2, device=x.device, dtype=wide) / self.spec.features
        if self.spec.scaling in ("dynamic", "searched"):
            longest = position.amax(-1)[:, None, None, None].to(wide) + 1  # tokens of each text
        if self.spec.scaling == "dynamic":
            stretch = self.spec.factor * longest.clamp(min=self.spec.trained) / self.spec.trained - self.spec.factor + 1
            grown = self.spec.theta * stretch ** (self.spec.features / (self.spec.features - 2))
            frequency = grown**-pairs  # (batch, 1, 1, n / 2): slower in texts longer than those of the training
        else:
            frequency = self.spec.theta**-pairs  # (n / 2)
        if self.spec.scaling == "interpolate":
            frequency = frequency / self.spec.factor
        if self.spec.scaling == "ramp":  # fast waves are kept, slow ones divided by the factor
            feature = torch.arange(len(pairs), device=x.device)
            slow = ((feature - self.spec.low) / self.spec.width).clamp(0, 1).to(wide)
            frequency = frequency / self.spec.factor * slow + frequency * (1 - slow)
        if self.spec.scaling == "smooth":  # waves that turn often over the trained length are kept
            turns = self.spec.trained * frequency / (2 * math.pi)
            kept = ((turns - self.spec.low) / (self.spec.high - self.spec.low)).clamp(0, 1)
            frequency = (1 - kept) * frequency / self.spec.factor + kept * frequency
        if self.spec.scaling == "searched":  # (batch, 1, 1, n / 2): each wave has a divisor, another in long texts
            short, long = (torch.tensor(f, device=x.device, dtype=wide) for f in (self.spec.short, self.spec.long))
            frequency = frequency / torch.where(longest > self.spec.trained, long, short)
        angle = position[:, None, :, None].to(wide) * frequency  # (batch, 1, length, n / 2)
        cos, sin = angle.cos(), angle.sin()
        if self.spec.size != 1:
            cos, sin = self.spec.size * cos, self.spec.size * sin
        if self.spec.partial:  # the other features of a head stay as they are
            x, rest = x[..., : self.spec.features], x[..., self.spec.features :]
        if self.spec.interleaved:
            a, b = x.to(wide).unflatten(-1, (-1, 2)).unbind(-1)  # features 2i and 2i + 1
        else:
            a, b = x.to(wide).chunk(2, -1)  # features i and i + n / 2
        pair = (a * cos - b * sin, b * cos + a * sin)
        turned = torch.stack(pair, -1).flatten(-2) if self.spec.interleaved else torch.cat(pair, -1)
        if self.spec.partial:
            turned = torch.cat([turned, rest.to(wide)], -1)
        return turned.type_as(x)


class Relative(nn.Embedding):
    """A learned number for each head and bucket of distance, added to the scores (arXiv:1910.10683)."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec.buckets, spec.heads)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Positions (batch, query) and (batch, key) -> (batch, heads, query, key)."""
        ahead = key[:, None, :] - query[:, :, None]
        if self.spec.both_ways:
            half = self.spec.buckets // 2  # half of the buckets for keys behind, half for those ahead
            base, distance = (ahead > 0).long() * half, ahead.abs()
        else:
            half = self.spec.buckets
            base, distance = torch.zeros_like(ahead), (-ahead).clamp(min=0)
        near = half // 2  # buckets of one distance each; the others grow logarithmically
        share = (distance.clamp(min=1).float() / near).log() / math.log(self.spec.farthest / near)
        far = (near + (share * (half - near)).long()).clamp(max=half - 1)
        return super().forward(base + torch.where(distance < near, distance, far)).permute(0, 3, 1, 2)


class Alibi(nn.Module):
    """-slope * distance, added to the scores; each head forgets at a pace of its own (arXiv:2108.12409)."""

    def __init__(self, spec: Any) -> None:
        super().__init__()
        self.spec = spec

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Positions (batch, query) and (batch, key) -> (batch, heads, query, key)."""
        slope = torch.tensor(self.spec.slopes, device=query.device)[:, None, None]  # (heads, 1, 1)
        return -slope * (query[:, None, :, None] - key[:, None, None, :]).abs()


class Sinusoidal(nn.Module):
    """sin and cos of position / theta^(2i/dim) (arXiv:1706.03762)."""

    def __init__(self, spec: Any) -> None:
        super().__init__()
        self.spec = spec

    def forward(self, position: Tensor) -> Tensor:
        """(batch, length) -> (batch, length, dim)."""
        exponent = torch.arange(self.spec.half, device=position.device, dtype=torch.float64) / self.spec.last
        place = position + self.spec.start if self.spec.start else position
        angle = place[..., None] * self.spec.theta**-exponent  # (batch, length, dim / 2)
        waves = (angle.sin().float(), angle.cos().float())
        x = torch.stack(waves, -1).flatten(-2) if self.spec.interleaved else torch.cat(waves, -1)
        if self.spec.odd:
            x = x[..., : self.spec.dim]
        return x


def visible(real: Tensor, spec: Any) -> Tensor:
    """Who sees whom: (batch, 1, query, key), True where a query may look at a key, never at padding."""
    index = torch.arange(real.shape[1], device=real.device)
    behind = index[:, None] - index  # how far a key stands behind its query, (query, key)
    see = real[:, None, None, :]  # nobody looks at padding
    if spec.ahead is not None:
        see = see & (behind >= (-spec.ahead if spec.ahead else 0))
    if spec.window is not None:
        see = see & (behind < spec.window)
    return see


def reachable(real: Tensor, queries: int, spec: Any) -> Tensor:
    """Who sees whom in another text: (batch, 1, query, key), by how far each token stands from its text's begin."""
    index = torch.arange(queries, device=real.device)
    behind = index[:, None] - torch.arange(real.shape[1], device=real.device)  # (query, key)
    see = real[:, None, None, :]  # nobody looks at padding
    if spec.ahead is not None:
        see = see & (behind >= (-spec.ahead if spec.ahead else 0))
    if spec.window is not None:
        see = see & (behind < spec.window)
    return see
