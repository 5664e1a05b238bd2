"""Questions about ways to the same answer: one text or a batch, train or eval, compiled or not, copied or viewed."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.calling.adapter import Ask
from oneblock.check.copies import copied
from oneblock.check.finding import Fault, Where
from oneblock.check.questions.leaks import batch_mates
from oneblock.check.questions.state import within
from oneblock.check.seeing.draws import drawn, operations_of, undropped
from oneblock.check.seeing.locate import first, place
from oneblock.check.seeing.watch import COPIES, VIEWS, Operation, watching
from oneblock.check.subject import Subject, fault, gap
from oneblock.hint import first_line

MOST = 160
"""Operations of the largest module that is compiled here: more would take seconds."""


@asks("OB406", "batch-of-one")
def batch_of_one(subject: Subject) -> Iterator[Fault]:
    """A text alone must get the answer that it gets in a batch."""
    ask = subject.ask(batch=3)
    plain = subject.answer(ask).y
    for row in (0, 2):
        alone = ask.rows(slice(row, row + 1))
        try:
            y = subject.answer(alone).y
        except Exception as error:
            yield fault("batch.one.fails", where=place(None), said=first_line(error))
            return
        moved = gap(y, plain[row : row + 1]) if y.shape[1:] == plain.shape[1:] else float("inf")
        if moved > subject.floor():
            if list(batch_mates(subject)):
                raise CannotAskError("texts of one batch change each other: see OB102")
            yield fault("batch.one", where=place(alone_place(subject, ask, row)), moved=moved)
            return


def alone_place(subject: Subject, ask: Ask, row: int) -> Operation | None:
    """The first operation whose result for one text alone is not what the batch has for it."""
    batched, alone = (subject.watched(one)[1] for one in (ask, ask.rows(slice(row, row + 1))))
    kept = ([one for one in run if one.name not in VIEWS | COPIES] for run in (batched, alone))
    for one, other in zip(*kept, strict=False):
        if one.name != other.name or one.path != other.path:
            return None
        if agrees(one.result, other.result, row, subject.floor()) is not False:
            continue
        pairs = zip(one.operands, other.operands, strict=False)
        if all(agrees(x, y, row, subject.floor()) is not False for x, y in pairs):
            return other
    return None


def agrees(batched: Tensor, alone: Tensor, row: int, tolerance: float) -> bool | None:
    """Whether a row of three is what one text alone has; None: the axis of the batch cannot be told."""
    if batched.shape == alone.shape:
        return gap(batched, alone) <= tolerance
    axes = [n for n, (x, y) in enumerate(zip(batched.shape, alone.shape, strict=False)) if x == 3 * y]
    if len(axes) != 1 or batched.ndim != alone.ndim:
        return None
    part = batched.unflatten(axes[0], (3, -1)).select(axes[0], row)
    return gap(part, alone) <= tolerance if part.shape == alone.shape else None


@asks("OB407", "train-eval")
def train_like_eval(subject: Subject) -> Iterator[Fault]:
    """With every dropout at 0, train mode and eval mode must give one answer, fast paths included."""
    ask, twin = subject.ask(), undropped(subject)
    runs = []
    for train in (False, True):
        with watching(twin) as watch:
            subject.answer(ask, module=twin, train=train)
        runs.append(watch.operations)
    if drawn(runs[1]):
        raise CannotAskError("what is drawn in train mode cannot be switched off")
    if any("batch_norm" in one.name for one in runs[1]):
        raise CannotAskError("norms over the batch differ between the modes: see OB702")
    plain = subject.answer(ask, module=twin).y
    y = subject.answer(ask, module=twin, train=True).y
    moved = gap(y, plain) if y.shape == plain.shape else float("inf")
    if moved > subject.floor():
        where = place(first(*runs, within(subject.floor())))
        yield fault("paths.train", where=where, moved=moved)


@asks("OB408", "compiled")
def compiled(subject: Subject) -> Iterator[Fault]:
    """Traced by torch.compile, nothing generated, the module must give the answer that it gives without."""
    ask = subject.ask()
    if "torch._dynamo" not in sys.modules and subject.left() < 10:
        raise CannotAskError("too little time to load torch.compile")
    twin = copied(subject.copy())
    count = len(operations_of(subject, twin, ask, train=False))
    if count > MOST:
        raise CannotAskError("{} operations would take seconds to compile", count)
    plain = subject.answer(ask, module=twin).y
    with compiling():
        try:
            y = subject.answer(ask, module=torch.compile(twin, backend="eager")).y
        except Exception as error:
            raise CannotAskError("torch.compile fails: {}", first_line(error)) from error
    moved = gap(y, plain) if y.shape == plain.shape else float("inf")
    if moved > subject.floor():
        yield fault("paths.compiled", where=compiled_part(subject, twin), moved=moved)


def compiled_part(subject: Subject, twin: nn.Module) -> Where:
    """The smallest part whose own tracing changes the answer: each part that holds weights, the deepest last."""
    plain = subject.answer(subject.ask(), module=twin).y
    found = ""
    for path, part in twin.named_modules():
        deeper = path.startswith(f"{found}.") if found else bool(path)
        if not deeper or not any(True for _ in part.parameters()) or isinstance(part, nn.ModuleList | nn.ModuleDict):
            continue
        was = part.forward
        with compiling():
            part.forward = torch.compile(was, backend="eager")  # type: ignore[method-assign]
            try:
                if gap(subject.answer(subject.ask(), module=twin).y, plain) > subject.floor():
                    found = path
            except Exception:
                continue
            finally:
                part.forward = was  # type: ignore[method-assign]
        if path.count(".") > 3:
            break
    return Where(found)


@contextmanager
def compiling() -> Iterator[None]:
    """torch.compile without warnings, and what it remembered forgotten afterwards."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            torch.compiler.reset()


@asks("OB409", "views")
def views(subject: Subject) -> Iterator[Fault]:
    """Inputs whose numbers do not lie in order in memory must get the same answer."""
    ask = subject.ask()
    if "real" in subject.adapter.takes:
        ask = ask.but(real=torch.ones(ask.tokens.shape[:2], dtype=torch.bool))
    plain = subject.answer(ask).y
    other = ask.but(**{name: strided(x) for name, x in vars(ask).items() if x is not None})
    try:
        y = subject.answer(other).y
    except Exception as error:
        yield fault("views.fail", "warning", said=first_line(error))
        return
    moved = gap(y, plain)
    if moved > subject.floor():
        runs = [subject.watched(one)[1] for one in (ask, other)]
        yield fault("views.differ", where=place(first(*runs, within(subject.floor()))), moved=moved)


def strided(x: Tensor) -> Tensor:
    """The same numbers, length before batch in memory."""
    return x.transpose(0, 1).contiguous().transpose(0, 1)
