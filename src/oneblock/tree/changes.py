"""Compare two trees, carry the differences out, and keep them as a patch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from oneblock.hint import nearest
from oneblock.tree.places import children, put
from oneblock.tree.saved import from_dict, to_dict


@dataclass(frozen=True)
class Change:
    """One difference between two specs: at `path`, `before` becomes `after`. A `*` in the path means every layer."""

    path: str
    before: Any
    after: Any


def diff(before: Any, after: Any, path: str = "") -> tuple[Change, ...]:
    """What turns `before` into `after`, in the order in which `apply` takes it.

    Tuples of another length are first resized (repeating from the start), which is the change `layers.length`; a change
    that is the same in every layer is said once, with `*`. Combined masks and tuples of numbers are compared whole.
    """
    if before == after and type(before) is type(after):
        return ()
    at = f"{path}." if path else ""
    if _listed(before) and _listed(after):
        resized = put(before, "length", len(after))
        grow = () if len(before) == len(after) else (Change(f"{at}length", len(before), len(after)),)
        return grow + _once([diff(a, b) for a, b in zip(resized, after, strict=True)], at)
    if is_dataclass(before) and type(before) is type(after) and _addressable(before):
        parts = dict(children(after))
        return tuple(c for name, part in children(before) for c in diff(part, parts[name], f"{at}{name}"))
    return (Change(path, before, after),)


def _listed(value: Any) -> bool:
    """Whether a value is a tuple of specs, to be compared one by one."""
    return isinstance(value, tuple) and any(is_dataclass(part) for part in value)


def _addressable(value: Any) -> bool:
    """Whether a spec has parts, none of them a set, whose members have no path."""
    parts = dict(children(value)).values()
    return bool(parts) and not any(isinstance(part, frozenset) for part in parts)


def _once(per_index: list[tuple[Change, ...]], at: str) -> tuple[Change, ...]:
    everywhere = [change for change in per_index[0] if all(change in changes for changes in per_index)]
    shared = tuple(_under(change, f"{at}*") for change in everywhere)
    single = [(i, change) for i, changes in enumerate(per_index) for change in changes if change not in everywhere]
    return shared + tuple(_under(change, f"{at}{i}") for i, change in single)


def _under(change: Change, path: str) -> Change:
    return Change(f"{path}.{change.path}" if change.path else path, change.before, change.after)


def apply(value: Any, changes: tuple[Change, ...] | Mapping[str, Any]) -> Any:
    """Carry out changes, all of one object at once: `apply(a, diff(a, b)) == b`. They may be a patch, see `to_patch`.

    What stood there before is not compared: changes may be carried out on another spec, as far as their paths lead.

    >>> from oneblock.spec import Attention
    >>> apply(Attention(8, kv_heads=4), (Change("heads", 8, 6), Change("kv_heads", 4, 3)))  # doctest: +ELLIPSIS
    Attention(heads=6, kv_heads=3, ...)
    """
    if isinstance(changes, Mapping):
        return from_dict(to_dict(apply(value, from_patch(changes))))  # refuses what no spec can hold
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


def to_patch(changes: tuple[Change, ...]) -> dict[str, Any]:
    """Changes as dictionaries and lists, for JSON.

    >>> to_patch((Change("layers.*.wiring", "post", "pre"),))
    {'changes': [{'path': 'layers.*.wiring', 'before': 'post', 'after': 'pre'}]}
    """
    said = [{"path": one.path, "before": to_dict(one.before), "after": to_dict(one.after)} for one in changes]
    return {"changes": said}


def from_patch(patch: Mapping[str, Any]) -> tuple[Change, ...]:
    """The changes that `to_patch` wrote. ValueError, one line, where it is no patch.

    >>> from_patch({"changes": [{"path": "dim", "before": 8}]})
    Traceback (most recent call last):
    ValueError: patch.changes.0: expected path, before and after, got before, path
    """
    listed = patch.get("changes")
    if set(patch) != {"changes"} or not isinstance(listed, list):
        said = ", ".join(f"{key}: {type(value).__name__}" for key, value in patch.items()) or "nothing"
        raise ValueError(f"patch: expected changes: list and no more, got {said}")
    changes = []
    for index, one in enumerate(listed):
        keys = sorted(map(str, one)) if isinstance(one, Mapping) else [type(one).__name__]
        if keys != ["after", "before", "path"] or not isinstance(one["path"], str):
            raise ValueError(f"patch.changes.{index}: expected path, before and after, got {', '.join(keys)}")
        before, after = (from_dict(one[name], f"patch.changes.{index}.{name}") for name in ("before", "after"))
        changes.append(Change(one["path"], before, after))
    return tuple(changes)
