"""How a module is called: the names of its arguments and how each is given, as one frozen value."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from oneblock.check.calling.adapter import Answer, Ask, Field
from oneblock.check.calling.masks import FORMS, square
from oneblock.check.calling.reply import read
from oneblock.check.calling.sizes import Sizes
from oneblock.check.copies import undisturbed

LENGTH = 6
"""Tokens in the texts that conventions are tried with."""


STARTS: dict[str, Callable[[], Any]] = {"list": list, "dict": dict}


@dataclass(frozen=True)
class Held:
    """How a module is asked that holds its cache itself: `past` is the argument for how many tokens are in it, `reset`
    the method that empties it."""

    past: str | None = None
    reset: str | None = None


@dataclass(frozen=True)
class Convention:
    """The names of a module's arguments, and how each is given."""

    tokens: str
    ids: bool
    batch_first: bool = True
    same: tuple[str, ...] = ()
    """Arguments that are given the tokens too: key and value of an attention layer."""
    source: str | None = None
    source_ids: bool = True
    real: tuple[tuple[str, str], ...] = ()
    """(argument, form) of masks over the tokens; `source_real` likewise over the source."""
    source_real: tuple[tuple[str, str], ...] = ()
    causal: tuple[tuple[str, str], ...] = ()
    """Square masks that the caller has to give: (argument, form)."""
    positions: str | None = None
    labels: str | None = None
    full: bool = False
    """Whether all logits come only when labels are given."""
    cache: str | None = None
    use_cache: str | None = None
    even: bool = False
    """Whether the module fails unless source and target are equally long."""
    begin: str | None = None
    """How an empty cache is made where the caller has to: "list", "dict", or a method of the module."""
    held: Held | None = None
    documents: str | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    segments: tuple[str, ...] = ()
    """Arguments that are given `segment` for every token."""
    segment: int = 1
    by_id: tuple[str, ...] = ()
    """Texts ("tokens", "source") whose padding the module tells by its id."""
    pad: int = 0
    until: float = field(default=float("inf"), compare=False)
    """When the time given is over, by the monotonic clock."""

    def arguments(self, ask: Ask, cache: Any, use_cache: bool) -> dict[str, Any]:
        """Keyword arguments of the module's forward."""
        turn = (lambda x: x) if self.batch_first else (lambda x: x.transpose(0, 1))
        ask = self.padded(ask)
        found: dict[str, Any] = dict(self.fixed)
        found |= dict.fromkeys((self.tokens, *self.same), turn(ask.tokens))
        found |= dict.fromkeys(self.segments, torch.full(turn(ask.tokens).shape[:2], self.segment))
        if self.source is not None:
            found[self.source] = turn(ask.source) if ask.source is not None else None
        pairs = [(self.real, ask.real, ask.tokens), (self.source_real, ask.source_real, ask.source)]
        for given, real, tokens in pairs:
            for name, form in given:
                if real is not None:
                    found[name] = FORMS[form].make(real, tokens)
        for name, form in self.causal:
            found[name] = square(form, ask.tokens)
        if self.positions and ask.positions is not None:
            found[self.positions] = turn(ask.positions)
        if self.documents and ask.documents is not None:
            found[self.documents] = turn(ask.documents)
        if self.labels and (ask.labels is not None or self.full):
            found[self.labels] = turn(ask.tokens if ask.labels is None else ask.labels)
        if self.cache and cache is not None:
            found[self.cache] = cache
        if self.use_cache:
            found[self.use_cache] = use_cache
        return found

    def padded(self, ask: Ask) -> Ask:
        """A question whose padding is written as the id that means it."""
        for text, real in (("tokens", ask.real), ("source", ask.source_real)):
            if text in self.by_id and real is not None:
                ask = ask.but(**{text: getattr(ask, text).masked_fill(~real, self.pad)})
        return ask

    def call(self, module: nn.Module, ask: Ask, cache: Any = None, use_cache: bool = False) -> Answer:
        """Ask the module this way."""
        if self.held and (use_cache or cache is not None):
            return self.call_held(module, ask, cache)
        if self.begin and use_cache and cache is None:
            cache = STARTS[self.begin]() if self.begin in STARTS else getattr(module, self.begin)()
        answer = read(module(**self.arguments(ask, cache, use_cache)), ask, self.batch_first)
        if self.cache and answer.cache is None and cache is not None:
            answer = replace(answer, cache=cache)  # filled in place
        return answer if self.batch_first else replace(answer, y=answer.y.transpose(0, 1))

    def call_held(self, module: nn.Module, ask: Ask, cache: tuple[nn.Module, int] | None) -> Answer:
        """Ask a copy of a module that holds the cache itself: the copy, and how many tokens it holds, is the cache."""
        assert self.held is not None
        twin, past = copy.deepcopy(cache or (module, 0))
        if cache is None and self.held.reset:
            getattr(twin, self.held.reset)()
        given = self.arguments(ask, None, use_cache=True)
        if self.held.past:
            given[self.held.past] = past
        return replace(read(twin(**given), ask, self.batch_first), cache=(twin, past + ask.length))

    def takes(self) -> frozenset[Field]:
        """Which fields of a question reach the module."""
        held: dict[Field, Any] = {
            "real": self.real or "tokens" in self.by_id,
            "source": self.source,
            "source_real": self.source_real or "source" in self.by_id,
            "positions": self.positions,
            "labels": self.labels,
            "documents": self.documents,
            "cache": self.cache or self.held,
        }
        return frozenset(name for name, value in held.items() if value)


def questions(way: Convention, sizes: Sizes, length: int = LENGTH, batch: int = 2, seed: int = 0) -> Ask:
    """A random question for a convention."""
    draw = torch.Generator().manual_seed(seed)
    source = None
    if way.source:
        source = sizes.draw(batch, length + (not way.even), way.source_ids, draw, source=True)
    return Ask(sizes.draw(batch, length, way.ids, draw), source=source)


def attempt(twin: nn.Module, way: Convention, ask: Ask, **more: Any) -> Answer:
    """Ask without gradient and without touching the random numbers of anyone else."""
    if time.monotonic() > way.until:
        raise TimeoutError("the time given was over before it was found out how the module is called")
    with undisturbed(0), torch.no_grad():
        return way.call(twin, ask, **more)
