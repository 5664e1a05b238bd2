"""How rotary positions reach beyond the length a model was trained for, as data."""

from __future__ import annotations

from dataclasses import dataclass

from oneblock.spec.choices import above_zero, whole


@dataclass(frozen=True)
class Interpolate:
    """Position p turns like p / factor (Chen et al. 2023, arXiv:2306.15595)."""

    factor: float

    def __post_init__(self) -> None:
        above_zero(Interpolate__factor=self.factor)


@dataclass(frozen=True)
class DynamicBase:
    """Beyond `length` tokens theta grows with the text: theta * (factor * n / length - factor + 1)^(d / (d - 2)).

    Up to `length` nothing changes (bloc97 2023, "dynamic NTK"). Past it, what a token sees depends on how long the
    text is by then, so a cached decode and one whole pass differ there by definition.
    """

    factor: float
    length: int

    def __post_init__(self) -> None:
        above_zero(DynamicBase__factor=self.factor)
        whole(1, DynamicBase__length=self.length)


@dataclass(frozen=True)
class Yarn:
    """Slow waves are interpolated, fast ones kept, a ramp between (Peng et al. 2023, arXiv:2309.00071).

    A wave that turns more than `fast` times over `length` tokens is kept, one that turns less than `slow` times is
    divided by `factor`. cos and sin are multiplied by `attention`, by default 0.1 ln(factor) + 1. `truncate` rounds the
    ramp's ends to whole features.
    """

    factor: float
    length: int
    fast: float = 32.0
    slow: float = 1.0
    attention: float | None = None
    truncate: bool = True

    def __post_init__(self) -> None:
        above_zero(Yarn__factor=self.factor, Yarn__attention=self.attention)
        whole(1, Yarn__length=self.length)


@dataclass(frozen=True)
class Smooth:
    """Waves longer than length / low are divided by `factor`, shorter than length / high kept, between them blended.

    Grattafiori et al. 2024, arXiv:2407.21783.
    """

    factor: float
    length: int
    low: float = 1.0
    high: float = 4.0

    def __post_init__(self) -> None:
        above_zero(Smooth__factor=self.factor, Smooth__low=self.low, Smooth__high=self.high)
        whole(1, Smooth__length=self.length)


@dataclass(frozen=True)
class LongRope:
    """Each wave is divided by its own searched factor: `short` up to `length` tokens, `long` beyond (arXiv:2402.13753).

    cos and sin are multiplied by `attention`. Ding et al. 2024.
    """

    short: tuple[float, ...]
    long: tuple[float, ...]
    length: int
    attention: float = 1.0

    def __post_init__(self) -> None:
        whole(1, LongRope__length=self.length)
        if len(self.short) != len(self.long):
            raise ValueError(f"LongRope.long: expected {len(self.short)} factors as in short, got {len(self.long)}")


Scaling = Interpolate | DynamicBase | Yarn | Smooth | LongRope
"""How rotary positions are stretched."""
