"""What modules answer with, a tensor, a tuple, a dict or a dataclass, read as one `Answer`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from torch import Tensor

from oneblock.check.calling.adapter import Answer, Ask

LOGITS = ("logits", "prediction_logits", "last_hidden_state", "output", "outputs", "y", "hidden", "x")
CACHES = ("past_key_values", "cache", "kv_cache", "past", "presents", "present", "caches", "state")


def parts(found: Any) -> Iterator[tuple[str, Any]]:
    """(name or "", value) of everything in an answer, in its order."""
    if isinstance(found, Mapping):
        yield from ((str(name), value) for name, value in found.items())
    elif is_dataclass(found) and not isinstance(found, type):
        yield from ((one.name, getattr(found, one.name)) for one in fields(found))
    elif isinstance(found, tuple | list):
        names = getattr(found, "_fields", None) or [""] * len(found)
        yield from zip(names, found, strict=True)
    else:
        yield "", found


def read(found: Any, ask: Ask, batch_first: bool = True) -> Answer:
    """The vectors per token (or per text), the loss and the cache of an answer. ValueError: no vectors in it."""
    held = list(parts(found))
    loss = next((x for name, x in held if name == "loss" and isinstance(x, Tensor)), None)
    if loss is None:
        loss = next((x for _, x in held if isinstance(x, Tensor) and x.ndim == 0 and x.is_floating_point()), None)
    vectors = [(name, x) for name, x in held if isinstance(x, Tensor) and x.ndim >= 2 and x.is_floating_point()]
    shape = ask.tokens.shape[:2] if batch_first else ask.tokens.shape[:2][::-1]
    vectors = [(name, unflattened(x, shape)) for name, x in vectors]
    by_name = [x for wanted in LOGITS for name, x in vectors if name == wanted]
    y = next(iter(by_name or [x for _, x in vectors if x.shape[:2] == shape] or [x for _, x in vectors]), None)
    if y is None:
        got = type(found).__name__ if found is not None else "nothing"
        raise ValueError(f"its forward returns {got} with no vectors per token or text")
    cache = next((x for name, x in held if name in CACHES and x is not None), None)
    if cache is None and isinstance(found, tuple):
        cache = next((x for name, x in held if not isinstance(x, Tensor) and x is not None and not name), None)
    return Answer(y, loss, cache, found)


def unflattened(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Vectors of all tokens in one row after the other, as losses want them, with their two axes again."""
    return x.unflatten(0, shape) if x.ndim == 2 and len(x) == shape[0] * shape[1] else x
