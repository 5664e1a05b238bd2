"""Questions about order: whether a model knows it, whether it reads the positions it is given, and how far they reach.

Shapes: tokens and positions (batch, length); y (batch, length, features).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.calling.adapter import Ask
from oneblock.check.finding import Fault
from oneblock.check.seeing.monotone import monotone, rows_differ, same_token
from oneblock.check.seeing.padding import content_matters, padded_row, parted
from oneblock.check.seeing.sites import Site, sites
from oneblock.check.subject import Subject, fault, gap
from oneblock.hint import first_line

LONGEST = 1100
"""Tokens in the longest text that is asked for."""


@asks("OB601", "positions")
def positions(subject: Subject) -> Iterator[Fault]:
    """Tokens in another order must be another text."""
    if subject.adapter.vocab is None:
        raise CannotAskError("the module takes vectors: whoever makes them adds the positions")
    if subject.kind == "seq2seq" and subject.adapter.source_vocab:
        ask = subject.ask()
        assert ask.source is not None
        other = ask.but(source=turned(ask.source))
        if gap(subject.answer(other).y, subject.answer(ask).y) <= subject.floor():
            yield fault("positions.source", "warning")
    if subject.causal:
        yield from known_to_decoder(subject)
        return
    ask = subject.ask()
    y, z = subject.answer(ask).y, subject.answer(ask.but(tokens=turned(ask.tokens))).y
    z = turned(z) if subject.timed else z
    if gap(z, y) <= subject.floor():
        yield fault("positions.ignored", "warning")


def turned(x: Tensor) -> Tensor:
    """The order reversed."""
    return x.flip(1)


def known_to_decoder(subject: Subject) -> Iterator[Fault]:
    """A causal mask tells deeper layers the order; positions make equal tokens differ by where they stand."""
    _, _, own = monotone(subject)
    if not own:
        raise CannotAskError("no attention over the text was seen")
    if any(tells(site) > subject.floor() for site in own):
        return
    ask = subject.ask(1)
    other = ask.but(tokens=torch.cat([turned(ask.tokens[:, :-1]), ask.tokens[:, -1:]], 1))
    firsts = []
    for one in (ask, other):
        seen = subject.watched(one)[1]
        site = next((s for s in sites(seen) if s.queries == s.keys == ask.length), None)
        if site is None or site.out is None:
            raise CannotAskError("no attention over the text was seen")
        firsts.append(last_row(site.out.result, ask.length))
    if firsts[0] is None or firsts[1] is None or gap(firsts[1], firsts[0]) <= subject.floor():
        yield fault("positions.none", "note" if subject.kind == "decoder" else "warning")


def last_row(x: Tensor, length: int) -> Tensor | None:
    """What stands at the last place of a text."""
    axis = next((n for n in range(x.ndim - 1, -1, -1) if x.shape[n] == length), None)
    return None if axis is None else x.select(axis, length - 1)


def tells(site: Site) -> float:
    """How far queries, keys or what is added to the scores differ from place to place."""
    found = [rows_differ(site.q), rows_differ(site.k)]
    added = site.mask if site.fused else site.masked
    if added is not None and added.is_floating_point():
        x = added.double()
        if not site.fused and site.product is not None:
            x = x - site.product.double() * (site.factor or 1.0) if site.factor else torch.zeros_like(x)
        seen = x[x > -1e4]
        found.append(float(seen.max() - seen.min()) if seen.numel() else 0.0)
    return max(found)


@asks("OB602", "position-ids")
def given_positions(subject: Subject) -> Iterator[Fault]:
    """Positions that a module takes must change what it answers."""
    subject.needs("positions")
    ask = subject.ask()
    plain = torch.arange(ask.length).expand(len(ask.tokens), -1)
    turns = torch.cat([plain[:, 1::2], plain[:, ::2]], 1)
    y, z = (subject.answer(ask.but(positions=one)).y for one in (plain, turns))
    if gap(z, y) <= subject.floor():
        yield fault("positions.unread")


@asks("OB603", "left-padding")
def left_padding(subject: Subject) -> Iterator[Fault]:
    """A text padded on the left must get the answers that it gets alone: its positions begin at its first token."""
    subject.needs("real")
    if subject.kind != "decoder":
        raise CannotAskError("only decoders are padded on the left")
    if not subject.timed:
        raise CannotAskError("the module answers with no vector per token")
    if content_matters(subject, "left") > subject.floor():
        raise CannotAskError("what stands at hidden places matters already")
    padded, alone, real = padded_row(subject, "left")
    rounding = max(subject.floor(), 1e-6)  # tables of angles are seldom kept in more digits
    y = subject.answer(alone).y
    moved = gap(subject.answer(padded).y[:, real], y)
    if moved <= rounding:
        return
    where = parted(subject, padded, alone.but(real=torch.ones(1, int(real.sum()), dtype=torch.bool)), real)
    if "positions" in subject.adapter.takes:
        given = padded.but(positions=(real.long().cumsum(0) - 1).clamp_min(0)[None])
        if gap(subject.answer(given).y[:, real], y) <= rounding:
            yield fault("positions.left.caller", "warning", where, moved=moved)
            return
    yield fault("positions.left", where=where, moved=moved, hidden=int((~real).sum()))


@asks("OB607", "longest")
def longest(subject: Subject) -> Iterator[Fault]:
    """The longest text that the module says it knows must be answered, and its last places must differ."""
    length = subject.adapter.longest
    if length is None or not has_table(subject.module, length):
        raise CannotAskError("no table of positions bounds the length of a text")
    if length > LONGEST:
        raise CannotAskError("a text of {} tokens would take too long here", length)
    ask = same_token(subject, length).but(source=subject.ask(1).source)
    try:
        y = subject.answer(ask, torch.float32).y
    except (IndexError, RuntimeError) as error:
        if offset_of_padding(subject.module, length):
            return  # the table begins after the padding's row, as its writers meant it
        yield fault("positions.short", length=length, said=first_line(error))
        return
    if not subject.timed or y.shape[1] != length:
        return
    yield from twins(subject, ask)


def twins(subject: Subject, ask: Ask) -> Iterator[Fault]:
    """Places of the longest text that one token cannot tell apart, though it tells others apart."""
    seen = subject.watched(ask, torch.float32)[1]
    site = next((s for s in sites(seen) if s.queries == s.keys == ask.length), None)
    if site is None or rows_differ(site.q) <= 1e-4:
        return
    q = site.q.transpose(-2, 0).flatten(1)
    near = (q[1:] - q[:-1]).abs().amax(1) <= 1e-7 * float(q.abs().max())
    if bool(near.any()):
        at = int(near.nonzero()[0])
        yield fault("positions.repeated", position=at, other=at + 1, length=ask.length)


def has_table(module: nn.Module, length: int) -> bool:
    """Whether some table has about as many rows as the longest text has tokens."""
    state = [*module.parameters(), *module.buffers()]
    return any(abs(size - length) <= 3 for x in state if x.ndim > 1 for size in x.shape[:-1])


def offset_of_padding(module: nn.Module, length: int) -> bool:
    """Whether the table of positions has a row for padding: then its places begin after it."""
    tables = [part for part in module.modules() if isinstance(part, nn.Embedding)]
    return any(abs(one.num_embeddings - length) <= 3 and one.padding_idx is not None for one in tables)
