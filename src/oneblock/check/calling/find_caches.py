"""The cache of an unknown module: given back when asked for, handed in to be filled, or held by the module itself."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace

import torch
from torch import nn

from oneblock.check.calling.adapter import Ask
from oneblock.check.calling.convention import Convention, Held, attempt
from oneblock.check.calling.names import CACHE, PAST, USE_CACHE
from oneblock.check.subject import gap

MAKE = ("make_cache", "new_cache", "init_cache", "empty_cache", "create_cache", "get_cache", "make_kv_cache")
"""Methods of a module that make an empty cache, without arguments."""
RESET = ("reset_cache", "reset_kv_cache", "clear_cache", "clear_kv_cache", "reset_caches", "reset_state", "reset")
"""Methods of a module that empty the cache it holds."""


def cached(twin: nn.Module, way: Convention, parameters: Mapping[str, inspect.Parameter], ask: Ask) -> Convention:
    """The convention with its cache, where asking for one gives one that holds something."""
    for one in likely(twin, way, parameters):
        try:
            with torch.random.fork_rng(devices=[]):
                found = attempt(twin, one, ask, use_cache=True).cache
                if found is not None and (one.held is None or steps(twin, one, ask)):
                    return one
        except Exception:
            continue
    return way


def likely(twin: nn.Module, way: Convention, parameters: Mapping[str, inspect.Parameter]) -> Iterator[Convention]:
    """Ways in which the cache may be asked for."""
    name = next((one for one in CACHE if one in parameters), None)
    flag = next((one for one in USE_CACHE if one in parameters), None)
    if name is not None:
        yield replace(way, cache=name, use_cache=flag)
        makers = [one for one in MAKE if callable(getattr(twin, one, None))]
        for begin in (*makers, "list", "dict"):
            yield replace(way, cache=name, use_cache=flag, begin=begin)
        return
    reset = next((one for one in RESET if callable(getattr(twin, one, None))), None)
    past = next((one for one in PAST if one in parameters), None)
    if past is not None or (flag is not None and reset is not None):
        yield replace(way, use_cache=flag, held=Held(past, reset))


def steps(twin: nn.Module, way: Convention, ask: Ask) -> bool:
    """Whether a module that holds its cache answers the second of two parts otherwise than without the first."""
    first, second = (ask.but(tokens=x) for x in (ask.tokens[:, :3], ask.tokens[:, 3:]))
    cache = attempt(twin, way, first, use_cache=True).cache
    try:
        return gap(attempt(twin, way, second, cache=cache).y, attempt(twin, way, second).y) > 1e-6
    except Exception:
        return True  # a fault that a check reports
