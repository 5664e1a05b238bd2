"""Where a decoder keeps the past while it writes: the cache that was asked for, and whether its steps are compiled."""

from __future__ import annotations

from typing import Literal

import torch

from oneblock.cache import Cache, Growing, Rolling, Static, make
from oneblock.hint import nearest
from oneblock.spec import Model

__all__ = ["CacheChoice", "backend_of", "cache_for"]

CacheChoice = Cache | Literal["growing", "static", "rolling"] | None
MULTIPLE = 64
"""A compiled step's cache has room for a multiple of this, so that other lengths find their graph made."""


def cache_for(cache: CacheChoice, spec: Model, room: int, backend: str | None) -> Cache:
    """The cache to use, empty.

    None keeps all tokens, and of windowed layers the window; "rolling" is the same and needs a windowed layer;
    "growing" keeps all; "static" makes room once for `room` tokens. A `Cache` is emptied first, and may be used again.

    ValueError: no such cache, one of another model, one without room.
    """
    usual = make(spec)
    if isinstance(cache, Cache):
        return _emptied(cache, usual, room, backend)
    if backend is not None:
        if cache not in (None, "static"):
            raise ValueError(f'compile: expected cache="static", whose shapes stay the same, got {cache!r}')
        return make(spec, -(-room // MULTIPLE) * MULTIPLE)
    if cache == "static":
        return make(spec, room)
    if cache == "growing":
        return Cache({path: Growing() for path in usual.stores})
    if cache == "rolling" and not any(isinstance(store, Rolling) for store in usual.stores.values()):
        raise ValueError('cache: "rolling" is for windowed attention, the model has none; take "growing" or "static"')
    if cache not in (None, "rolling"):
        raise ValueError(f'cache: expected "growing", "static", "rolling" or a Cache, got {cache!r}')
    return usual


def backend_of(compile: bool | str | None) -> str | None:
    """The backend of `torch.compile` to use, None for none. ValueError: torch knows none of that name, or no name.

    >>> backend_of(True), backend_of(False), backend_of("eager")
    ('inductor', None, 'eager')
    """
    if compile is None or isinstance(compile, bool):
        return "inductor" if compile else None
    if not isinstance(compile, str):
        raise ValueError(f"compile: expected True, False or the name of a backend, got {compile!r}")
    if compile not in torch.compiler.list_backends(exclude_tags=()):
        usual = [*torch.compiler.list_backends(), "eager", "aot_eager"]
        raise ValueError(f"compile: {compile!r} is no backend of torch.compile here; {nearest(compile, usual)}")
    return compile


def _emptied(cache: Cache, usual: Cache, room: int, backend: str | None) -> Cache:
    if cache.stores.keys() != usual.stores.keys():
        raise ValueError(f"cache: expected one for {len(usual.stores)} layers, got one for {len(cache.stores)}")
    for store in cache.stores.values():
        if isinstance(store, Static) and store.length < room:
            raise ValueError(f"cache: expected room for {room} tokens, got {store.length}; make a longer one")
        if backend is not None and not isinstance(store, Static):
            raise ValueError(f"compile: expected a static cache, got a {type(store).__name__.lower()} one")
    cache.reset()
    return cache
