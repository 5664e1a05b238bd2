"""Questions about what a token may know: nothing later than itself, nothing of other texts of the batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.calling.adapter import Ask
from oneblock.check.finding import Fault, Where
from oneblock.check.seeing.backends import back_ends
from oneblock.check.seeing.draws import drawn
from oneblock.check.seeing.gradients import gradient_place, graph
from oneblock.check.seeing.locate import before, first, place, within_row
from oneblock.check.subject import Subject, fault, gap

LONGER = (19, 23, 17, 14, 12)
"""Lengths of the longer text: what only holds in short ones is found out."""


@dataclass(frozen=True)
class Leak:
    """Tokens from `position` on change what is answered at `seen`, before them."""

    ask: Ask
    position: int
    seen: int
    moved: float


def changed_after(subject: Subject, ask: Ask, position: int) -> Ask:
    """The same question with other tokens from `position` on."""
    later = subject.others(ask.tokens[:, position:])
    return ask.but(tokens=torch.cat([ask.tokens[:, :position], later], dim=1))


@asks("OB101", "causal")
def causal(subject: Subject) -> Iterator[Fault]:
    """Changing tokens from each position on must change nothing before it: in eval and train, by every back end."""
    needs_causal(subject)
    for mode, within, ask, train, cache in modes(subject):
        try:
            with within:
                leak = (one_by_one if train else at_once)(subject, ask, train, cache)
                found = None if leak is None else told(subject, leak, mode, train, cache)
        except CannotAskError:
            raise
        except Exception:
            if "(" not in mode:
                raise
            continue  # this module has no such back end
        if found is not None:
            yield found
            return


def needs_causal(subject: Subject) -> None:
    """Skip what may see the future, or says nothing per token."""
    if not subject.causal:
        raise CannotAskError("an encoder may see the future; say --as decoder if it must not")
    if not subject.timed:
        raise CannotAskError("the module answers with no vector per token")


def modes(subject: Subject) -> Iterator[tuple[str, AbstractContextManager[None], Ask, bool, bool]]:
    """(name, context, question, train, with a cache) of every way in which the module is asked."""
    ask = subject.ask()
    yield "eval", nullcontext(), ask, False, False
    longer = longer_than(subject)
    if longer is not None:
        yield "eval", nullcontext(), subject.ask(length=longer), False, False
    yield "train", nullcontext(), ask, True, False
    if "cache" in subject.adapter.takes:
        yield "eval (with a cache)", nullcontext(), ask, False, True
    for name, switch in back_ends(subject):
        yield f"eval ({name})", switch(), ask, False, False
        yield f"train ({name})", switch(), ask, True, False


def longer_than(subject: Subject) -> int | None:
    """A longer text that the module allows, its length no other size in the model."""
    most = subject.adapter.longest or max(LONGER)
    return next((n for n in LONGER if n <= most and n not in subject.sizes and n > subject.length), None)


def at_once(subject: Subject, ask: Ask, train: bool = False, cache: bool = False) -> Leak | None:
    """All positions in one batch: row p has other tokens from p on, row 0 none."""
    one = ask.rows(slice(0, 1))
    length = ask.length
    rows = [one, *(changed_after(subject, one, p) for p in range(1, length))]
    source = None if one.source is None else one.source.expand(length, *one.source.shape[1:]).contiguous()
    batch = one.but(tokens=torch.cat([row.tokens for row in rows]), source=source)
    y = subject.answer(batch, train=train, use_cache=cache).y
    if any(gap(y[p, :p], y[0, :p]) > subject.floor() for p in range(1, length)):
        return one_by_one(subject, ask, train, cache)
    return None


def one_by_one(subject: Subject, ask: Ask, train: bool, cache: bool = False) -> Leak | None:
    """Each position on its own: the same shapes, so that dropout draws the same numbers."""
    plain = subject.answer(ask, train=train, use_cache=cache).y
    floor = subject.floor()
    for position in range(1, ask.length):
        y = subject.answer(changed_after(subject, ask, position), train=train, use_cache=cache).y
        moved = gap(y[:, :position], plain[:, :position])
        if moved > floor:
            apart = gap_per_position(y, plain)[:position]
            return Leak(
                ask, position, int(apart.argmax() if apart.max() <= floor else (apart > floor).nonzero()[0]), moved
            )
    return None


def told(subject: Subject, leak: Leak, mode: str, train: bool, cache: bool) -> Fault | None:
    """The fault that a leak is, placed; None where dropout drew other numbers, so that nothing can be told."""
    other = changed_after(subject, leak.ask, leak.position)
    same = before(leak.position, leak.ask.length, len(leak.ask.tokens), subject.floor())
    runs = [subject.watched(one, train=train, use_cache=cache)[1] for one in (leak.ask, other)]
    if train and len({tuple(one.result.shape for one in drawn(run)) for run in runs}) > 1:
        return None
    where = place(first(*runs, same))
    return fault("causal.leak", where=where, position=leak.position, seen=leak.seen, moved=leak.moved, mode=mode)


def gap_per_position(a: Tensor, b: Tensor) -> Tensor:
    """The largest difference at every position, relative to the largest number: (length,)."""
    apart = (a - b).abs().flatten(2).amax(dim=(0, 2))
    return apart / b.abs().max().clamp_min(1e-6)


@asks("OB102", "batch")
def batch_mates(subject: Subject) -> Iterator[Fault]:
    """Changing one text of a batch, or what is hidden of it, must change nothing in the others."""
    if limited(subject):
        raise CannotAskError("experts of limited capacity drop tokens by what else is in the batch")
    ask = subject.ask(batch=5)  # no number of heads, nor the 3 of fused projections
    tokens = ask.tokens.clone()
    tokens[1:2] = subject.others(tokens[1:2])
    changes = [("tokens", ask, ask.but(tokens=tokens))]
    if ask.source is not None:
        source = ask.source.clone()
        source[1:2] = subject.others(source[1:2])
        changes.append(("source", ask, ask.but(source=source)))
    for name, x in (("real", ask.tokens), ("source_real", ask.source)):
        if name in subject.adapter.takes and x is not None:
            real = torch.ones(x.shape[:2], dtype=torch.bool)
            hidden = real.clone()
            hidden[1, -2:] = False
            changes.append((name, ask.but(**{name: real}), ask.but(**{name: hidden})))
    for name, one, other in changes:
        plain, y = subject.answer(one).y, subject.answer(other).y
        row = max((0, 2), key=lambda row: gap(y[row], plain[row]))
        moved = gap(y[row], plain[row])
        if moved > subject.floor():
            same = within_row(row, len(tokens), ask.length, subject.floor())
            runs = [subject.watched(one)[1] for one in (one, other)]
            where = place(first(*runs, same))
            yield fault("batch.mask" if "real" in name else "batch.leak", where=where, moved=moved)
            return


def limited(subject: Subject) -> bool:
    """Whether a part or the configuration speaks of a capacity."""
    holders = [subject.config, *subject.module.modules()]
    names = ("capacity_factor", "expert_capacity", "capacity", "eval_capacity_factor")
    return any(isinstance(getattr(one, name, None), int | float) for one in holders for name in names)


@asks("OB106", "causal-gradient")
def causal_gradient(subject: Subject) -> Iterator[Fault]:
    """No answer has a gradient with respect to a later token, not even where its value does not show it."""
    needs_causal(subject)
    ask = subject.ask()
    if at_once(subject, ask) is not None:
        raise CannotAskError("the future leaks by value already (OB101)")
    found = later_gradient(subject, ask)
    if found is not None:
        where, position, seen, share = found
        yield fault("causal.gradient", where=where, position=position, seen=seen, share=share)


def later_gradient(subject: Subject, ask: Ask) -> tuple[Where, int, int, float] | None:
    """(place, later token, earlier answer, share of the largest gradient) of a gradient from the future, if any."""
    from_past, from_future = 0.0, (0.0, 0, 0)
    with graph(subject, ask) as (y, leaves, links):
        draw = torch.Generator().manual_seed(subject.seed)
        mix = torch.randn(y.shape, generator=draw).to(y)
        for seen in range(ask.length):
            grads = torch.autograd.grad((y * mix)[:, seen].sum(), leaves, retain_graph=True, allow_unused=True)
            for grad in (x for x in grads if x is not None):
                size = grad.detach().abs().flatten(2).amax(dim=(0, 2)).nan_to_num(0.0)
                from_past = max(from_past, float(size[: seen + 1].max()))
                if seen + 1 < ask.length and float(size[seen + 1 :].max()) > from_future[0]:
                    from_future = (float(size[seen + 1 :].max()), seen + 1 + int(size[seen + 1 :].argmax()), seen)
        share = from_future[0] / max(from_past, 1e-30)
        if share <= max(subject.floor(), 1e-9):
            return None
        _, position, seen = from_future
        return gradient_place(links, leaves, position, ask.length), position, seen, share
