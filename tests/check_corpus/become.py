"""A built part made to run other code, in a way that copies of it keep."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import nn


def become(part: nn.Module, forward: Callable[..., Any], name: str = "forward") -> nn.Module:
    """The part with another method: `forward(self, right, *args, **kwargs)`, `right` is the method that it had."""
    kind = type(part)
    right = getattr(kind, name)

    @functools.wraps(right)
    def run(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        return forward(self, functools.partial(right, self), *args, **kwargs)

    part.__class__ = type(kind.__name__, (kind,), {name: run})
    return part
