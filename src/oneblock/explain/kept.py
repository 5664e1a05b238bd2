"""What a forward pass keeps for backward, as autograd says itself: every storage once, parameters left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import ref

import torch
from torch import Tensor, nn


@contextmanager
def inside(model: nn.Module) -> Iterator[list[str]]:
    """The names of the modules that run, innermost last, while the `with` lasts."""
    path: list[str] = []
    handles = []
    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(lambda *_, name=name: path.append(name)))
        handles.append(module.register_forward_hook(lambda *_: (path.pop(), None)[1], always_call=True))
    try:
        yield path
    finally:
        for handle in handles:
            handle.remove()


class Held:
    """A tensor that the graph keeps, and the module that ran when it did so."""

    def __init__(self, tensor: Tensor, module: str) -> None:
        self.tensor, self.module = tensor, module


def kept(model: nn.Module, work: Callable[[], object]) -> dict[str, int]:
    """Bytes that `work` still keeps for backward when it is done, by the module that first keeps each storage.

    What a checkpoint will compute again is kept by nobody, and so not counted; nor are its inputs, which its closure
    holds.

    >>> layer = nn.Linear(2, 3)
    >>> kept(layer, lambda: layer(torch.ones(5, 2)).tanh())
    {'': 100}
    """
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    packed: list[ref[Held]] = []
    with inside(model) as path:

        def pack(tensor: Tensor) -> Held:
            held = Held(tensor, path[-1] if path else "")
            packed.append(ref(held))
            return held

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda held: held.tensor):
            made = work()
    first: dict[int, Held] = {}
    for held in (one() for one in packed):
        if held is not None:
            first.setdefault(held.tensor.untyped_storage().data_ptr(), held)
    del made
    found: dict[str, int] = {}
    for key, held in first.items():
        size = held.tensor.untyped_storage().nbytes()
        if key not in own and size:
            found[held.module] = found.get(held.module, 0) + size
    return found
