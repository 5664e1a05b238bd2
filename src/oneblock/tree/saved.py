"""A tree as plain dictionaries and lists, for JSON; and back, refusing whatever it does not understand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import ModuleType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from oneblock.hint import nearest

TYPES: dict[str, Any] = {}
"""Every type that a saved tree may name; whoever defines types adds them with `known`."""


def known(*modules: ModuleType) -> None:
    """Let saved trees name the dataclasses that these modules define."""
    for module in modules:
        own = (cls for cls in vars(module).values() if isinstance(cls, type) and cls.__module__ == module.__name__)
        TYPES.update({cls.__name__: cls for cls in own if is_dataclass(cls)})


def to_dict(value: Any) -> Any:
    """A spec as dictionaries with a "type" key, lists and plain values; a set is a sorted list.

    >>> from oneblock.spec import RMSNorm
    >>> to_dict(RMSNorm(1e-6))
    {'type': 'RMSNorm', 'eps': 1e-06, 'centred': False}
    """
    if is_dataclass(value):
        return {"type": type(value).__name__} | {f.name: to_dict(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [to_dict(part) for part in value]
    if isinstance(value, frozenset):
        return sorted((to_dict(part) for part in value), key=str)
    return value


def from_dict(saved: Any, path: str = "spec") -> Any:
    """The spec that `to_dict` saved. Unknown types and keys, missing keys and wrong types raise with their path.

    >>> from_dict({"type": "RMSNorm", "epsilon": 1e-6})
    Traceback (most recent call last):
    ValueError: spec.epsilon: RMSNorm has no such key; did you mean eps?
    """
    if isinstance(saved, list):
        return tuple(from_dict(part, f"{path}.{index}") for index, part in enumerate(saved))
    if not isinstance(saved, Mapping):
        return saved
    name = saved.get("type")
    if not isinstance(name, str) or name not in TYPES:
        raise ValueError(f"{path}.type: {name!r} is no type of a spec; {nearest(name, TYPES)}")
    cls = TYPES[name]
    own = {field.name: field for field in fields(cls)}
    hints = get_type_hints(cls)
    values = {}
    for key, part in saved.items():
        if key == "type":
            continue
        if key not in own:
            raise ValueError(f"{path}.{key}: {name} has no such key; {nearest(key, own)}")
        value = from_dict(part, f"{path}.{key}")
        if get_origin(hints[key]) is frozenset:
            value = frozenset(value)
        if not _fits(value, hints[key]):
            raise ValueError(f"{path}.{key}: expected {_said(hints[key])}, got {value!r}")
        values[key] = value
    missing = [k for k, f in own.items() if k not in values and f.default is MISSING and f.default_factory is MISSING]
    if missing:
        raise ValueError(f"{path}: {name} needs {', '.join(missing)}")
    return cls(**values)


def _fits(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if origin in (tuple, frozenset):
        return isinstance(value, origin) and all(_fits(part, get_args(hint)[0]) for part in value)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _said(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(repr(word) for word in get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_said(part) for part in get_args(hint))
    if hint is NoneType:
        return "null"
    return hint.__name__ if isinstance(hint, type) else str(hint)
