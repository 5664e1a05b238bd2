"""Between TOML tables and frozen dataclasses: every key checked, every complaint one line that names the key."""

from __future__ import annotations

import json
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Literal, TypeVar

from oneblock.hint import nearest

__all__ = ["build", "dump", "parse_value", "put_key"]

T = TypeVar("T")


def build(cls: type[T], table: Mapping[str, Any], path: str = "") -> T:
    """An instance of a dataclass from a table; nested dataclasses are nested tables.

    A field with metadata `rest` takes all keys that are no field. Raises ValueError naming the dotted key.
    """
    known = {item.name: item for item in fields(cls) if not item.metadata.get("rest")}  # type: ignore[arg-type]
    rest = next((item.name for item in fields(cls) if item.metadata.get("rest")), None)  # type: ignore[arg-type]
    hints = typing.get_type_hints(cls)
    values: dict[str, Any] = {rest: {}} if rest else {}
    for key, value in table.items():
        where = f"{path}{key}"
        if key in known:
            values[key] = _read(value, hints[key], known[key], where)
        elif rest:
            values[rest][key] = value
        else:
            raise ValueError(f"{where}: unknown key; {nearest(key, known)}")
    for name, item in known.items():
        if name not in values and item.default is MISSING and item.default_factory is MISSING:
            raise ValueError(f"{path}{name}: missing")
    try:
        return cls(**values)
    except ValueError as error:
        raise ValueError(f"{path}{error}") from None


def parse_value(text: str) -> Any:
    """The value of `--set a.b=value`: read as TOML where possible, otherwise the text itself.

    >>> parse_value("3e-4"), parse_value("[1, 2]"), parse_value("cosine")
    (0.0003, [1, 2], 'cosine')
    """
    try:
        table = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return table["value"] if set(table) == {"value"} else text


def put_key(table: dict[str, Any], key: str, value: Any) -> None:
    """Set the dotted `key` in nested tables, in place, making tables on the way; ValueError when one is not a table."""
    *way, last = key.split(".")
    if not all([*way, last]):
        raise ValueError(f"{key!r}: expected a dotted key such as training.steps")
    for index, name in enumerate(way):
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise ValueError(f"{'.'.join(way[: index + 1])}: is a value, not a table; cannot set {key}")
    table[last] = value


def dump(instance: Any) -> str:
    """A dataclass as TOML text, one table per nested dataclass; None is left out."""
    lines, tables = [], []
    for item in fields(instance):
        value = getattr(instance, item.name)
        if is_dataclass(value):
            tables.append(f"\n[{item.name}]\n{dump(value)}")
        elif item.metadata.get("rest"):
            lines += [f"{_key(key)} = {_value(inner)}" for key, inner in value.items() if inner is not None]
        elif value is not None:
            lines.append(f"{item.name} = {_value(value)}")
    return "".join(line + "\n" for line in lines) + "".join(tables)


def _read(value: Any, hint: Any, item: Field[Any], where: str) -> Any:
    if is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise ValueError(f"{where}: expected a table, got {_shown(value)}")
        return build(hint, value, f"{where}.")
    try:
        result = _convert(value, hint)
    except TypeError:
        near = f"; {nearest(value, typing.get_args(hint))}" if typing.get_origin(hint) is Literal else ""
        raise ValueError(f"{where}: expected {_expected(hint)}, got {_shown(value)}{near}") from None
    least, most = item.metadata.get("least"), item.metadata.get("most")
    low = least is not None and not result >= least
    if low or (most is not None and not result <= most):
        bound = f"at least {least}" if most is None else f"a number from {least} to {most}"
        raise ValueError(f"{where}: expected {bound}, got {_shown(value)}")
    return result


def _convert(value: Any, hint: Any) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _convert_any(value, arguments)
    if origin is Literal:
        if value in arguments:
            return value
        raise TypeError
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise TypeError
        each = [arguments[0]] * len(value) if arguments[-1] is Ellipsis else list(arguments)
        if len(each) != len(value):
            raise TypeError
        return tuple(_convert(inner, kind) for inner, kind in zip(value, each, strict=True))
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not hint:  # exact, since True is an int for isinstance
        raise TypeError
    return value


def _convert_any(value: Any, hints: tuple[Any, ...]) -> Any:
    for hint in hints:
        try:
            return _convert(value, hint)
        except TypeError:
            continue
    raise TypeError


def _expected(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return "one of " + ", ".join(json.dumps(word) for word in arguments)
    if origin is tuple:
        many = f"a list of {len(arguments)}" if arguments[-1] is not Ellipsis else "a list of"
        return f"{many} ({_expected(arguments[0])} each)"
    if origin in (types.UnionType, typing.Union):
        return " or ".join(_expected(kind) for kind in arguments if kind is not type(None))
    return {int: "an integer", float: "a number", str: "a string", bool: "true or false"}.get(hint, str(hint))


def _shown(value: Any) -> str:
    text = _value(value) if not isinstance(value, Mapping) else "a table"
    return text if len(text) <= 60 else text[:57] + "..."


def _key(name: str) -> str:
    bare = name and all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in name)
    return name if bare else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    return repr(value) if isinstance(value, (int, float)) else json.dumps(str(value))
