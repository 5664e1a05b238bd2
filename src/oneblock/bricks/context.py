"""What a sublayer may know besides the stream: where its tokens stand, the encoder's output, the cache.

x: (batch, length, dim).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from torch import Tensor

from oneblock.cache import Cache
from oneblock.mask import Bias, Places, Sight, places
from oneblock.spec import Mask

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Memory:
    """An encoder's output (batch, length, dim) with its own places: source and target padding cannot mix."""

    x: Tensor
    places: Places


@dataclass(frozen=True, eq=False)
class Context:
    """Made once per forward pass and handed to every sublayer."""

    here: Places
    memory: Memory | None = None
    cache: Cache | None = None
    bias: Bias | None = None
    memo: dict[Hashable, Any] = field(default_factory=dict)
    routed: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    """Of each mixture of experts so far: the router's softmax (tokens, experts) and its choices (tokens, active)."""

    @property
    def longest(self) -> Tensor:
        """How many tokens each text has by now, (batch | 1, 1, 1, 1)."""
        return self.here.position.amax(-1)[:, None, None, None] + 1

    def remember(self, path: str, **new: Tensor) -> tuple[dict[str, Tensor], Places]:
        """New keys and values, after those of the past if there is a cache, with the places of all."""
        return (new, self.here) if self.cache is None else self.cache.remember(path, self.here, new)

    def once(self, path: str, make: Callable[[], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """`make()`, computed once per memory if there is a cache."""
        return make() if self.cache is None else self.cache.once(path, make)

    def sight(self, mask: Mask, there: Places, bias: Bias | None, word: str) -> Sight:
        """Who of `here` sees whom of `there`; layers that ask alike, by the mask's `word`, share one answer."""
        return self.kept((word, there, bias), lambda: Sight(mask, self.here, there, bias))

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """`make()`, computed once per forward."""
        if key not in self.memo:
            self.memo[key] = make()
        return self.memo[key]


def alone(x: Tensor) -> Context:
    """The context of a brick that is called by itself: tokens 0, 1, 2, ..., all real."""
    return Context(places(x.shape[1], device=x.device))
