"""Questions about weights that nothing teaches: never used, cut off from the answer, or stuck at zero."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.copies import copied
from oneblock.check.finding import Fault, Where
from oneblock.check.subject import Subject, fault, gap

STEPS = 3
MOST = 3
"""Places that are named."""


def gradients(subject: Subject, twin: nn.Module, seed: int = 0) -> dict[str, Tensor | None]:
    """The gradient of every weight of a copy that learns, of a random sum over everything that the module answers."""
    learning = {name: x for name, x in twin.named_parameters() if x.requires_grad}
    if not learning:
        raise CannotAskError("no weight of the module learns")
    ask = subject.ask(batch=6, seed=seed)
    if "labels" in subject.adapter.takes:
        ask = ask.but(labels=ask.tokens)
    answer = subject.answer(ask, module=twin, grad=True)
    draw = torch.Generator().manual_seed(seed)
    total: Tensor | None = None
    for x in tensors([answer.y, answer.loss, answer.raw]):
        if x.requires_grad:
            part = (x * torch.randn(x.shape, generator=draw).to(x)).sum()
            total = part if total is None else total + part
    if total is None:
        raise CannotAskError("the answer has no gradient")
    found = torch.autograd.grad(total, list(learning.values()), allow_unused=True)
    return dict(zip(learning, found, strict=True))


def tensors(held: Any, depth: int = 0) -> Iterator[Tensor]:
    """Every tensor of numbers in an answer."""
    if isinstance(held, Tensor):
        if held.is_floating_point():
            yield held
    elif depth < 5:
        values: Iterable[Any] = ()
        if isinstance(held, Mapping):
            values = held.values()
        elif isinstance(held, tuple | list):
            values = held
        elif is_dataclass(held) and not isinstance(held, type):
            values = [getattr(held, one.name) for one in fields(held)]
        for value in values:
            yield from tensors(value, depth + 1)


def shaken_gradients(subject: Subject) -> dict[str, Tensor | None]:
    """Gradients with noise on all weights, so that what starts at zero lets through: those of several texts."""
    if "gradients" not in subject.memo:
        twin = copied(subject.copy())
        found = gradients(subject, twin)
        for name, x in gradients(subject, twin, seed=1).items():
            if not moved(found[name]):
                found[name] = x if found[name] is None or moved(x) else found[name]
        subject.memo["gradients"] = found
    kept: dict[str, Tensor | None] = subject.memo["gradients"]
    return kept


def moved(gradient: Tensor | None) -> bool:
    """Whether anything at all teaches a weight."""
    return gradient is not None and bool((gradient != 0).any())


def owners(module: nn.Module, names: Iterable[str], learning: Iterable[str]) -> list[tuple[str, int]]:
    """(path, number of weights) of the largest parts all of whose learning weights are among these names."""
    bad, every = set(names), set(learning)
    found: list[tuple[str, int]] = []
    for path, _ in module.named_modules():
        held = {name for name in every if within(name, path)}
        inner = any(not one or path == one or path.startswith(f"{one}.") for one, _ in found)
        if held and held <= bad and not inner:
            found.append((path, len(held)))
    taken = {name for name in bad for path, _ in found if within(name, path)}
    return found + [(name.rpartition(".")[0], 1) for name in sorted(bad - taken)]


@asks("OB712", "unused")
def unused(subject: Subject) -> Iterator[Fault]:
    """Every weight that learns must take part in the answer."""
    found = shaken_gradients(subject)
    names = [name for name, x in found.items() if x is None and not table_of_kinds(subject.module, name)]
    for path, count in owners(subject.module, names, found)[:MOST]:
        yield fault("weights.unused", "warning", Where(path), count=count, weight=first_of(names, path))


def first_of(names: Iterable[str], path: str) -> str:
    """The first of the names that lie in a part."""
    return next((name for name in names if within(name, path)), "")


def within(name: str, path: str) -> bool:
    """Whether a weight lies in a part."""
    return not path or name.startswith(f"{path}.")


def table_of_kinds(module: nn.Module, name: str) -> bool:
    """Whether a weight is a small table that a caller may leave alone: segments, task ids."""
    owner = module.get_submodule(name.rpartition(".")[0])
    return isinstance(owner, nn.Embedding) and owner.num_embeddings <= 8


@asks("OB713", "dead")
def dead(subject: Subject) -> Iterator[Fault]:
    """Every weight that takes part must get a gradient, and none may be stuck at zero with what it multiplies."""
    found = shaken_gradients(subject)
    names = [name for name, x in found.items() if x is not None and not moved(x)]
    places = owners(subject.module, names, found)
    places = [one for one in places if not all(mute(subject, name) for name in names if within(name, one[0]))]
    for path, count in places[:MOST]:
        yield fault("layer.dead", "warning", Where(path), count=count, weight=first_of(names, path))
    if not places:
        yield from stuck(subject, found)


def mute(subject: Subject, name: str) -> bool:
    """Whether a weight can never get a gradient, and rightly so: a bias of keys, or nothing that a shift changes."""
    twin = copied(subject.copy())
    weight = dict(twin.named_parameters())[name]
    if weight.ndim != 1:
        return False
    plain = subject.answer(subject.ask(), module=twin).y
    with torch.no_grad():
        weight += torch.randn(weight.shape, generator=torch.Generator().manual_seed(0)).to(weight)
    return gap(subject.answer(subject.ask(), module=twin).y, plain) <= subject.floor() and name.endswith("bias")


def stuck(subject: Subject, shaken: Mapping[str, Tensor | None]) -> Iterator[Fault]:
    """Weights at exactly zero that get no gradient, step after step, because what they meet is at zero too."""
    zeros = {name for name, x in subject.module.named_parameters() if x.requires_grad and not bool((x != 0).any())}
    zeros &= {name for name, x in shaken.items() if moved(x)}
    twin = copied(subject.copy(shaken=False))
    for step in range(STEPS):
        if not zeros:
            return
        found = gradients(subject, twin, seed=step)
        zeros = {name for name in zeros if not moved(found[name])}
        with torch.no_grad():
            for name, x in twin.named_parameters():
                gradient = found.get(name)
                if gradient is not None and moved(gradient):
                    x -= 0.01 * gradient / gradient.abs().max()
    for path, count in owners(subject.module, zeros, shaken)[:MOST]:
        yield fault(
            "layer.stuck", "warning", Where(path), count=count, weight=first_of(sorted(zeros), path), steps=STEPS
        )
