"""A named model at a size for the eye: the family's own shape, its numbers small, its weights random."""

from __future__ import annotations

from inspect import signature
from typing import Any

from oneblock.spec import Spec, Tokens
from oneblock.zoo import FAMILIES, named

TINY = {
    "dim": 32, "depth": 2, "heads": 4, "kv_heads": 2, "hidden": 64, "head_dim": 8, "narrow": 16, "experts": 4,
    "active": 2, "rotary": 4, "window": 3, "decoder_depth": 2, "decoder_heads": 4, "decoder_hidden": 64, "length": 128,
}  # fmt: skip
"""Sizes of a named model that is built for the eye; each only where the family has it."""


def tiny(name: str, vocab: int) -> Spec:
    """The spec of a named model with small sizes and a vocabulary of `vocab`."""
    family = next(one for one in FAMILIES.values() if name == one.name or name in one.sizes)
    known, fixed = signature(family.make).parameters, family.sizes.get(name, {})
    sizes: dict[str, Any] = {"vocab": vocab, "tokens": Tokens(0, 1, 2, 1)}
    for key, size in TINY.items():
        usual = fixed.get(key, known[key].default) if key in known else None
        if usual is not None or key in ("dim", "depth", "heads"):
            sizes |= {key: size} if key in known else {}
    if known.get("windows") is not None:
        usual = fixed.get("windows", known["windows"].default)
        sizes["windows"] = tuple(None if far is None else TINY["window"] for far in usual)
    return named(name, **sizes)
