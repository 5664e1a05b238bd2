"""Questions about borders that a module declares: a window on what a token sees, and documents that share a row."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.calling.adapter import Ask
from oneblock.check.finding import Fault
from oneblock.check.seeing.attended import weights_of
from oneblock.check.seeing.cached import LONGEST_WINDOW, WINDOWS, declared_window
from oneblock.check.seeing.locate import first, place
from oneblock.check.seeing.sites import Site, sites
from oneblock.check.subject import Subject, fault, gap
from oneblock.hint import first_line

SEEN = 1e-9
"""A weight above this lets something through."""


@asks("OB103", "window")
def window(subject: Subject) -> Iterator[Fault]:
    """No token of a layer with a window sees further back than it says."""
    declared = declared_window(subject)
    if declared is None:
        raise CannotAskError("the module declares no window")
    most = subject.adapter.longest or 2 * LONGEST_WINDOW
    if declared > LONGEST_WINDOW or declared + 2 > most:
        raise CannotAskError("texts beyond the window of {} tokens are too long to ask", declared)
    ask = subject.ask(length=min(2 * declared + 3, most))
    own = [site for site in sites(subject.watched(ask)[1]) if site.queries == site.keys == ask.length]
    if not own:
        raise CannotAskError("no attention within the text was seen")
    reach = [furthest(site, len(ask.tokens)) for site in own]
    for site, far, limit in zip(own, reach, limits(subject, own, reach), strict=True):
        if limit is not None and far > limit:
            yield fault("window.leak", where=site.where, window=limit, reach=far)
            return


def furthest(site: Site, batch: int) -> int:
    """How many tokens away the furthest key is that any query sees."""
    seen = (weights_of(site, batch).abs() > SEEN).flatten(0, 1).any(0).nonzero()
    return int((seen[:, 0] - seen[:, 1]).abs().max()) if len(seen) else 0


def limits(subject: Subject, own: list[Site], reach: list[int]) -> list[int | None]:
    """The window that each place declares: its own part, the list of layers, or, where none does, the configuration."""
    parts = dict(subject.module.named_modules())
    by_part = [of_part(parts, site.where.module) for site in own]
    if any(one is not None for one in by_part):
        return by_part
    config = subject.config
    said = next((x for name in WINDOWS if type(x := getattr(config, name, None)) is int and x > 0), None)
    kinds = getattr(config, "layer_types", None)
    if said is None or getattr(config, "use_sliding_window", True) is False:
        return [None] * len(own)
    if isinstance(kinds, list | tuple) and len(kinds) == len(own):
        return [said if "sliding" in str(kind) or "local" in str(kind) else None for kind in kinds]
    return [said if min(reach) > said else None] * len(own)


def of_part(parts: dict[str, torch.nn.Module], path: str) -> int | None:
    """The window of the innermost part around a path that has one; a part without (None, 0) sees everything."""
    while True:
        part = parts.get(path)
        for name in WINDOWS:
            if part is not None and hasattr(part, name):
                value = getattr(part, name)
                if type(value) is int and value > 0:
                    return value
                return None
        if not path:
            return None
        path = path.rpartition(".")[0]


@asks("OB104", "documents")
def documents(subject: Subject) -> Iterator[Fault]:
    """Documents that share a row know nothing of each other."""
    ask = subject.ask()
    length = ask.length
    half = length // 2
    numbers = (torch.arange(length) >= half).long().expand(len(ask.tokens), length).contiguous()
    restarted = torch.cat([torch.arange(half), torch.arange(length - half)]).expand_as(numbers).contiguous()
    takes = subject.adapter.takes
    if "documents" in takes:
        placed = ask.but(documents=numbers)
        if "positions" in takes:
            placed = placed.but(positions=restarted)
    elif "positions" in takes:
        placed = ask.but(positions=restarted)
    else:
        raise CannotAskError("the module takes neither documents nor positions")
    try:
        own = [site for site in sites(subject.watched(placed)[1]) if site.queries == site.keys == length]
    except (RuntimeError, ValueError) as error:
        raise CannotAskError("documents are given in another way: {}", first_line(error)) from error
    crossing = [crosses(site, numbers) for site in own]
    if "documents" not in takes and (not own or all(crossing)):
        raise CannotAskError("positions that begin again do not separate documents in this module")
    for site, crossed in zip(own, crossing, strict=True):
        if crossed:
            yield fault("document.leak", where=site.where, moved=crossed)
            return
    yield from by_value(subject, placed, half)


def crosses(site: Site, numbers: Tensor) -> float:
    """The largest weight that a query gives to a key of another document, 0.0 if it is nothing."""
    apart = (numbers[0][:, None] != numbers[0][None, :])[None, None]
    largest = float((weights_of(site, len(numbers)).abs() * apart).max())
    return largest if largest > SEEN else 0.0


def by_value(subject: Subject, ask: Ask, half: int) -> Iterator[Fault]:
    """Other tokens in one document change nothing in the other."""
    plain = subject.answer(ask).y
    if not subject.timed:
        return
    for changed, kept in ((slice(None, half), slice(half, None)), (slice(half, None), slice(None, half))):
        tokens = ask.tokens.clone()
        tokens[:, changed] = subject.others(tokens[:, changed])
        other = ask.but(tokens=tokens)
        moved = gap(subject.answer(other).y[:, kept], plain[:, kept])
        if moved > subject.floor():

            def same(x: Tensor, y: Tensor, kept: slice = kept) -> bool | None:
                axes = [axis for axis in range(x.ndim) if x.shape[axis] == ask.length]
                for axis in axes:
                    at = (slice(None),) * axis + (kept,)
                    x, y = x[at], y[at]
                return gap(x, y) <= subject.floor() if axes else None

            runs = [subject.watched(one)[1] for one in (ask, other)]
            yield fault("document.leak", where=place(first(*runs, same)), moved=moved)
            return
