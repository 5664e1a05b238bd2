"""From a spec to a module: one open function, registered beside each module."""

from __future__ import annotations

from functools import singledispatch

from torch import nn


@singledispatch
def build(spec: object, dim: int) -> nn.Module:  # noqa: ARG001
    """The module that a spec describes, in a stream of width `dim`. None is the identity."""
    raise TypeError(f"no brick for {type(spec).__name__}; register one with build.register")


@build.register
def _(spec: None, dim: int) -> nn.Module:  # noqa: ARG001
    return nn.Identity()
