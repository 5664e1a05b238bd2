"""What went into every module and what came out, in two runs, and the first module whose answer changed of itself.

A run over parts of a text is compared with a run over all of it: axes as long as the text are cut to the part.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import keystr, tree_flatten_with_path

from oneblock.check.finding import Where
from oneblock.check.seeing.watch import TORCH
from oneblock.check.subject import gap

Named = Mapping[str, Tensor]


@dataclass
class Run:
    """One call of one module."""

    path: str
    module: nn.Module
    inputs: Named
    outputs: Named = field(default_factory=dict)


@dataclass
class Runs:
    """All calls in the order they ended; `inside` are those that have not ended: where an error came from."""

    ended: list[Run] = field(default_factory=list)
    inside: list[Run] = field(default_factory=list)

    @property
    def where(self) -> Where:
        """The innermost module that has not ended."""
        return where(self.inside[-1]) if self.inside else Where()


@contextmanager
def noted(module: nn.Module) -> Iterator[Runs]:
    """Note inputs and outputs of every part inside the `with`. The module must be one of ours to hook: a copy."""
    runs, handles = Runs(), []

    def begin(part: nn.Module, args: Any, kwargs: Any, path: str) -> None:
        signature = inspect.signature(part.forward).parameters
        names = dict(zip(signature, args, strict=False)) if len(args) <= len(signature) else {"": args}
        runs.inside.append(Run(path, part, tensors({**names, **kwargs})))

    def end(found: Any) -> None:
        run = runs.inside.pop()
        run.outputs = tensors(found)
        runs.ended.append(run)

    for path, part in module.named_modules():
        before = lambda one, args, kwargs, path=path: begin(one, args, kwargs, path)  # noqa: E731
        handles.append(part.register_forward_pre_hook(before, with_kwargs=True))
        handles.append(part.register_forward_hook(lambda one, args, found: end(found)))  # noqa: ARG005
    try:
        yield runs
    finally:
        for handle in handles:
            handle.remove()


def tensors(held: Any) -> dict[str, Tensor]:
    """Every tensor in a nest, by its place."""
    leaves = tree_flatten_with_path(held)[0]
    return {keystr(path): x.detach().clone() for path, x in leaves if isinstance(x, Tensor)}


def where(run: Run) -> Where:
    """A module's place: its path, and the line where its class begins to say what it does."""
    code = getattr(type(run.module).forward, "__code__", None)
    if code is None or code.co_filename.startswith(TORCH):
        return Where(run.path)
    return Where(run.path, code.co_filename, code.co_firstlineno)


def turned(whole: Sequence[Run], parts: Sequence[Run], length: int, begin: int, end: int, tolerance: float) -> Where:
    """The first module that took the same and gave another thing for the tokens `begin` to `end`."""
    counted: dict[str, int] = {}
    numbered: dict[tuple[str, int], Run] = {}
    for run in whole:
        numbered[run.path, counted.setdefault(run.path, 0)] = run
        counted[run.path] += 1
    counted = {}
    for run in parts:
        number = counted.get(run.path, 0)
        counted[run.path] = number + 1
        other = numbered.get((run.path, number))
        if other is None:
            continue
        span = (length, begin, end, tolerance)
        missing = set(other.inputs) - set(run.inputs)  # a mask, or positions, that got lost further up
        if missing or agree(other.inputs, run.inputs, *span) is False:
            continue
        if agree(other.outputs, run.outputs, *span) is False:
            return where(run)
    return Where()


def agree(whole: Named, part: Named, length: int, begin: int, end: int, tolerance: float) -> bool | None:
    """Whether all tensors agree that can be compared; None where none can."""
    said = [same(whole[name], x, length, begin, end, tolerance) for name, x in part.items() if name in whole]
    known = [one for one in said if one is not None]
    return all(known) if known else None


def same(whole: Tensor, part: Tensor, length: int, begin: int, end: int, tolerance: float) -> bool | None:
    """Whether a tensor of the part is what the whole has there; None where shapes do not tell."""
    if whole.ndim != part.ndim:
        return None
    for axis in range(whole.ndim):
        size = part.shape[axis]
        if whole.shape[axis] == size or (whole.shape[axis] != length and 1 in (size, whole.shape[axis])):
            continue
        if whole.shape[axis] != length or size not in (end - begin, end):
            return None
        first = begin if size == end - begin else 0
        whole = whole.narrow(axis, first, size)
    return gap(part, whole) <= tolerance
