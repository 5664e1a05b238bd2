"""Walk any tree of frozen dataclasses and tuples; read or change a place in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from oneblock.hint import nearest


def children(value: Any) -> Iterator[tuple[str, Any]]:
    """The named parts of a spec (its fields) or of a tuple (its indices); nothing for a leaf."""
    if isinstance(value, tuple):
        yield from ((str(index), part) for index, part in enumerate(value))
    else:
        yield from ((name, getattr(value, name)) for name in _fields(type(value)))  # type: ignore[arg-type]


@cache
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def walk(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every (path, value) of a tree, parents before children.

    >>> from oneblock.spec import RMSNorm
    >>> list(walk(RMSNorm(1e-6)))
    [('', RMSNorm(eps=1e-06, centred=False)), ('eps', 1e-06), ('centred', False)]
    """
    yield path, value
    for name, part in children(value):
        yield from walk(part, f"{path}.{name}" if path else name)


def get(value: Any, path: str) -> Any:
    """The value at a dotted path; the `length` of a tuple is how many it holds.

    >>> from oneblock.spec import Attention, Block, FeedForward
    >>> get(Block(Attention(8), FeedForward(64)), "attention.heads")
    8
    """
    for name in path.split(".") if path else ():
        parts = dict(children(value)) | ({"length": len(value)} if isinstance(value, tuple) else {})
        if name not in parts:
            raise ValueError(f"{path}: no {name!r} in {type(value).__name__}; {nearest(name, parts)}")
        value = parts[name]
    return value


def put(value: Any, path: str, new: Any | Callable[[Any], Any]) -> Any:
    """A copy with `new` (or `new(old)` when it can be called) at every place that the path's globs match.

    >>> from oneblock.spec import Attention, Block, FeedForward
    >>> put(Block(Attention(8), FeedForward(64)), "attention.heads", 4).attention.heads
    4
    """
    if not path:
        return new(value) if callable(new) else new
    name, _, rest = path.partition(".")
    if isinstance(value, tuple) and name == "length":
        length = new(len(value)) if callable(new) else new
        return tuple(value[index % len(value)] for index in range(length))
    parts = dict(children(value))
    found = _named(parts, name)
    known = {id(part): part for part in found.values()}  # equal layers are mostly one object: looked at once
    leads = {key: part for key, part in known.items() if name in parts or _leads(part, rest)}
    if not leads:
        raise ValueError(f"{path}: no {name!r} in {type(value).__name__}; {nearest(name, parts)}")
    if callable(new):
        changed = {key: put(part, rest, new) for key, part in found.items() if id(part) in leads}
    else:
        made = {key: put(part, rest, new) for key, part in leads.items()}
        changed = {key: made[id(part)] for key, part in found.items() if id(part) in leads}
    if isinstance(value, tuple):
        return tuple(changed.get(key, old) for key, old in parts.items())
    return replace(value, **changed)


def _leads(value: Any, path: str) -> bool:
    """Whether a path of names and globs leads anywhere from here."""
    if not path or (isinstance(value, tuple) and path == "length"):
        return True
    name, _, rest = path.partition(".")
    known = {id(part): part for part in _named(dict(children(value)), name).values()}
    return any(_leads(part, rest) for part in known.values())


def _named(parts: dict[str, Any], name: str) -> dict[str, Any]:
    """The parts that a name, or a glob, speaks of."""
    if name in parts:
        return {name: parts[name]}
    return parts if name == "*" else {key: part for key, part in parts.items() if fnmatchcase(key, name)}
