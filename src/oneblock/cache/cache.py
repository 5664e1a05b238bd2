"""What a whole model remembers between steps: a store per attention layer, and the places of all tokens so far."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from oneblock.cache.stores import Growing, Rolling, Static, Store, Tensors
from oneblock.mask import Places
from oneblock.spec import Model, Window, atoms


class Cache:
    """Keys and values of past tokens. Make one with `make`, hand it to the model, and it fills itself.

    `len(cache)` is the number of tokens so far, padding included.
    """

    def __init__(self, stores: dict[str, Store]) -> None:
        self.stores = stores
        self.seen: Places | None = None
        self._once: dict[str, tuple[Tensor, ...]] = {}
        self._memo: dict[object, Places] = {}

    def __len__(self) -> int:
        return 0 if self.seen is None else self.seen.length

    def begin(self, here: Places) -> None:
        """Tell the cache which tokens come next; the model calls this once per forward.

        Raises:
            ValueError: where a static store has no room for them; the cache stays as it was.
        """
        total = len(self) + here.length
        for store in self.stores.values():
            if isinstance(store, Static) and total > store.length:
                raise ValueError(f"cache: expected at most {store.length} tokens, got {total}; make a longer one")
        self.seen = here if self.seen is None else self.seen.then(here)
        self._memo = {
            kind(store): store.places(self.seen) for store in self.stores.values() if isinstance(store, Static)
        }

    def remember(self, path: str, here: Places, new: Tensors) -> tuple[Tensors, Places]:
        """Add new tokens (batch, kv_heads, length, head_dim) of a layer; give all it may look at, with places."""
        assert self.seen is not None, "begin comes first"
        store = self.stores[path]
        kept = store.extend(new, here)
        if kind(store) not in self._memo:
            self._memo[kind(store)] = here if len(self) == here.length else store.places(self.seen)
        return kept, self._memo[kind(store)]

    def once(self, path: str, make: Callable[[], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """What `make` gave the first time: keys and values of a memory that does not change."""
        if path not in self._once:
            self._once[path] = make()
        return self._once[path]

    def reorder(self, rows: Tensor, memory_rows: Tensor | None = None) -> None:
        """Row i goes on from the old row `rows[i]`; rows may be fewer, more or repeated. `memory_rows` likewise for
        what was remembered once per memory row."""
        for store in self.stores.values():
            store.kept = {name: tensor.index_select(0, rows) for name, tensor in store.kept.items()}
        self.seen = None if self.seen is None else self.seen.rows(rows)
        if memory_rows is not None:
            for path, kept in self._once.items():
                self._once[path] = tuple(tensor.index_select(0, memory_rows) for tensor in kept)

    def crop(self, length: int) -> None:
        """Keep the first `length` tokens; a negative number drops so many from the end; more than there are keeps all.

        Raises:
            ValueError: where a rolling store no longer has what would be needed.
        """
        before = len(self)
        length = max(0, before + length) if length < 0 else min(length, before)
        for store in self.stores.values():
            store.crop(length, before)
        self.seen = None if self.seen is None or length == 0 else self.seen.part(0, length)
        if length == 0:
            self._forget()

    def reset(self) -> None:
        """Forget everything; the same object can serve another text."""
        self.seen = None
        self._once = {}
        self._forget()

    def _forget(self) -> None:
        for store in self.stores.values():
            if isinstance(store, Static):
                store.empty = True
            else:
                store.kept = {}


def make(spec: Model, length: int | None = None) -> Cache:
    """A cache for a model or a decoder.

    Windowed layers get a rolling store, others a growing one; with `length`, every layer gets a static one with room
    for that many tokens.

    >>> from oneblock.zoo import named
    >>> len(make(named("vaswani").decoder))
    0
    """
    return Cache(
        {
            f"layers.{index}.attention": _store(block.attention.mask, length)
            for index, block in enumerate(spec.layers)
            if block.attention is not None
        }
    )


def kind(store: Store) -> tuple[type, int | None]:
    """What the places of a store's tensors depend on."""
    return type(store), getattr(store, "window", None)


def _store(mask: object, length: int | None) -> Store:
    if length is not None:
        return Static(length)
    backs = [rule.back for rule in atoms(mask) if isinstance(rule, Window)]  # type: ignore[arg-type]
    return Rolling(min(backs)) if backs else Growing()
