"""oneblock: one block, every Transformer. Public names load on first use, so that importing this costs nothing."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

PUBLIC = {
    "GenerationConfig": "generate",
    "Pipeline": "generate",
    "Run": "train",
    "Tokenizer": "text",
    "Translation": "generate",
    "Translator": "generate",
    "active": "cost",
    "adopt": "explain",
    "apply": "spec",
    "build": "bricks:build_model",
    "cache_bytes": "cost",
    "check": "check",
    "classify": "generate",
    "compare": "explain",
    "cost": "cost",
    "diff": "spec",
    "embed": "generate",
    "evaluate": "train",
    "fill": "generate",
    "from_dict": "spec",
    "from_pretrained": "weights:load",
    "generate": "generate",
    "held_out": "train",
    "listen": "tap",
    "load": "weights",
    "named": "zoo",
    "parameters": "cost",
    "perplexity": "generate",
    "prepack": "generate",
    "probe": "explain.probe",
    "save": "weights",
    "save_pretrained": "weights",
    "score": "generate",
    "stream": "generate",
    "svg": "draw",
    "to_dict": "spec",
    "train": "train",
    "trace": "explain",
    "translate": "generate",
}
"""Public name -> the room it lives in, and its name there if it has another."""

__version__ = "0.1.0"
__all__ = sorted(PUBLIC)


class House(ModuleType):
    """This package. A public function keeps its name here although importing a room of that name would take it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in PUBLIC and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = House


def __getattr__(name: str) -> Any:
    if name in PUBLIC:
        room, _, inside = PUBLIC[name].partition(":")
        return getattr(import_module(f"oneblock.{room}"), inside or name)
    try:
        return import_module(f"oneblock.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"oneblock.{name}":
            raise
        raise AttributeError(f"oneblock has no {name!r}") from None


def __dir__() -> list[str]:
    return __all__
