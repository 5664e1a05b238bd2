"""A text answered in parts with a cache, compared with the same text answered at once, and where the two part.

Shapes: answers are (batch, length, features).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from oneblock.check.asked import CannotAskError
from oneblock.check.calling.adapter import Answer, Ask
from oneblock.check.finding import Where
from oneblock.check.seeing.caches import cuts, part
from oneblock.check.seeing.modules import noted, turned
from oneblock.check.subject import Subject, gap
from oneblock.hint import first_line

Start = Callable[[], Any]
"""Makes the cache to begin with; each call gives one that nobody else writes into."""
WINDOWS = ("sliding_window", "attention_window", "window", "window_size", "local_window", "attn_window")
"""How a configuration or a part says how far back it sees."""
LONGEST_WINDOW = 24
"""Windows up to which texts are asked that reach beyond them."""


@dataclass(frozen=True)
class Parting:
    """Where the answer in parts is another than the answer at once: in tokens `begin` to `end`, first at `position`."""

    where: Where
    begin: int
    end: int
    position: int
    moved: float
    said: str = ""
    """The words of the error, where the part could not be answered at all."""


def needs_cache(subject: Subject) -> None:
    """Skip what has no cache, or sees the future: its past would change with every token."""
    subject.needs("cache")
    if not subject.causal:
        raise CannotAskError("an encoder sees the future, so nothing of its past stays as it is")
    if not subject.timed:
        raise CannotAskError("the module answers with no vector per token")


def short(subject: Subject) -> Ask:
    """A question within the declared window, so that what a window does is asked by its own check."""
    window = declared_window(subject)
    length = subject.length if window is None else min(subject.length, window)
    if length < 4:
        raise CannotAskError("the window of {} tokens is too short to cut a text in parts", window)
    return subject.ask(length=length)


def declared_window(subject: Subject) -> int | None:
    """How far back the module says that it sees, if it does."""
    holders = [subject.config, *subject.module.modules()]
    found = [value for one in holders for name in WINDOWS if type(value := getattr(one, name, None)) is int]
    return min((value for value in found if value > 0), default=None)


def step(subject: Subject, ask: Ask, begin: int, end: int, cache: Any, module: nn.Module | None = None) -> Answer:
    """The answer for the tokens `begin` to `end`, those before being in the cache."""
    return subject.answer(part(ask, begin, end), cache=cache, use_cache=True, module=module)


def cache_of(subject: Subject, ask: Ask, length: int, module: nn.Module | None = None) -> Any:
    """A cache that holds the first `length` tokens."""
    cache = step(subject, ask, 0, length, None, module).cache
    if cache is None:
        raise CannotAskError("the module gives no cache back")
    return cache


def in_parts(
    subject: Subject,
    ask: Ask,
    spans: Sequence[tuple[int, int]],
    start: Start = lambda: None,
    module: nn.Module | None = None,
    whole: Tensor | None = None,
) -> Parting | None:
    """The first part whose answer is not what the whole text's answer has there, if any."""
    plain = subject.answer(ask, module=module).y if whole is None else whole
    real = torch.ones(ask.tokens.shape[:2], dtype=torch.bool) if ask.real is None else ask.real
    cache = start()
    for number, (begin, end) in enumerate(spans):
        try:
            answer = step(subject, ask, begin, end, cache, module)
        except Exception as error:
            said = first_line(error)
            return parting(subject, ask, spans[: number + 1], start, module, begin, 0.0, said)
        if answer.y.ndim < 3 or answer.y.shape[1] != end - begin:
            raise CannotAskError("with a cache the module answers with no vector per new token")
        kept = real[:, begin:end]
        y, z = answer.y[kept], plain[:, begin:end][kept]
        if subject.differs(y, z):
            apart = torch.stack(
                [(a - b).abs().amax() for a, b in zip(*rows(answer.y, plain[:, begin:end], kept), strict=True)]
            )
            position = begin + int((apart > subject.floor() * float(z.abs().max())).nonzero()[0])
            return parting(subject, ask, spans[: number + 1], start, module, position, gap(y, z))
        if answer.cache is None and end < ask.length:
            raise CannotAskError("the module gives no cache back")
        cache = answer.cache
    return None


def rows(y: Tensor, z: Tensor, kept: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Both answers cut into positions, with 0 where no token is real."""
    return tuple(
        [(x * kept.to(x).view(*kept.shape, *[1] * (x.ndim - 2)))[:, n] for n in range(x.shape[1])] for x in (y, z)
    )  # type: ignore[return-value]


def parting(
    subject: Subject,
    ask: Ask,
    spans: Sequence[tuple[int, int]],
    start: Start,
    module: nn.Module | None,
    position: int,
    moved: float,
    said: str = "",
) -> Parting:
    """Run both again, watched by module, and name the first that turned the same into something else."""
    twin = module or subject.copy()
    begin, end = spans[-1]
    with noted(twin) as whole:
        subject.answer(ask, module=twin)
    cache = start()
    for first, last in spans[:-1]:
        cache = step(subject, ask, first, last, cache, twin).cache
    holds = isinstance(cache, tuple) and cache and isinstance(cache[0], nn.Module)
    with noted(cache[0] if holds else twin) as parts:
        try:
            step(subject, ask, begin, end, cache, twin)
        except Exception:
            return Parting(parts.where, begin, end, position, moved, said)
    tolerance = max(16 * subject.floor(), 1e-6 * moved)
    where = turned(whole.ended, parts.ended, ask.length, begin, end, tolerance)
    return Parting(where, begin, end, position, moved, said)


def token_by_token(subject: Subject) -> Parting | None:
    """The first token whose answer with a cache is another than without; asked once, several checks want to know."""
    if "token by token" not in subject.memo:
        ask = short(subject)
        subject.memo["token by token"] = in_parts(subject, ask, cuts((1,) * ask.length, ask.length))
    found: Parting | None = subject.memo["token by token"]
    return found


def needs_steps(subject: Subject) -> None:
    """Skip what builds on a cache that is wrong already."""
    needs_cache(subject)
    if token_by_token(subject) is not None:
        raise CannotAskError("token by token the cache is wrong already (OB501)")
