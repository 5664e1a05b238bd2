"""Questions about how blocks are joined: what they read is added to what they give, the sum is normed at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.finding import Fault, Where
from oneblock.check.questions.norms import all_norms
from oneblock.check.seeing.blocks import (
    Stack,
    attending_paths,
    heard,
    inside,
    scaled,
    silenced,
    stacks,
    stream,
    streams,
    twin_of,
)
from oneblock.check.subject import Subject, fault, gap

LOUD = 1e3


def outermost(found: list[Stack]) -> list[Stack]:
    """Lists that lie in no other."""
    return [one for one in found if not any(one is not x and one.path.startswith(f"{x.path}.") for x in found)]


def units(subject: Subject) -> list[tuple[str, nn.Module]]:
    """Parts that must let through what they read: blocks of lists, or the module itself where it is one block."""
    try:
        return [pair for one in outermost(stacks(subject)) for pair in one.elements]
    except CannotAskError:
        at, twin = attending_paths(subject), twin_of(subject)
        bare = isinstance(twin, nn.MultiheadAttention) or all(site.where.module in at for site in all_norms(subject))
        if subject.adapter.vocab is not None or bare or not at or "" in at:
            raise
        return [("", twin)]


@asks("OB707", "residual")
def residual(subject: Subject) -> Iterator[Fault]:
    """With all matrices of a block at 0, the tokens must still reach the answer, on the path beside it."""
    if not subject.timed:
        raise CannotAskError("the module answers with no vector per token")
    found = [(path, part) for path, part in units(subject) if silent(subject, part)]
    if found:
        path, part = found[0]
        inner = [pair for one in (stacks(subject) if path else ()) for pair in one.elements if inside(pair[0], path)]
        path, part = [(path, part), *(pair for pair in inner if pair[0] != path and silent(subject, pair[1]))][-1]
        yield fault("residual.missing", where=Where(path), branch=branch(subject, part), count=len(found))


def silent(subject: Subject, part: nn.Module) -> bool:
    """Whether nothing of the tokens (for a block of an encoder: of the source) is left when a part is silenced."""
    which = "source" if subject.kind == "seq2seq" and of_source(subject, part) else "tokens"
    if not any(weight.ndim >= 2 for weight in part.parameters()):
        return False
    key = ("heard", which)
    if key not in subject.memo:
        subject.memo[key] = heard(subject, which)
    if not subject.memo[key]:
        return False
    with silenced(part):
        return not heard(subject, which)


def of_source(subject: Subject, part: nn.Module) -> bool:
    """Whether what a part reads does not depend on the target."""
    ask = subject.ask()
    a, b = (streams(subject, part, one)[0] for one in (ask, ask.but(tokens=subject.others(ask.tokens))))
    return a is not None and b is not None and gap(a, b) <= subject.floor()


def branch(subject: Subject, part: nn.Module) -> str:
    """The part of a block that alone silences everything: the branch without a path beside it."""
    for name, child in part.named_modules():
        if name and not isinstance(child, nn.ModuleList) and silent(subject, child):
            return name
    return "?"


@asks("OB708", "final-norm")
def final_norm(subject: Subject) -> Iterator[Fault]:
    """A stack that norms only inside its branches must norm its sum before anything reads it."""
    for stack in outermost(stacks(subject)):
        last = stack.elements[-1]
        if len(stack.elements) > 1 and keeps_sum(subject, last[1]) and loud(subject, last[1]):
            yield fault("norm.final", "warning", Where(stack.path), last=last[0], count=len(stack.elements))


def keeps_sum(subject: Subject, part: nn.Module) -> bool:
    """Whether a silenced block hands on what it reads as it is, up to a constant: it norms inside its branches only."""
    ask = subject.ask()
    with silenced(part):
        runs = [streams(subject, part, ask, factor) for factor in (1.0, 2.0, 3.0)]
    if any(x is None or y is None or x.shape != y.shape for x, y in runs):
        return False
    (_, one), (_, two), (_, three) = runs
    if one is None or two is None or three is None or runs[0][0] is None:
        return False
    return gap(two - one, runs[0][0]) < 1e-6 and gap(three - two, two - one) < 1e-6


def loud(subject: Subject, part: nn.Module) -> bool:
    """Whether the answer grows with what the last block gives: nothing norms it."""
    ask, twin = subject.ask(), twin_of(subject)
    answers = []
    for factor in (LOUD, 2 * LOUD):

        def leave(_: nn.Module, __: Any, found: Any, factor: float = factor) -> Any:
            return scaled(found, factor) if stream(found) is not None else None

        handle = part.register_forward_hook(leave)
        try:
            answers.append(subject.answer(ask, module=twin).y)
        finally:
            handle.remove()
    return gap(answers[1], answers[0]) > 0.1
