"""Copies of a module to ask instead of it: below wrappers, with its own functions, shaken, and without a trace left."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import CellType, FunctionType

import torch
from torch import nn

from oneblock.hint import first_line


def bare(module: nn.Module) -> nn.Module:
    """The module below what compiles or wraps it."""
    while True:
        inner = getattr(module, "_orig_mod", None)
        if inner is None and type(module).__name__ in ("DataParallel", "DistributedDataParallel"):
            inner = getattr(module, "module", None)
        if not isinstance(inner, nn.Module):
            return module
        module = inner


def copied(module: nn.Module) -> nn.Module:
    """A deep copy, of what is below a wrapper. ValueError: a module that cannot be copied, with its own words."""
    module = bare(module)
    if any(x.is_meta for x in module.parameters()):
        raise ValueError(
            f"check: {type(module).__name__} is on the meta device, without numbers; give it weights first"
        )
    try:
        twin = copy.deepcopy(module)
        rebind(module, twin)
        return twin
    except Exception as error:
        said = first_line(error)
        raise ValueError(f"check: {type(module).__name__} cannot be copied ({said}); give a fresh instance") from error


def rebind(module: nn.Module, twin: nn.Module) -> None:
    """Functions that a copy holds, and that remember parts of the original, remember its own parts instead.

    A deep copy keeps functions as they are: a lambda in `__init__` would go on calling the original.
    """
    twins = {id(old): new for (_, old), (_, new) in zip(module.named_modules(), twin.named_modules(), strict=True)}
    for part in twin.modules():
        for name, value in list(vars(part).items()):
            if isinstance(value, FunctionType) and value.__closure__:
                cells = tuple(renewed(cell, twins) for cell in value.__closure__)
                function = FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, cells)
                function.__kwdefaults__ = value.__kwdefaults__
                vars(part)[name] = function


def renewed(cell: CellType, twins: Mapping[int, nn.Module]) -> CellType:
    """What a function remembers: of a module its twin, anything else as it is."""
    try:
        held = cell.cell_contents
    except ValueError:  # nothing yet
        return cell
    if not isinstance(held, nn.Module):
        return cell
    return CellType(twins[id(held)] if id(held) in twins else copy.deepcopy(held, dict(twins)))


@torch.no_grad()
def shake(module: nn.Module) -> None:
    """Add noise to every weight, a third as wide as its own spread and never narrower than 0.02."""
    tables = {part.weight for part in module.modules() if isinstance(part, nn.Embedding)}
    for weight in module.parameters():
        fixed = weight in tables and not weight.requires_grad  # sinusoids, which must be what they are
        if weight.is_floating_point() and not fixed:
            width = 0.3 * float(weight.float().std(unbiased=False)) if weight.numel() > 1 else 0.0
            weight += max(width, 0.02) * torch.randn(weight.shape).to(weight)


@contextmanager
def undisturbed(seed: int) -> Iterator[None]:
    """Random numbers from `seed` inside; the state of torch's generators is as before afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
