"""Named models as specs: one file per family, all of it data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oneblock.spec import Spec, nearest
from oneblock.zoo.vaswani import TABLE_3, vaswani

FAMILIES: dict[str, tuple[Callable[..., Spec], dict[str, dict[str, Any]]]] = {"vaswani": (vaswani, TABLE_3)}
"""Family name -> (spec function, its published sizes as arguments)."""


def names() -> list[str]:
    """Every name that `named` knows: families, and family-size for each published size.

    >>> "vaswani-big" in names()
    True
    """
    sizes = [(family, size) for family, (_, known) in FAMILIES.items() for size in known]
    return [*FAMILIES, *(f"{family}-{size}" for family, size in sizes)]


def named(name: str, **arguments: Any) -> Spec:
    """The spec of a family ("vaswani") or of a published size ("vaswani-big"), with some arguments replaced.

    >>> named("vaswani-big", vocab=1000).encoder.dim
    1024
    >>> named("vaswany")
    Traceback (most recent call last):
    ValueError: 'vaswany' is no model we know; did you mean vaswani?
    """
    family, _, size = name.partition("-")
    if name not in names():
        raise ValueError(f"{name!r} is no model we know; {nearest(name, names())}")
    make, sizes = FAMILIES[family]
    known = make.__code__.co_varnames[: make.__code__.co_argcount]
    for key in arguments:
        if key not in known:
            raise ValueError(f"{name}: no argument {key!r}; {nearest(key, known)}")
    return make(**(sizes.get(size, {}) | arguments))
