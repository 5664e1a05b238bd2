"""How a model knows where a token stands: added to the embedding, turned into q and k, or added to the scores."""

from __future__ import annotations

from dataclasses import dataclass

from oneblock.spec.choices import Layout, at_least, one_of, whole
from oneblock.spec.scalings import Scaling


@dataclass(frozen=True)
class Learned:
    """A trainable vector per position; position p reads row p + offset of a table of `length` + offset rows."""

    length: int
    offset: int = 0

    def __post_init__(self) -> None:
        whole(1, Learned__length=self.length)
        whole(0, Learned__offset=self.offset)


@dataclass(frozen=True)
class Sinusoidal:
    """sin and cos of position / theta^(2i/dim), no parameters (Vaswani et al. 2017, arXiv:1706.03762, section 3.5).

    `layout`: "interleaved" [sin, cos, sin, cos, ...] as in the paper, "half" [sin ..., cos ...] as in tensor2tensor.
    `start` is added to every position. `closed` lets the slowest wave reach exactly theta: exponent i/(dim/2 - 1).
    """

    layout: Layout = "interleaved"
    start: int = 0
    theta: float = 10_000.0
    closed: bool = False

    def __post_init__(self) -> None:
        one_of(Layout, **{"Sinusoidal.layout": self.layout})
        at_least(1, Sinusoidal__theta=self.theta)


@dataclass(frozen=True)
class Rope:
    """Rotate pairs of query and key features by position * theta^(-2i/n) (Su et al. 2021, arXiv:2104.09864).

    `layout`: "half" pairs feature i with i + n/2, "interleaved" pairs 2i with 2i + 1. `fraction` of each head is
    turned, n = fraction * head_dim features, the rest stays. `scaling` stretches positions beyond the trained length.
    """

    theta: float = 10_000.0
    fraction: float = 1.0
    layout: Layout = "half"
    scaling: Scaling | None = None

    def __post_init__(self) -> None:
        one_of(Layout, **{"Rope.layout": self.layout})
        at_least(1, Rope__theta=self.theta)
        if not 0 < self.fraction <= 1:
            raise ValueError(f"Rope.fraction: expected above 0 and at most 1, got {self.fraction!r}")


@dataclass(frozen=True)
class Alibi:
    """Subtract slope(head) * distance from the scores, slopes 2^(-8h/heads) (Press et al. 2022, arXiv:2108.12409)."""


@dataclass(frozen=True)
class Relative:
    """Add a learned number per head and distance bucket to the scores (Raffel et al. 2020, arXiv:1910.10683).

    Half of the buckets hold one distance each, the rest grow logarithmically up to `distance`. `both_ways` tells keys
    ahead from keys behind; without it every key ahead falls into the bucket of distance 0.
    """

    buckets: int = 32
    distance: int = 128
    both_ways: bool = False

    def __post_init__(self) -> None:
        whole(4, Relative__buckets=self.buckets)
        whole(self.buckets // 2, Relative__distance=self.distance)
