"""Questions about what is done to caches between steps: cut, reordered, reused, and rows that begin with padding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.calling.adapter import Ask
from oneblock.check.copies import copied
from oneblock.check.finding import Fault
from oneblock.check.seeing.cached import Parting, cache_of, declared_window, in_parts, needs_cache, needs_steps, short
from oneblock.check.seeing.caches import cropper, cuts, reorderer, twin
from oneblock.check.subject import Subject, fault, gap
from oneblock.hint import first_line

ROWS = (2, 0, 0)
"""Row i goes on from this one."""


def with_tail(subject: Subject, ask: Ask, length: int) -> Ask:
    """The same first tokens, other tokens after them."""
    return ask.but(tokens=torch.cat([ask.tokens[:, :length], subject.others(ask.tokens[:, length:])], 1))


def tail(ask: Ask, length: int) -> list[tuple[int, int]]:
    """What is left after `length` tokens, token by token."""
    return [(n, n + 1) for n in range(length, ask.length)]


@asks("OB503", "crop")
def crop(subject: Subject) -> Iterator[Fault]:
    """A cache cut to its first tokens goes on like one that never held more."""
    needs_steps(subject)
    ask = short(subject)
    full = cache_of(subject, ask, ask.length)
    cut = cropper(subject.adapter, full, ask.length)
    if cut is None:
        raise CannotAskError("the cache ({}) cannot be cut", type(full).__name__)
    for length in (ask.length - 2, 2, ask.length + 3):
        kept = min(length, ask.length - 2)
        other = with_tail(subject, ask, kept)

        def start(length: int = length, kept: int = kept) -> object:
            held = kept if length > ask.length else ask.length
            return cut(cache_of(subject, ask, held), length, held)

        try:
            found = in_parts(subject, other, tail(other, kept), start)
        except (CannotAskError, MemoryError):
            raise
        except Exception as error:
            said = first_line(error)
            if isinstance(error, ValueError | NotImplementedError) or declared_window(subject) is not None:
                raise CannotAskError("the cache refuses to be cut: {}", said) from error
            yield fault("crop.fails", kept=length, said=said)
            return
        if found is not None:
            yield fault("crop.differs", where=found.where, kept=length, had=ask.length, moved=found.moved)
            return
    yield from crop_to_nothing(subject, ask, cut)


def crop_to_nothing(subject: Subject, ask: Ask, cut: object) -> Iterator[Fault]:
    """Cut to 0 tokens, nothing of the old text may be left."""
    other = with_tail(subject, ask, 0)
    try:
        left = cut(cache_of(subject, ask, 3), 0, 3)  # type: ignore[operator]
        moved = gap(subject.answer(other, cache=left, use_cache=True).y, subject.answer(other).y)
    except Exception:
        moved = float("inf")
    if moved > subject.floor():
        yield fault("crop.nothing", severity="warning")


@asks("OB504", "reorder")
def reorder(subject: Subject) -> Iterator[Fault]:
    """After its rows are put into another order, a cache goes on with the texts of those rows."""
    needs_steps(subject)
    begin = subject.ask(batch=3, length=short(subject).length)
    if begin.source is not None:  # beams share one source
        begin = begin.but(source=begin.source[:1].expand(3, *begin.source.shape[1:]).contiguous())
    length = begin.length - 2
    rows = torch.tensor(ROWS)
    turn = reorderer(subject.adapter, subject.copy(), cache_of(subject, begin, length))
    if turn is None:
        raise CannotAskError("nobody says how the cache's rows are put into another order")
    tokens = torch.cat([begin.tokens[rows, :length], begin.tokens[:, length:]], 1)
    ask = begin.but(tokens=tokens)
    found = in_parts(subject, ask, tail(ask, length), lambda: turn(cache_of(subject, begin, length), rows))
    if found is not None:
        yield fault("reorder.differs", where=found.where, moved=found.moved, said=found.said or "-")


@asks("OB505", "reuse")
def reuse(subject: Subject) -> Iterator[Fault]:
    """A text asked after another is answered as if it came first; an older cache is not touched by newer texts."""
    needs_cache(subject)
    ask = short(subject)
    other = with_tail(subject, ask, 0)
    module = subject.fresh()
    first = subject.answer(ask, module=copied(module), use_cache=True).y
    alone = subject.answer(other, module=copied(module), use_cache=True).y
    floor = subject.floor()
    begun = subject.answer(ask, module=module, use_cache=True)
    try:
        moved = max(
            gap(subject.answer(one, module=module, use_cache=True).y, y) for one, y in ((other, alone), (ask, first))
        )
    except Exception:
        moved = float("inf")
    if moved > floor:
        found = second(subject, ask, other)
        yield fault("reuse.state", where=found.where if found else None, moved=moved)
        return
    moved = after_reset(subject, module, begun.cache, other, alone)
    if moved > floor:
        yield fault("reuse.reset", moved=moved)
    yield from older(subject, ask, other)


def after_reset(subject: Subject, module: nn.Module, cache: Any, other: Ask, alone: Tensor) -> float:
    """How far a text's answer is off that is asked with a cache that was used and then emptied."""
    if isinstance(cache, tuple) and cache and isinstance(cache[0], nn.Module):
        module, cache = cache[0], None  # a module that holds its cache: its call empties it
    elif callable(reset := getattr(type(cache), "reset", None)):
        reset(cache)
    else:
        return 0.0
    try:
        return gap(subject.answer(other, module=module, cache=cache, use_cache=True).y, alone)
    except Exception:
        return float("inf")


def second(subject: Subject, ask: Ask, other: Ask) -> Parting | None:
    """Where a second text's answer parts from what a fresh module says."""
    fresh, used = (subject.fresh() for _ in range(2))
    subject.answer(ask, module=used, use_cache=True)
    return in_parts(subject, other, [(0, other.length)], module=used, whole=subject.answer(other, module=fresh).y)


def older(subject: Subject, ask: Ask, other: Ask) -> Iterator[Fault]:
    """A cache made before another text was read goes on as it would have."""
    if subject.memo.get("token by token") is not None:
        return
    length = ask.length - 2

    def start() -> object:
        cache = cache_of(subject, ask, length)
        cache_of(subject, other, other.length)
        return cache

    found = in_parts(subject, ask, tail(ask, length), start)
    if found is not None:
        yield fault("reuse.shared", where=found.where, moved=found.moved)
        return
    cache = cache_of(subject, ask, length)
    if isinstance(cache, tuple):  # a tuple promises to stay as it is
        kept = twin(cache)
        subject.answer(other.but(tokens=other.tokens[:, :1]), cache=cache, use_cache=True)
        found = in_parts(subject, ask, tail(ask, length), lambda: cache)
        if found is not None and in_parts(subject, ask, tail(ask, length), lambda: kept) is None:
            yield fault("reuse.shared", where=found.where, moved=found.moved)


@asks("OB506", "cache-padding")
def cache_padding(subject: Subject) -> Iterator[Fault]:
    """Rows that begin with padding go on from their own positions."""
    needs_steps(subject)
    subject.needs("real")
    ask = subject.ask()
    real = torch.ones(ask.tokens.shape[:2], dtype=torch.bool)
    real[0, :2] = False
    tokens = ask.tokens.clone()
    if not tokens.is_floating_point():
        tokens[~real] = subject.adapter.pad
    padded = ask.but(tokens=tokens, real=real)
    asked = [(padded, "default")]
    if "positions" in subject.adapter.takes:
        positions = (real.long().cumsum(1) - 1).clamp_min(0)
        asked.append((padded.but(positions=positions), "given"))
    for one, how in asked:
        for sizes in ((4, *(1,) * ask.length), (4,)):
            found = in_parts(subject, one, cuts(sizes, ask.length))
            if found is not None and found.said:
                raise CannotAskError("with a cache the mask over past and new tokens fails: {}", found.said)
            if found is not None:
                name = "cache.padding" if how == "default" else "cache.positions_given"
                yield fault(name, where=found.where, position=found.position, moved=found.moved)
                return
