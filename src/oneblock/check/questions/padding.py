"""Questions about padding: neither how much there is, nor where, nor what stands there may change what is answered.

Shapes: tokens (batch, length) or (batch, length, dim); real (batch, length), True = a real token.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.calling.adapter import Ask
from oneblock.check.finding import Fault, Severity
from oneblock.check.seeing.draws import undropped
from oneblock.check.seeing.locate import place
from oneblock.check.seeing.padding import (
    SIDES,
    content_matters,
    filled,
    first_differing,
    first_row,
    padded_row,
    parted,
    shown,
    two_fillings,
)
from oneblock.check.subject import Subject, fault, gap


@asks("OB201", "padding")
def hidden_content(subject: Subject) -> Iterator[Fault]:
    """What stands at hidden places must not reach the real tokens: on the right, on the left, in between."""
    subject.needs("real")
    if not subject.timed:
        raise CannotAskError("the module answers with no vector per token; see the check of pooling")
    for side in SIDES:
        moved = content_matters(subject, side)
        if moved > subject.floor():
            a, b, real = two_fillings(subject, side)
            one = first_differing(subject, a, b, {len(real): real.nonzero()[:, 0]})
            if one is not None and "convolution" in one.name:
                raise CannotAskError("a convolution reaches over the border of a text; hide its input there")
            bare = subject.answer(a.but(real=None)).y
            unread = bool(gap(subject.answer(a).y, bare) <= subject.floor())
            name = "padding.ignored" if unread else "padding.content"
            severity: Severity = "warning" if subject.kind == "seq2seq" else "error"  # targets are padded on the right
            yield fault(name, severity, place(one), side=side, moved=moved)
            return


@asks("OB202", "padding-amount")
def amount(subject: Subject) -> Iterator[Fault]:
    """A text padded on the right must get the answers that it gets alone, as many, in eval and in train mode."""
    subject.needs("real")
    if not subject.timed:
        raise CannotAskError("the module answers with no vector per token; see the check of pooling")
    padded, alone, real = padded_row(subject, "right")
    y = subject.answer(padded).y
    if y.shape[1] != padded.length:
        yield fault("padding.shrinks", asked=padded.length, got=y.shape[1])
        return
    yield from modes(subject, padded)
    if content_matters(subject, "right") > subject.floor():
        return  # said by the check of what stands there
    moved = gap(y[:, real], subject.answer(alone).y)
    if moved > subject.floor():
        alone = alone.but(real=torch.ones(1, int(real.sum()), dtype=torch.bool))
        yield fault(
            "padding.amount", where=parted(subject, padded, alone, real), moved=moved, hidden=int((~real).sum())
        )


def modes(subject: Subject, padded: Ask) -> Iterator[Fault]:
    """Without dropout, train mode must answer padded texts as eval mode does, if it does so for others."""
    twin = undropped(subject)
    real = padded.real
    assert real is not None
    apart = []
    for ask in (padded.but(real=None), padded):
        y, z = (subject.answer(ask, train=train, module=twin).y for train in (False, True))
        keep = real if ask.real is not None else torch.ones_like(real)
        apart.append(gap(z[keep], y[keep]) if y.shape == z.shape else float("inf"))
    if apart[0] <= subject.floor() < apart[1]:
        yield fault("padding.modes", moved=apart[1])


@asks("OB203", "source-padding")
def hidden_source(subject: Subject) -> Iterator[Fault]:
    """What stands at hidden places of the source must reach nothing, neither in the encoder nor in cross-attention."""
    if subject.kind != "seq2seq":
        raise CannotAskError("the module reads no source")
    subject.needs("source_real")
    ask = source_ask(subject)
    assert ask.source is not None
    for side in ("right", "holes"):
        real = shown(ask.source.shape[1], side)
        both = first_row(real, len(ask.tokens))
        a, b = (ask.but(source=x, source_real=both) for x in (ask.source, filled(subject, ask.source, real, False)))
        y = subject.answer(a).y
        moved = gap(subject.answer(b).y, y)
        if moved > subject.floor():
            kept = {len(real): real.nonzero()[:, 0], ask.length: torch.arange(ask.length)}
            one = first_differing(subject, a, b, kept)
            unread = gap(y, subject.answer(a.but(source_real=None)).y) <= subject.floor()
            yield fault("source.unmasked" if unread else "source.content", where=place(one), moved=moved)
            return
        if side == "right":
            row = a.rows(slice(0, 1)).but(source=filled(subject, ask.source[:1], real))
            alone = row.but(source=ask.source[:1, real], source_real=None)
            moved = gap(subject.answer(row).y, subject.answer(alone).y)
            if moved > subject.floor():
                alone = alone.but(source_real=torch.ones(1, int(real.sum()), dtype=torch.bool))
                yield fault("source.amount", where=parted(subject, row, alone, real), moved=moved)
                return


def source_ask(subject: Subject) -> Ask:
    """A question whose source has a length that no other size in the model has."""
    ask = subject.ask()
    sizes = subject.sizes | subject.numbers | {ask.length}
    most = subject.adapter.longest or 32
    length = next((n for n in (9, 11, 13, 15, 10, 14, 7) if n not in sizes and n <= most), ask.length + 1)
    return ask.but(source=subject.tokens(len(ask.tokens), length, subject.seed + 5, source=True))


@asks("OB205", "padding-mask")
def mask_missing(subject: Subject) -> Iterator[Fault]:
    """What reads batches of texts of different lengths must be told, or see by the pad id, who is padding."""
    if subject.kind == "decoder":
        raise CannotAskError("padding on the right is later than every real token")
    field = "source" if subject.kind == "seq2seq" else "tokens"
    if {"source": "source_real", "tokens": "real"}[field] in subject.adapter.takes:
        return
    ask = subject.ask().rows(slice(0, 1))
    x = getattr(ask, field)
    real = shown(x.shape[1], "right")
    padded, alone = (ask.but(**{field: one}) for one in (filled(subject, x, real), x[:, real]))
    y, z = subject.answer(padded).y, subject.answer(alone).y
    if field == "tokens" and subject.timed:
        y = y[:, real]
    moved = gap(y, z) if y.shape == z.shape else float("inf")
    if moved > subject.floor():
        yield fault("padding.unmasked", "warning", moved=moved)


@asks("OB206", "pooling")
def pooling(subject: Subject) -> Iterator[Fault]:
    """One vector per text: padding must neither be counted nor be what is read."""
    subject.needs("real")
    if subject.timed:
        raise CannotAskError("the module answers with a vector per token")
    right, left = (pooled(subject, side) for side in ("right", "left"))
    if right <= subject.floor():
        return
    padded, alone, real = padded_row(subject, "right")
    where = parted(subject, padded, alone.but(real=torch.ones(1, alone.length, dtype=torch.bool)), real)
    if left <= subject.floor():
        yield fault("pooling.side", "warning", where, moved=right)
    else:
        yield fault("pooling.counts", where=where, moved=right)


def pooled(subject: Subject, side: str) -> float:
    """How far a text's vector moves by padding on this side; whoever reads by the pad id is given it."""
    padded, alone, _ = padded_row(subject, side)
    moved = gap(subject.answer(padded).y, subject.answer(alone).y)
    return moved if subject.adapter.dim is None else max(moved, content_matters(subject, side))
