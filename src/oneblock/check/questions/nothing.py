"""Questions about rows that see nothing: a text of nothing but padding, or a padded place before the first real token.

Shapes: y (batch, length, features) or (batch, features); real (batch, length), True = a real token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.calling.adapter import Ask
from oneblock.check.finding import Fault, Where
from oneblock.check.seeing.padding import filled, first_row, shown
from oneblock.check.seeing.watch import Operation
from oneblock.check.subject import Subject, fault


@asks("OB204", "nothing-visible")
def nothing_visible(subject: Subject) -> Iterator[Fault]:
    """A query with no key it may see must stay finite: it must not spoil other tokens, other texts, or gradients."""
    cases = list(empty(subject))
    if not cases:
        raise CannotAskError("the module takes no padding mask")
    worst: dict[str, Fault] = {}
    for said, ask, kept in cases:
        found = spoiled(subject, said, ask, kept)
        if found:
            worst.setdefault(found.name, found)
    for name in ("nothing.spreads", "nothing.gradient", "nothing.nan"):
        if name in worst:
            yield worst[name]
            return


def empty(subject: Subject) -> Iterator[tuple[str, Ask, Tensor]]:
    """(what sees nothing, the question, (batch, length) places that must not suffer)."""
    ask = subject.ask()
    batch, length = len(ask.tokens), ask.length
    other = torch.ones(batch, length, dtype=torch.bool)
    other[0] = False
    if "real" in subject.adapter.takes:
        real = shown(length, "left")
        both = first_row(real, batch)
        if subject.causal:
            yield "padding before the text", ask.but(tokens=filled(subject, ask.tokens, real), real=both), both
        if subject.kind == "encoder":
            real = torch.zeros(length, dtype=torch.bool)
            yield "a text of padding", ask.but(tokens=filled(subject, ask.tokens, real), real=other), other
    if subject.kind == "seq2seq" and "source_real" in subject.adapter.takes and ask.source is not None:
        real = torch.zeros(ask.source.shape[1], dtype=torch.bool)
        source = filled(subject, ask.source, real)
        yield "a source of padding", ask.but(source=source, source_real=first_row(real, batch)), other


def spoiled(subject: Subject, said: str, ask: Ask, kept: Tensor) -> Fault | None:
    """The worst that a row with nothing to see does: to others, to gradients, or to itself alone."""
    twin = subject.copy()
    plain = subject.answer(ask).y
    y = subject.answer(ask, grad=True).y
    if not subject.timed or y.shape[1] != ask.length:
        kept = kept.any(dim=1)
    wrong = [not bool(one.isfinite().all()) for one in (plain, y)]
    hurt = [not bool(one[kept].isfinite().all()) for one in (plain, y)]
    weights = [p for p in twin.parameters() if p.requires_grad]
    bad = False
    if not hurt[1] and weights and y.requires_grad:
        found = torch.autograd.grad(y[kept].square().sum(), weights, allow_unused=True)
        bad = not all(bool(one.isfinite().all()) for one in found if one is not None)
    if not (bad or any(wrong)):
        return None
    where = first_bad(subject.watched(ask, grad=True)[1])
    if any(hurt):
        return fault("nothing.spreads", where=where, what=said)
    if bad:
        return fault("nothing.gradient", where=where, what=said)
    return fault("nothing.nan", "warning", where, what=said)


def first_bad(operations: Sequence[Operation]) -> Where:
    """The first operation that makes nan from numbers that have none."""
    for one in operations:
        if bool(one.result.isnan().any()) and not any(bool(x.isnan().any()) for x in one.operands):
            return one.where
    return Where()
