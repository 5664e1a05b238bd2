"""Count the bytes of every tensor that is alive: what a graph keeps for backward, and the most at any moment."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Meter(TorchDispatchMode):
    """Inside the `with`, `now` and `most` are the bytes of storages made since it began.

    Saved-tensor hooks would miss what a checkpoint's closure or a memo keeps; a storage that lives is counted here,
    whoever holds it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self.known: dict[int, Any] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(made):
            if isinstance(leaf, Tensor):
                self.count(leaf.untyped_storage())
        return made

    def count(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self.known:
            return

        def gone(_: object) -> None:
            self.known.pop(key, None)
            self.now -= size

        self.known[key] = weakref.ref(storage, gone)
        self.now += size
        self.most = max(self.most, self.now)
