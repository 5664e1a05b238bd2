"""A family that is another one with other usual values and a few changes to its spec: said once, as just that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar

from oneblock.spec import put
from oneblock.zoo.family import Key

Make = Callable[..., Any]
Tree = TypeVar("Tree")


def like(base: Make, without: str = "", **usual: Any) -> Callable[[Make], Make]:
    """Turn a function that changes a spec of `base` into the spec function of a family of its own.

    Args:
        base: the spec function of the older family.
        without: names of its arguments that the new one does not have.
        usual: its arguments that usually have other values in the new one, or always: those it is without.

    The new function takes the other arguments of both, by name.

    >>> from oneblock.zoo.llama import llama
    >>> @like(llama, dim=64, depth=2, heads=4)
    ... def tiny(spec, cap=30.0):
    ...     return changed(spec, {"head.softcap": cap})
    >>> tiny(heads=8).layers[0].attention.heads, tiny().head.softcap
    (8, 30.0)
    """
    older, gone = signature(base).parameters, set(without.split())
    if unknown := (usual.keys() | gone) - older.keys():
        raise ValueError(f"like: {base.__name__} has no argument {min(unknown)!r}")

    def decorate(change: Make) -> Make:
        own = list(signature(change).parameters.values())[1:]
        names = {one.name for one in own}

        @wraps(change)
        def make(**arguments: Any) -> Any:
            if lost := arguments.keys() & gone - names:
                raise TypeError(f"{change.__name__}() has no argument {min(lost)!r}")
            mine = {name: value for name, value in arguments.items() if name in names}
            rest = {name: value for name, value in arguments.items() if name not in names}
            return change(base(**(usual | rest)), **mine)

        had = [one for one in older.values() if one.name not in gone]
        kept = [one.replace(default=usual.get(one.name, one.default)) for one in had]
        every = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in [*kept, *own]]
        make.__signature__ = Signature(every)  # type: ignore[attr-defined]
        return make

    return decorate


def changed(spec: Tree, changes: Mapping[str, Any]) -> Tree:
    """A spec with a value put at each path.

    >>> from oneblock.spec import Attention
    >>> changed(Attention(8), {"bias": True, "scale": 1.0}).scale
    1.0
    """
    for path, value in changes.items():
        spec = put(spec, path, value)
    return spec


def usual(config: Mapping[str, Key], **defaults: Any) -> dict[str, Key]:
    """The keys of a config.json where some, left out, mean something else than in the older family.

    >>> usual({"hidden_size": Key("dim", "dim", 4096)}, hidden_size=2304)["hidden_size"].default
    2304
    """
    return {**config, **{key: replace(config[key], default=value) for key, value in defaults.items()}}
