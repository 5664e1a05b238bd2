"""How a fault is planted: other words in a host's source, or something done to a built model."""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

HOSTS = Path(__file__).parents[1] / "check_hosts"


@dataclass(frozen=True)
class Mutant:
    """A fault in a host: the check that must find it, the fault's name, and the module (path) that must be named.

    `module` None: any place is right (the fault has no single one). `options` are further arguments of `check`.
    """

    name: str
    host: str
    check: str
    fault: str
    make: Callable[[], nn.Module]
    module: str | tuple[str, ...] | None = None
    options: dict[str, Any] = field(default_factory=dict)


def written(file: str, name: str, *pairs: tuple[str, str]) -> Callable[..., nn.Module]:
    """A class of a host's file with other words in its source; each pair's first must stand there exactly once."""
    source = (HOSTS / f"{file}.py").read_text(encoding="utf-8")
    for old, new in pairs:
        assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in {file}.py"
        source = source.replace(old, new)
    title = f"<{file} {abs(hash(pairs))}>"
    linecache.cache[title] = (len(source), None, source.splitlines(keepends=True), title)
    space: dict[str, Any] = {"__name__": f"host_{file}"}
    exec(compile(source, title, "exec"), space)
    return space[name]


def seeded(make: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    """A model whose weights come from a seed."""
    torch.manual_seed(seed)
    return make()


def behaving(part: nn.Module, **methods: Callable[..., Any]) -> nn.Module:
    """A part whose class has other methods; they reach the old ones by `super(type(self), self)`."""
    own = type(part)
    for name, method in methods.items():
        functools.update_wrapper(method, getattr(own, name))
    part.__class__ = type(own.__name__, (own,), methods)
    return part
