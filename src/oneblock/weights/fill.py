"""Tensors by name into a model: every one read, every parameter written, ties kept."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from oneblock.bricks import build_model
from oneblock.hint import first_line, nearest
from oneblock.spec import Spec
from oneblock.weights.spelt import today

WRAPPED = {r"(^|(?<=\.))(_orig_mod|module)\.": ""}
"""What torch.compile and DistributedDataParallel put into names, and what to put there instead."""


def fill(model: nn.Module, tensors: dict[str, Tensor], source: object = "tensors") -> None:
    """Give a model its tensors by name: every one read, every parameter written, shapes equal; ties stay ties."""
    tensors = {unwrapped(name): x for name, x in tensors.items()}
    own = unique(model)
    for name in sorted(own.keys() - tensors.keys()):
        raise ValueError(f"{source}: {name} is missing; {nearest(name, tensors)}")
    same_as = ties(model)
    for name in sorted(tensors.keys() - {unwrapped(name) for name in same_as}):
        raise ValueError(f"{source}: {name} belongs to no parameter of this spec; {nearest(name, own)}")
    for name, parameter in own.items():
        if not tensors[name].is_floating_point():
            raise ValueError(f"{source}: {name}: expected floating-point numbers, got {tensors[name].dtype}")
        if tensors[name].shape != parameter.shape:
            raise ValueError(
                f"{source}: {name}: expected shape {tuple(parameter.shape)}, got {tuple(tensors[name].shape)}"
            )
    model.load_state_dict({name: tensors[unwrapped(same)] for name, same in same_as.items()}, assign=True)
    for name, same in same_as.items():
        if name != same:
            _retie(model, name, same)


def unique(model: nn.Module) -> dict[str, Tensor]:
    """Name -> tensor of a model, each tensor once, without the prefixes of wrappers."""
    state = model.state_dict()
    return {unwrapped(name): state[name].detach().contiguous() for name, same in ties(model).items() if name == same}


def unwrapped(name: str) -> str:
    """A key without what wrappers put into it.

    >>> unwrapped("module._orig_mod.norm.weight")
    'norm.weight'
    """
    return today(name, WRAPPED)


def spec_of(model: nn.Module) -> Spec:
    """The spec of a model, wrapped or not."""
    for module in model.modules():
        if hasattr(module, "spec"):
            return module.spec
    raise ValueError(f"save: {type(model).__name__} has no spec; expected a model made by oneblock.build")


def empty(spec: Spec) -> nn.Module:
    """The module of a spec on the meta device: shapes without numbers."""
    try:
        with torch.device("meta"), Unfilled():
            return build_model(spec)
    except (RuntimeError, TypeError, OverflowError) as error:
        raise ValueError(f"spec: no model can be built of it ({first_line(error)})") from None


class Unfilled(TorchFunctionMode):
    """Skips torch.nn.init: on the meta device it fills nothing and imports the compiler, which takes seconds."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(function, "__module__", "") == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return function(*args, **(kwargs or {}))


def ties(model: nn.Module) -> dict[str, str]:
    """Every key of the state dict -> the first key that holds the same parameter."""
    first: dict[int, str] = {}
    named = model.named_parameters(remove_duplicate=False)
    found = {name: first.setdefault(id(parameter), name) for name, parameter in named}
    return {name: found.get(name, name) for name in model.state_dict(keep_vars=True)}


def _retie(model: nn.Module, name: str, same: str) -> None:
    owner, _, leaf = name.rpartition(".")
    setattr(model.get_submodule(owner), leaf, model.get_parameter(same))
