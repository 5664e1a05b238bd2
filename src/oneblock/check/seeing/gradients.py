"""Which earlier answers have a gradient with respect to which later tokens, and the module that lets it through.

Shapes: y (batch, length, features), leaves (batch, length, dim).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten

from oneblock.check.asked import CannotAskError
from oneblock.check.calling.adapter import Ask
from oneblock.check.finding import Where
from oneblock.check.seeing.modules import Run, where
from oneblock.check.subject import Subject


@dataclass
class Link:
    """One call of one module, with what went in and came out still joined to the graph."""

    run: Run
    inputs: list[Tensor]
    outputs: list[Tensor]


@contextmanager
def graph(subject: Subject, ask: Ask) -> Iterator[tuple[Tensor, list[Tensor], list[Link]]]:
    """(the answer, the vectors of the tokens, every module's call), joined by a graph; skips where there is none."""
    twin, leaves, links = subject.copy(), [], []
    handles = []

    def cut(part: nn.Module, args: Any, found: Tensor) -> Tensor:
        del part
        if not (args and isinstance(args[0], Tensor) and args[0].shape == ask.tokens.shape):
            return found
        if not torch.equal(args[0], ask.tokens):
            return found
        leaves.append(found.detach().clone().requires_grad_())
        return leaves[-1]

    def note(path: str, part: nn.Module, args: Any, kwargs: Any, found: Any) -> None:
        given = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor) and x.requires_grad]
        made = [x for x in tree_flatten(found)[0] if isinstance(x, Tensor) and x.requires_grad]
        links.append(Link(Run(path, part, {}), given, made))

    if ask.tokens.is_floating_point():
        ask = ask.but(tokens=ask.tokens.double().requires_grad_())
        leaves.append(ask.tokens)
    for path, part in twin.named_modules():
        if isinstance(part, nn.Embedding) and not ask.tokens.is_floating_point():
            handles.append(part.register_forward_hook(cut))
        noting = lambda one, args, kwargs, found, path=path: note(path, one, args, kwargs, found)  # noqa: E731
        handles.append(part.register_forward_hook(noting, with_kwargs=True))
    try:
        y = subject.answer(ask, grad=True).y
        if not leaves or not y.requires_grad:
            raise CannotAskError("no gradient leads from an answer to its tokens")
        yield y, leaves, links
    finally:
        for handle in handles:
            handle.remove()


def gradient_place(links: Sequence[Link], leaves: Sequence[Tensor], position: int, length: int) -> Where:
    """The first module that takes nothing of `position` and later at earlier positions, and gives something of it."""
    for link in links:
        if any(later(x, leaves, position, length) for x in link.outputs) and not any(
            later(x, leaves, position, length) for x in link.inputs
        ):
            return where(link.run)
    return Where()


def later(x: Tensor, leaves: Sequence[Tensor], position: int, length: int) -> bool:
    """Whether a tensor has, at positions before `position`, a gradient with respect to `position` or later."""
    axes = [axis for axis in range(x.ndim) if x.shape[axis] == length]
    if not axes or not x.requires_grad:
        return False
    for axis in axes:
        x = x.narrow(axis, 0, position)
    mix = torch.randn(x.shape, generator=torch.Generator().manual_seed(0)).to(x)
    grads = torch.autograd.grad((x * mix).sum(), list(leaves), retain_graph=True, allow_unused=True)
    return any(x is not None and float(x[:, position:].abs().nan_to_num(0.0).max()) > 0 for x in grads)
