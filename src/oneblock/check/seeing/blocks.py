"""Stacks of blocks in a module: lists whose elements attend, and what reaches an output when parts are silenced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from oneblock.check.asked import CannotAskError
from oneblock.check.calling.adapter import Ask
from oneblock.check.copies import copied
from oneblock.check.seeing.sites import sites
from oneblock.check.subject import Subject, gap

LISTS = (nn.ModuleList, nn.Sequential)


@dataclass(frozen=True)
class Stack:
    """A list of modules, some of which attend; `elements` are (path, module)."""

    path: str
    elements: tuple[tuple[str, nn.Module], ...]


def inside(path: str, owner: str) -> bool:
    """Whether a path is an owner's or lies in it."""
    return not owner or path == owner or path.startswith(f"{owner}.")


def attending_paths(subject: Subject) -> frozenset[str]:
    """Paths of modules that attend."""
    if "attending" not in subject.memo:
        subject.memo["attending"] = frozenset(site.where.module for site in sites(subject.watched(subject.ask())[1]))
    found: frozenset[str] = subject.memo["attending"]
    return found


def twin_of(subject: Subject) -> nn.Module:
    """A copy of our own that parts may be silenced in, and are given their voice back."""
    if "silenced" not in subject.memo:
        subject.memo["silenced"] = copied(subject.copy())
    found: nn.Module = subject.memo["silenced"]
    return found


def stacks(subject: Subject) -> list[Stack]:
    """Every list that holds attending blocks, outer lists first. CannotAskError: there is none."""
    paths, found = attending_paths(subject), []
    for path, part in twin_of(subject).named_modules():
        if isinstance(part, LISTS) and any(path and inside(one, path) for one in paths):
            held = tuple((f"{path}.{name}" if path else name, child) for name, child in part.named_children())
            held = tuple((one, child) for one, child in held if any(inside(at, one) for at in paths))
            found += [Stack(path, held)] if held else []
    if not found:
        raise CannotAskError("no list of blocks that attend was found")
    return found


@contextmanager
def silenced(part: nn.Module) -> Iterator[None]:
    """All matrices of a module at 0 inside; its vectors (gains, biases) stay."""
    held = [weight for weight in part.parameters() if weight.ndim >= 2]
    was = [weight.detach().clone() for weight in held]
    try:
        with torch.no_grad():
            for weight in held:
                weight.zero_()
        yield
    finally:
        with torch.no_grad():
            for weight, numbers in zip(held, was, strict=True):
                weight.copy_(numbers)


def heard(subject: Subject, which: str) -> bool:
    """Whether the answer still depends on its tokens, or on its source."""
    ask, twin = subject.ask(), twin_of(subject)
    other = ask.but(**{which: subject.others(getattr(ask, which))})
    plain, y = (subject.answer(one, module=twin).y for one in (ask, other))
    return gap(y, plain) > subject.floor()


def stream(held: Any) -> Tensor | None:
    """The first tensor of vectors per token in a module's arguments or answer."""
    if isinstance(held, Tensor):
        return held if held.is_floating_point() and held.ndim >= 2 else None
    values = held.values() if isinstance(held, dict) else held if isinstance(held, tuple | list) else ()
    return next((x for one in values if isinstance(one, Tensor) and (x := stream(one)) is not None), None)


def scaled(held: Any, factor: float) -> Any:
    """Arguments or an answer, the first tensor of vectors multiplied."""
    first = stream(held)
    if first is None:
        return held
    if isinstance(held, Tensor):
        return held * factor
    if isinstance(held, dict):
        changed = {name: one * factor if one is first else one for name, one in held.items()}
        return changed if type(held) is dict else type(held)(**changed)
    changed_items = [one * factor if one is first else one for one in held]
    return type(held)(*changed_items) if hasattr(held, "_fields") else type(held)(changed_items)


def streams(subject: Subject, part: nn.Module, ask: Ask, entering: float = 1.0) -> tuple[Tensor | None, Tensor | None]:
    """(what enters a part, what leaves it) in one run, what enters multiplied."""
    caught: list[Tensor | None] = [None, None]

    def enter(_: nn.Module, args: Any, kwargs: Any) -> Any:
        if stream(args) is not None:
            args = scaled(args, entering)
        else:
            kwargs = scaled(kwargs, entering)
        caught[0] = stream(args) if stream(args) is not None else stream(kwargs)
        return args, kwargs

    def leave(_: nn.Module, __: Any, ___: Any, found: Any) -> None:
        caught[1] = stream(found)

    handles = [
        part.register_forward_pre_hook(enter, with_kwargs=True),
        part.register_forward_hook(leave, with_kwargs=True),
    ]
    try:
        subject.answer(ask, module=twin_of(subject))
    finally:
        for handle in handles:
            handle.remove()
    return caught[0], caught[1]
