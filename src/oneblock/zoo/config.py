"""A config.json as a spec and back; what is not understood is refused, and what is written is read again first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oneblock.files import read_json
from oneblock.hint import nearest
from oneblock.spec import Seq2Seq, Spec, validate
from oneblock.zoo.family import Family
from oneblock.zoo.hub import SHARED, WITHOUT_EFFECT

Families = Mapping[str, Family]
DEEPEST = 10_000
"""Layers of a model; more are a slip, or meant to fill the memory."""


def read_config(config: Mapping[str, Any], families: Families) -> tuple[Family, str, Spec]:
    """(family, class name, spec) of a config.json.

    Raises:
        ValueError: an unknown family or class, a key that is not understood, a value out of range.
    """
    name = config.get("model_type")
    family = next((one for one in families.values() if one.kind and one.kind == name), None)
    if family is None:
        known = sorted(one.kind for one in families.values() if one.kind)
        raise ValueError(f"model_type: {name!r} is no family we know; {_alike(config, families, known)}")
    listed = config.get("architectures") or [next(iter(family.kinds))]
    if not isinstance(listed, list) or not isinstance(listed[0], str):
        raise ValueError(f"architectures: expected a list of one class, got {listed!r}")
    if listed[0] not in family.kinds:
        raise ValueError(
            f"architectures: {listed[0]!r} is no class of {name} we know; {nearest(listed[0], family.kinds)}"
        )
    _understood(config, family)
    whole = {key: row.default for key, row in family.config.items()} | dict(config)
    given = arguments(whole, family)
    try:
        spec = family.kinds[listed[0]].spec(family.make(**given), whole)
        validate(spec)
    except (TypeError, KeyError, AttributeError, IndexError, ArithmeticError) as error:
        raise ValueError(f"{name}: a value is not what this family has there ({error})") from None
    return family, listed[0], spec


def read_public(path: Path, families: Families) -> tuple[Family, str, Spec]:
    """`read_config` of a file. ValueError, one line that names the file: what is wrong."""
    config = read_json(path)
    if not isinstance(config, dict):
        raise ValueError(f"{path}: expected an object of keys and values, got {type(config).__name__}")
    try:
        return read_config(config, families)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def arguments(config: Mapping[str, Any], family: Family) -> dict[str, Any]:
    """The arguments of a family's spec function that a whole config stands for."""
    found = {}
    for key, row in family.config.items():
        if row.argument is None:
            continue
        try:
            found[row.argument] = row.read(config[key], config)
        except (TypeError, KeyError, AttributeError, ArithmeticError) as error:
            raise ValueError(f"{key}: {config[key]!r} is not what this family has there ({error})") from None
        if "depth" in row.argument and isinstance(config[key], int) and config[key] > DEEPEST:
            raise ValueError(f"{key}: expected at most {DEEPEST:,} layers, got {config[key]:,}")
    return found


def write_config(spec: Spec, families: Families, name: str | None = None) -> tuple[Family, str, dict[str, Any]]:
    """(family, class name, config.json) of a spec: of the family called `name`, else of the first that it fits.

    Raises:
        ValueError: no family says exactly this; what differs from the nearest.
    """
    if name is not None and name not in families:
        raise ValueError(f"family: {name!r} is none we know; {nearest(name, families)}")
    for family in [families[name]] if name else [one for one in families.values() if one.kind]:
        for architecture in family.kinds:
            config = _written(spec, family, architecture)
            if config is not None:
                return family, architecture, config
    said = f"is not exactly a {name}" if name else "is of no family whose files we write"
    raise ValueError(f"spec: {said}; save it in our own format, or compare it with `oneblock diff`")


def _written(spec: Spec, family: Family, architecture: str) -> dict[str, Any] | None:
    """The config if, read back, it gives the same spec; else None."""
    try:
        whole = family.kinds[architecture].whole(spec)
        keys = {key: row.written(whole) for key, row in family.config.items()}
        head = spec.decoder.head if isinstance(spec, Seq2Seq) else spec.head
        labels = getattr(head, "labels", 0)
        names = {str(i): f"LABEL_{i}" for i in range(labels)}
        config = (
            {"architectures": [architecture], "model_type": family.kind}
            | {key: value for key, value in keys.items() if value is not None or family.config[key].default is not None}
            | {key: value for key, value in family.fixed.items() if value is not None}
            | ({} if labels == 0 else {"id2label": names, "label2id": {v: int(k) for k, v in names.items()}})
        )
        return config if read_config(config, {family.name: family})[2] == spec else None
    except (ValueError, AttributeError, TypeError, KeyError, IndexError):
        return None


def _understood(config: Mapping[str, Any], family: Family) -> None:
    """Refuse keys that might change what the model computes and that nothing here reads."""
    allowed = SHARED | dict(family.fixed)
    for key, value in config.items():
        if key in family.config or key in WITHOUT_EFFECT:
            continue
        if key not in allowed:
            raise ValueError(
                f"{key}: not understood, so what the model computes is not known; {nearest(key, family.config)}"
            )
        if value != allowed[key] and not (value is None and not allowed[key]):
            raise ValueError(f"{key}: expected {allowed[key]!r}, the only value understood here, got {value!r}")


def _alike(config: Mapping[str, Any], families: Families, known: list[str]) -> str:
    """Which family's keys are nearest to those of a config, and which keys it does not have."""

    def strange(family: Family) -> list[str]:
        had = family.config.keys() | family.fixed.keys() | SHARED.keys() | WITHOUT_EFFECT
        return [key for key in config if key not in had]

    near = min((one for one in families.values() if one.kind), key=lambda one: len(strange(one)), default=None)
    if near is None:
        return f"known: {', '.join(known)}"
    odd = ", ".join(strange(near)) or "no others"
    return f"its keys are most like those of {near.kind}, which does not have: {odd}"


__all__ = ["Families", "arguments", "read_config", "read_public", "write_config"]
