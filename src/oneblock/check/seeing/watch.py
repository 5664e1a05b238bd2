"""One forward pass, watched: every torch operation, its operands, its module and the line that asked for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_unflatten

from oneblock.check.finding import Where

HERE = str(Path(__file__).parents[1]) + os.sep
TORCH = str(Path(torch.__file__).parent) + os.sep
VIEWS = frozenset(
    [
        "view",
        "t",
        "transpose",
        "permute",
        "expand",
        "unsqueeze",
        "squeeze",
        "reshape",
        "slice",
        "select",
        "split",
        "split_with_sizes",
        "_unsafe_view",
        "detach",
        "alias",
        "as_strided",
        "unbind",
        "chunk",
        "unflatten",
        "_reshape_alias",
        "lift_fresh",
    ]
)
"""Operations that only look at the same numbers in another way."""
COPIES = frozenset(["clone", "_to_copy", "copy"])
"""Operations that copy numbers as they are."""
LARGEST = 4_000_000
"""Numbers in the largest tensor that is kept."""


@dataclass
class Operation:
    """One operation: torch's name of it, its operands as they were, its result, and where it was asked for.

    `sources[n]` is the number of the operation that made operand n (views and copies included), None: a weight, a
    constant or an input. `weights`: which operands are parameters or buffers; `learned`: which are parameters.
    """

    number: int
    name: str
    path: str
    operands: list[Tensor]
    sources: list[int | None]
    result: Tensor
    scalars: list[float]
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    file: str | None = None
    line: int | None = None
    weights: list[bool] = field(default_factory=list)
    learned: list[bool] = field(default_factory=list)
    again: Callable[[], Any] = tuple
    """Runs it once more, on its operands as they were."""

    @property
    def where(self) -> Where:
        """The place that a finding names."""
        return Where(self.path, self.file, self.line)


class Watch(TorchDispatchMode):
    """Notes operations in order. `keep=False` notes names and places, no numbers."""

    def __init__(self, module: nn.Module, keep: bool = True) -> None:
        super().__init__()
        self.keep = keep
        self.operations: list[Operation] = []
        self.path: list[str] = [""]
        self.made: dict[int, int] = {}
        self.alive: list[Tensor] = []  # so that no id is given twice
        state = [*module.parameters(), *module.buffers()]
        self.weights = {x.untyped_storage().data_ptr() for x in state if x.device.type != "meta"}
        self.learned = {x.untyped_storage().data_ptr() for x in module.parameters() if x.device.type != "meta"}
        self.failed: Where | None = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the operation, then note it."""
        del types
        options = dict(kwargs or {})
        flat, nest = tree_flatten((args, options))
        operands = [x for x in flat if isinstance(x, Tensor)]
        before = [self.kept(x) for x in operands] if self.keep else operands
        name = name_of(func)
        fresh = name.endswith("_like") or name.startswith("new_")  # of the operand only the shape is used
        sources = [None if fresh else self.made.get(id(x)) for x in operands]
        try:
            found = func(*args, **options)
        except Exception:
            self.failed = Where(self.path[-1], *asked_at())
            raise
        results = [x for x in tree_flatten(found)[0] if isinstance(x, Tensor)]
        if not results:
            return found
        operation = Operation(
            len(self.operations),
            name,
            self.path[-1],
            before,
            sources,
            self.kept(results[0]) if self.keep else results[0],
            [float(x) for x in flat if isinstance(x, int | float) and not isinstance(x, bool)],
            args if name in ARGUED else (),
            options if name in ARGUED else {},
            *asked_at(),
            [x.untyped_storage().data_ptr() in self.weights for x in operands],
            [x.untyped_storage().data_ptr() in self.learned for x in operands],
            again_of(func, flat, before, nest),
        )
        self.operations.append(operation)
        for x in results:
            self.made[id(x)] = operation.number
            self.alive.append(x)
        return found

    def kept(self, x: Tensor) -> Tensor:
        """The numbers as they are now; weights and very large tensors are not copied."""
        if x.numel() > LARGEST or x.untyped_storage().data_ptr() in self.weights:
            return x.detach()
        return x.detach().clone()


def users(operations: Sequence[Operation]) -> dict[int, list[Operation]]:
    """Number of an operation -> those that read its result, in order."""
    found: dict[int, list[Operation]] = {}
    for one in operations:
        for source in {n for n in one.sources if n is not None}:
            found.setdefault(source, []).append(one)
    return found


def again_of(func: Any, flat: Sequence[Any], before: Sequence[Tensor], nest: Any) -> Callable[[], Any]:
    """Runs an operation once more, on its operands as they were."""

    def run() -> Any:
        kept = iter(before)
        args, options = tree_unflatten([next(kept) if isinstance(x, Tensor) else x for x in flat], nest)
        return func(*args, **options)

    return run


def name_of(func: Any) -> str:
    """Torch's name of an operation, the same in place or not."""
    name = str(func.overloadpacket.__name__)
    return name.rstrip("_") or name


ARGUED = frozenset(
    [
        "_softmax",
        "_safe_softmax",
        "_log_softmax",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_efficient_attention",
        "native_layer_norm",
        "_fused_rms_norm",
        "gelu",
        "native_dropout",
        "bernoulli",
        "sum",
        "mean",
        "var",
        "std",
        "var_mean",
        "native_batch_norm",
        "native_group_norm",
        "triu",
        "tril",
        "cumsum",
        "amax",
        "max",
        "_scaled_dot_product_attention_math",
        "baddbmm",
        "addmm",
    ]
)
"""Operations whose arguments matter beyond their tensors."""


def asked_at() -> tuple[str | None, int | None]:
    """File and line of the innermost frame that is neither torch's nor ours."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((TORCH, HERE)) and not name.startswith("<frozen"):
            return name, frame.f_lineno
        if name.startswith(HERE) and frame.f_code.co_name == "answer":
            return None, None
        frame = frame.f_back  # type: ignore[assignment]
    return None, None


@contextmanager
def watching(module: nn.Module, watch: Watch | None = None, keep: bool = True) -> Iterator[Watch]:
    """Watch every operation of `module` inside the `with`. The module must be one of ours to hook: a copy."""
    watch, handles = watch or Watch(module, keep), []
    for name, part in module.named_modules():
        handles.append(part.register_forward_pre_hook(lambda *_, name=name: watch.path.append(name)))
        handles.append(part.register_forward_hook(lambda *_: (watch.path.pop(), None)[1], always_call=True))
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # one opaque operation otherwise
    try:
        with watch:
            yield watch
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for handle in handles:
            handle.remove()
