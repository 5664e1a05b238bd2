"""Functions over any tree of specs: walk it, read or change a place in it, compare two of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from oneblock.spec.choices import nearest


@dataclass(frozen=True)
class Change:
    """One difference between two specs: at `path`, `before` becomes `after`. A `*` in the path means every layer."""

    path: str
    before: Any
    after: Any


def children(value: Any) -> Iterator[tuple[str, Any]]:
    """The named parts of a spec (its fields) or of a tuple (its indices); nothing for a leaf."""
    if is_dataclass(value):
        yield from ((field.name, getattr(value, field.name)) for field in fields(value))
    elif isinstance(value, tuple):
        yield from ((str(index), part) for index, part in enumerate(value))


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
    """The value at a dotted path.

    >>> from oneblock.spec import Attention, Block, FeedForward
    >>> get(Block(Attention(8), FeedForward(64)), "attention.heads")
    8
    """
    for name in path.split(".") if path else ():
        parts = dict(children(value))
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
    found = [part for part in parts if fnmatchcase(part, name) and (name == part or _leads(parts[part], rest))]
    if not found:
        raise ValueError(f"{path}: no {name!r} in {type(value).__name__}; {nearest(name, parts)}")
    changed = {part: put(parts[part], rest, new) for part in found}
    if isinstance(value, tuple):
        return tuple(changed.get(part, old) for part, old in parts.items())
    return replace(value, **changed)


def _leads(value: Any, path: str) -> bool:
    """Whether a path of names and globs leads anywhere from here."""
    name, _, rest = path.partition(".")
    inner = isinstance(value, tuple) and path == "length"
    return not path or inner or any(fnmatchcase(n, name) and _leads(part, rest) for n, part in children(value))


def diff(before: Any, after: Any, path: str = "") -> tuple[Change, ...]:
    """What turns `before` into `after`, in the order in which `apply` takes it.

    Tuples of another length are first resized (repeating from the start), which is the change `layers.length`; a change
    that is the same in every layer is said once, with `*`.
    """
    if before == after and type(before) is type(after):
        return ()
    at = f"{path}." if path else ""
    if isinstance(before, tuple) and isinstance(after, tuple) and before and after:
        resized = put(before, "length", len(after))
        grow = () if len(before) == len(after) else (Change(f"{at}length", len(before), len(after)),)
        return grow + _once([diff(a, b) for a, b in zip(resized, after, strict=True)], at)
    if is_dataclass(before) and type(before) is type(after) and any(children(before)):
        parts = dict(children(after))
        return tuple(c for name, part in children(before) for c in diff(part, parts[name], f"{at}{name}"))
    return (Change(path, before, after),)


def _once(per_index: list[tuple[Change, ...]], at: str) -> tuple[Change, ...]:
    everywhere = [change for change in per_index[0] if all(change in changes for changes in per_index)]
    shared = tuple(_under(change, f"{at}*") for change in everywhere)
    single = [(i, change) for i, changes in enumerate(per_index) for change in changes if change not in everywhere]
    return shared + tuple(_under(change, f"{at}{i}") for i, change in single)


def _under(change: Change, path: str) -> Change:
    return Change(f"{path}.{change.path}" if change.path else path, change.before, change.after)


def apply(value: Any, changes: tuple[Change, ...]) -> Any:
    """Carry out changes, all of one object at once: `apply(a, diff(a, b)) == b`.

    >>> from oneblock.spec import Attention
    >>> apply(Attention(8, kv_heads=4), (Change("heads", 8, 6), Change("kv_heads", 4, 3)))  # doctest: +ELLIPSIS
    Attention(heads=6, kv_heads=3, ...)
    """
    if any(not change.path for change in changes):
        return changes[-1].after
    for change in changes:
        if change.path == "length" and isinstance(value, tuple):
            value = put(value, "length", change.after)
    parts = dict(children(value))
    changed: dict[str, Any] = {}
    for name, part in parts.items():
        inner = [_inside(change, name) for change in changes]
        if found := tuple(change for change in inner if change is not None):
            changed[name] = apply(part, found)
    for change in changes:
        name = change.path.partition(".")[0]
        resized = name == "length" and isinstance(value, tuple)
        if not resized and not any(fnmatchcase(part, name) for part in parts):
            raise ValueError(f"{change.path}: no {name!r} in {type(value).__name__}; {nearest(name, parts)}")
    if isinstance(value, tuple):
        return tuple(changed.get(name, part) for name, part in parts.items())
    return replace(value, **changed)


def _inside(change: Change, name: str) -> Change | None:
    first, _, rest = change.path.partition(".")
    return Change(rest, change.before, change.after) if fnmatchcase(name, first) else None
