"""One global listener: `tap` hands it every named tensor, `listen` installs it for a while.

The listener is a module global: torch.compile guards on it, so a model compiled before still shows every tap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from threading import Lock
from typing import Any

from torch import Tensor, nn

Edit = Callable[[Tensor], Tensor]

_listener: Seen | None = None
_lock = Lock()


class Seen(dict[str, Tensor]):
    """What was tapped, in order: full name ("layers.0.attention.pattern") -> tensor; `operands` has what made it.

    A name tapped again (an encoder run twice, say) gets `#2`, `#3`, ... appended.
    """

    def __init__(self, edit: Mapping[str, Edit], only: str) -> None:
        super().__init__()
        self.operands: dict[str, dict[str, Any]] = {}
        self.path: list[str] = []
        self.edit, self.only, self.times = edit, only, Counter[str]()

    def name(self, last: str) -> str:
        """The full name that a tap called `last` has where the forward pass is now."""
        return f"{self.path[-1]}.{last}" if self.path and self.path[-1] else last

    def wants(self, last: str) -> bool:
        """Whether someone asked to see or edit this tap."""
        name = self.name(last)
        return fnmatchcase(name, self.only) or any(fnmatchcase(name, glob) for glob in self.edit)

    def __call__(self, x: Tensor, last: str, operands: dict[str, Any]) -> Tensor:
        name = self.name(last)
        self.times[name] += 1
        key = name if self.times[name] == 1 else f"{name}#{self.times[name]}"
        for glob, f in self.edit.items():
            x = f(x) if fnmatchcase(key, glob) else x
        if fnmatchcase(name, self.only):
            self[key] = x
            self.operands[key] = operands
        return x


def tap(x: Tensor, name: str, /, **operands: Any) -> Tensor:
    """Return `x`, or what the listener makes of it. `operands` are the tensors and numbers `x` was computed from."""
    return x if _listener is None else _listener(x, name, operands)


def wanted(*names: str) -> bool:
    """Whether a listener asked for one of these taps of the module that runs now."""
    return _listener is not None and any(_listener.wants(name) for name in names)


@contextmanager
def listen(model: nn.Module, edit: Mapping[str, Edit] | None = None, only: str = "*") -> Iterator[Seen]:
    """Record every tap of `model` whose full name matches the glob `only`, and replace those that `edit` names.

    Args:
        model: the module whose forward passes are listened to, inside the `with`.
        edit: glob of full names -> function from the tensor to its replacement of the same shape. Patching, ablation
            and steering are all this.
        only: glob of full names to record.

    Raises:
        ValueError: when someone already listens.

    >>> import torch, oneblock
    >>> model = oneblock.build(oneblock.named("vaswani", dim=8, depth=1, heads=2, hidden=16, vocab=9)).eval()
    >>> with listen(model, only="decoder.*.pattern") as seen:
    ...     _ = model(torch.tensor([[3, 4, 2]]), decoder_input_ids=torch.tensor([[1, 5]]))
    >>> {name: tuple(x.shape) for name, x in seen.items()}
    {'decoder.layers.0.attention.pattern': (1, 2, 2, 2), 'decoder.layers.0.cross.pattern': (1, 2, 2, 3)}
    """
    global _listener
    seen = Seen(edit or {}, only)
    if not _lock.acquire(blocking=False):
        raise ValueError("listen: someone already listens; leave that `with` first")
    handles = []
    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(lambda *_, name=name: seen.path.append(name)))
        handles.append(module.register_forward_hook(lambda *_: (seen.path.pop(), None)[1], always_call=True))
    _listener = seen
    try:
        yield seen
    finally:
        _listener = None
        for handle in handles:
            handle.remove()
        _lock.release()
