"""Caches of unknown modules: copied, cut, and put into another order of rows, by whatever means they come with.

Shapes: kept keys and values are usually (batch, heads, length, head_dim).
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_map

from oneblock.check.calling.adapter import Adapter, Ask

REORDER = ("reorder", "reorder_cache", "batch_select_indices", "index_select", "select_rows")
"""Methods that put the rows of a cache into another order."""
CROP = ("crop", "truncate", "cut", "trim")
"""Methods that keep the first tokens of a cache."""
OF_MODULE = ("_reorder_cache", "reorder_cache", "reorder_past", "reorder_incremental_state")
"""Methods of a module that reorder its cache: (cache, rows)."""


def twin(cache: Any) -> Any:
    """A copy that nobody else writes into."""
    return copy.deepcopy(cache)


def plain(cache: Any) -> bool:
    """Whether a cache is nothing but tuples, lists and dicts of tensors."""
    leaves = tree_flatten(cache)[0]
    return isinstance(cache, tuple | list | dict) and all(x is None or isinstance(x, Tensor | int) for x in leaves)


def reorderer(adapter: Adapter, module: nn.Module, cache: Any) -> Callable[[Any, Tensor], Any] | None:
    """How the rows of this kind of cache are chosen: (cache, rows) -> cache; None: nobody knows."""
    if adapter.reorder is not None:
        return adapter.reorder
    for name in REORDER:
        method = getattr(type(cache), name, None)
        if callable(method):
            return lambda one, rows, name=name: given(getattr(one, name)(rows), one)
    for name in OF_MODULE:
        method = getattr(module, name, None)
        if callable(method) and len(inspect.signature(method).parameters) == 2:
            return lambda one, rows, method=method: given(method(one, rows), one)
    return selected if plain(cache) else None


def cropper(adapter: Adapter, cache: Any, length: int) -> Callable[[Any, int, int], Any] | None:
    """How a cache of `length` tokens is cut to its first: (cache, wanted, held) -> cache; None: nobody knows.

    Some caches take the number of tokens to keep, some only the number to drop, below 0.
    """
    if adapter.crop is not None:
        of_adapter = adapter.crop
        return lambda one, wanted, held: of_adapter(one, wanted)  # noqa: ARG005
    name = next((name for name in CROP if callable(getattr(type(cache), name, None))), None)
    if name is None:
        return None
    try:
        getattr(twin(cache), name)(length - 1)
    except (ValueError, NotImplementedError, RuntimeError):
        return lambda one, wanted, held: given(getattr(one, name)(wanted - held), one) if wanted < held else one
    return lambda one, wanted, held: given(getattr(one, name)(wanted), one)  # noqa: ARG005


def given(result: Any, cache: Any) -> Any:
    """What a method gave back, or the cache itself where it works in place."""
    return cache if result is None or isinstance(result, bool | int) else result


def selected(cache: Any, rows: Tensor) -> Any:
    """Rows of every tensor of a plain cache."""
    return tree_map(lambda x: x.index_select(0, rows) if isinstance(x, Tensor) and x.ndim >= 3 else x, cache)


def part(ask: Ask, begin: int, end: int) -> Ask:
    """The question about the tokens from `begin` to `end`, those before being in the cache: masks cover both."""
    cut = ask.but(tokens=ask.tokens[:, begin:end])
    changes: dict[str, Tensor] = {}
    if ask.real is not None:
        changes["real"] = ask.real[:, :end]
    for name in ("positions", "labels", "documents"):
        x = getattr(ask, name)
        if x is not None:
            changes[name] = x[:, begin:end]
    return cut.but(**changes)


def cuts(sizes: tuple[int, ...], length: int) -> list[tuple[int, int]]:
    """(begin, end) of parts of these sizes; the last takes the rest."""
    ends = torch.tensor(sizes).cumsum(0).tolist()
    ends = [end for end in ends if end < length] + [length]
    return list(zip([0, *ends[:-1]], ends, strict=True))
