"""Questions about caches: a text in parts must be answered like the whole text at once."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.calling.adapter import Ask
from oneblock.check.finding import Fault
from oneblock.check.seeing.cached import (
    LONGEST_WINDOW,
    Parting,
    cache_of,
    declared_window,
    in_parts,
    needs_cache,
    needs_steps,
    short,
    step,
    token_by_token,
)
from oneblock.check.seeing.caches import cuts, part
from oneblock.check.subject import Subject, fault, gap

CHUNKS = ((2, 3), (1,), (3,))
"""Sizes of the first parts; the last part takes the rest."""


@asks("OB501", "cache")
def cache(subject: Subject) -> Iterator[Fault]:
    """Token by token with a cache gives the same as all tokens at once."""
    needs_cache(subject)
    found = token_by_token(subject)
    if found is None:
        return
    ask = short(subject)
    if found.said:
        yield fault("cache.fails", where=found.where, tokens=found.end - found.begin, past=found.begin, said=found.said)
    elif found.begin == 0:
        yield fault("cache.switch", where=found.where, moved=found.moved)
    elif ignored(subject, ask, found):
        yield fault("cache.ignored", where=found.where, position=found.position)
    elif by_positions(subject, ask):
        yield fault("cache.positions", where=found.where, position=found.position, moved=found.moved)
    else:
        yield fault("cache.differs", where=found.where, position=found.position, moved=found.moved)


def ignored(subject: Subject, ask: Ask, found: Parting) -> bool:
    """Whether the answer is the same without the cache."""
    begin, end = found.begin, found.end
    with_cache = step(subject, ask, begin, end, cache_of(subject, ask, begin)).y
    return not subject.differs(subject.answer(part(ask, begin, end)).y, with_cache)


def by_positions(subject: Subject, ask: Ask) -> bool:
    """Whether the answers agree once positions are given."""
    if "positions" not in subject.adapter.takes:
        return False
    placed = ask.but(positions=torch.arange(ask.length).expand(ask.tokens.shape[:2]))
    return in_parts(subject, placed, cuts((1,) * ask.length, ask.length)) is None


@asks("OB502", "chunks")
def chunks(subject: Subject) -> Iterator[Fault]:
    """Several tokens at once on top of a cache see the cache and each other's past."""
    needs_steps(subject)
    ask = short(subject)
    for sizes in CHUNKS:
        found = in_parts(subject, ask, cuts(sizes, ask.length))
        if found is None:
            continue
        tokens, past = found.end - found.begin, found.begin
        if found.said:
            yield fault("cache.fails", where=found.where, tokens=tokens, past=past, said=found.said)
        elif past == 0:
            yield fault("cache.switch", where=found.where, moved=found.moved)
        else:
            name = "chunk.leak" if leaks(subject, ask, past, found.end) else "chunk.differs"
            yield fault(name, where=found.where, tokens=tokens, past=past, position=found.position, moved=found.moved)
        return


def leaks(subject: Subject, ask: Ask, begin: int, end: int) -> bool:
    """Whether the last token of a part changes the answer at its first."""
    tokens = torch.cat([ask.tokens[:, : end - 1], subject.others(ask.tokens[:, end - 1 :])], 1)
    a, b = (
        step(subject, one, begin, end, cache_of(subject, ask, begin)).y[:, :1] for one in (ask, ask.but(tokens=tokens))
    )
    return subject.differs(a, b)


@asks("OB507", "cache-window")
def cache_window(subject: Subject) -> Iterator[Fault]:
    """Beyond its window a cache forgets what the whole text's answer does not see either."""
    needs_cache(subject)
    window = declared_window(subject)
    if window is None:
        raise CannotAskError("the module declares no window")
    most = subject.adapter.longest or 2 * LONGEST_WINDOW
    if window > LONGEST_WINDOW or window + 4 > most:
        raise CannotAskError("texts beyond the window of {} tokens are too long to ask", window)
    length = min(2 * window + 3, most)
    ask = subject.ask(length=length)
    prompt = min(window + 2, length - 2)
    for sizes in ((1,) * length, (prompt, *(1,) * length), (2, prompt), (window,)):
        found = in_parts(subject, ask, cuts(sizes, length))
        if found is None:
            continue
        evidence = {"window": window, "past": found.begin, "tokens": found.end - found.begin}
        if found.said:
            yield fault("cache.fails", where=found.where, said=found.said, **evidence)
        elif found.begin < window and found.end <= window:
            raise CannotAskError("within its window the cache is wrong already (OB501)")
        else:
            yield fault("window.cache", where=found.where, position=found.position, moved=found.moved, **evidence)
        return


@asks("OB508", "cache-switch")
def cache_switch(subject: Subject) -> Iterator[Fault]:
    """Asking for a cache changes no answer."""
    needs_cache(subject)
    ask = subject.ask()
    moved = gap(subject.answer(ask, use_cache=True).y, subject.answer(ask).y)
    if moved > subject.floor():
        found = in_parts(subject, ask, [(0, ask.length)])
        yield fault("cache.switch", where=found.where if found else None, moved=moved)
