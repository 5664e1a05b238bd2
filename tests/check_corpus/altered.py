"""Built models altered: what a part is given, what it answers, how the whole is called, or what its loss says."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class Given:
    """A hook that changes keyword arguments of a part before it runs; one without the argument is left alone."""

    def __init__(self, name: str, change: Callable[[nn.Module, Any], Any]) -> None:
        self.name, self.change = name, change

    def __call__(self, part: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.name in kwargs:
            kwargs[self.name] = self.change(part, kwargs[self.name])
        return args, kwargs


def given(model: nn.Module, path: str, name: str, change: Callable[[nn.Module, Any], Any]) -> nn.Module:
    """A part is given something else."""
    model.get_submodule(path).register_forward_pre_hook(Given(name, change), with_kwargs=True)
    return model


def fed(model: nn.Module, path: str, change: Callable[[Any], Any]) -> nn.Module:
    """A part's first argument is something else."""
    model.get_submodule(path).register_forward_pre_hook(lambda _, args: (change(args[0]), *args[1:]))
    return model


def answered(model: nn.Module, path: str, change: Callable[[nn.Module, Any], Any]) -> nn.Module:
    """A part answers something else."""
    model.get_submodule(path).register_forward_hook(lambda part, _, out: change(part, out))
    return model


def called(model: nn.Module, change: Callable[..., Any]) -> nn.Module:
    """The whole is called in another way: `change(call, kwargs)` answers in its stead."""
    kind = type(model)

    @functools.wraps(kind.forward)
    def forward(self: nn.Module, **kwargs: Any) -> Any:
        return change(functools.partial(kind.forward, self), kwargs)

    model.__class__ = type(kind.__name__, (kind,), {"forward": forward})
    return model


def labelled(model: nn.Module, change: Callable[[Tensor], Tensor]) -> nn.Module:
    """The loss is given other labels."""

    def call(forward: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
        if kwargs.get("labels") is not None:
            kwargs["labels"] = change(kwargs["labels"])
        return forward(**kwargs)

    return called(model, call)


def with_loss(model: nn.Module, change: Callable[[Callable[..., Any], dict[str, Any], Any], Tensor]) -> nn.Module:
    """Another loss: `change(forward, kwargs, answer)`."""

    def call(forward: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
        out = forward(**kwargs)
        if kwargs.get("labels") is None:
            return out
        return as_tuple(change(forward, kwargs, out), out.logits)

    return called(model, call)


def as_tuple(loss: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
    """(logits, loss), as many models answer."""
    return logits, loss


def rows_alone(forward: Callable[..., Any], kwargs: dict[str, Any], out: Any) -> Tensor:
    """The mean of the losses of the texts, each its own mean."""
    del out
    rows = range(len(kwargs["labels"]))
    parts = []
    for row in rows:
        own = {name: x[row : row + 1] if isinstance(x, Tensor) else x for name, x in kwargs.items()}
        parts.append(forward(**own).loss)
    return torch.stack(parts).mean()
