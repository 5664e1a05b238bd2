"""How a model is called: one way to ask (`Ask`), one to answer (`Answer`), an `Adapter` between them and a module.

Shapes: batch first; tokens (batch, length) are ids, (batch, length, dim) are vectors; True = a real token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

Kind = Literal["decoder", "encoder", "seq2seq"]
KINDS: tuple[Kind, ...] = ("decoder", "encoder", "seq2seq")
Field = Literal["real", "positions", "labels", "source", "source_real", "documents", "cache"]


@dataclass(frozen=True)
class Ask:
    """What a model is asked. `source` is what the encoder reads; `labels` are ids, -100 = ignored."""

    tokens: Tensor
    real: Tensor | None = None
    positions: Tensor | None = None
    labels: Tensor | None = None
    source: Tensor | None = None
    source_real: Tensor | None = None
    documents: Tensor | None = None

    def but(self, **changes: Any) -> Ask:
        """The same with some fields changed."""
        return replace(self, **changes)

    def rows(self, chosen: Any) -> Ask:
        """Some rows of the batch."""
        return Ask(**{name: x if x is None else x[chosen] for name, x in vars(self).items()})

    @property
    def length(self) -> int:
        """How many tokens stand in a row."""
        return self.tokens.shape[1]

    def to(self, dtype: torch.dtype) -> Ask:
        """The same with vectors of another dtype."""
        cast = {
            name: x.to(dtype) if isinstance(x, Tensor) and x.is_floating_point() else x
            for name, x in vars(self).items()
        }
        return Ask(**cast)


@dataclass(frozen=True)
class Answer:
    """What a model answers: `y` (batch, length, features), or (batch, features) where it pools; loss; cache."""

    y: Tensor
    loss: Tensor | None = None
    cache: Any = None
    raw: Any = None


@dataclass(frozen=True)
class Adapter:
    """How to call a module that is called in no common way.

    Args:
        call: (module, ask, cache, use_cache) -> Answer, or a tensor, batch first; `cache` is None or an answer's.
        kind: "decoder" (must not see the future), "encoder" (sees both sides) or "seq2seq" (source and target).
        vocab: ids are below this; None: the module takes vectors.
        dim: width of vectors, where it takes vectors.
        source_vocab: ids of the source are below this (default `vocab`); `source_dim` likewise.
        takes: fields of an `Ask` that the call hands on (real, positions, labels, source, source_real, documents) and
            "cache".
        pad: the id that fills a text up.
        longest: tokens in the longest text.
        reorder, crop: (cache, rows) -> cache and (cache, length) -> cache, where the module has caches.
        told: how the module is called, one line each, for the report.
        avoid: ids that are never asked for, because they mean something (padding, end).

    >>> import torch
    >>> adapter = Adapter(lambda module, ask, cache, use_cache: module(ask.tokens), "encoder", vocab=9)
    >>> adapter.answer(torch.nn.Embedding(9, 4), Ask(torch.tensor([[1, 2]]))).y.shape
    torch.Size([1, 2, 4])
    """

    call: Callable[[nn.Module, Ask, Any, bool], Any]
    kind: Kind
    vocab: int | None = None
    dim: int | None = None
    source_vocab: int | None = None
    source_dim: int | None = None
    takes: frozenset[Field] = frozenset()
    pad: int = 0
    longest: int | None = None
    reorder: Callable[[Any, Tensor], Any] | None = None
    crop: Callable[[Any, int], Any] | None = None
    told: tuple[str, ...] = ()
    avoid: frozenset[int] = frozenset()
    polarity: tuple[tuple[str, str], ...] = ()
    """(argument, form) of every mask, as it was tried out: which form hides."""
    even: bool = False
    """Whether the module fails unless source and target are equally long."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"adapter: kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        if (self.vocab is None) == (self.dim is None):
            raise ValueError("adapter: give vocab (the module takes ids) or dim (it takes vectors), and not both")

    def answer(self, module: nn.Module, ask: Ask, cache: Any = None, use_cache: bool = False) -> Answer:
        """Ask the module."""
        found = self.call(module, ask, cache, use_cache)
        return found if isinstance(found, Answer) else Answer(found, raw=found)
