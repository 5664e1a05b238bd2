"""Any module, watched from outside: its torch operations in order, those that a Transformer is made of marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from oneblock.explain.step import Operand, Step
from oneblock.generate.mode import evaluating
from oneblock.hint import first_line

OPERATIONS = {
    "op.matmul": "mm addmm bmm baddbmm matmul linear _grouped_mm",
    "op.softmax": "softmax _softmax _log_softmax _safe_softmax",
    "op.norm": "layer_norm native_layer_norm rms_norm _fused_rms_norm native_batch_norm native_group_norm",
    "op.attention": "scaled_dot_product_attention _scaled_dot_product_flash_attention_for_cpu "
    "_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention _native_multi_head_attention",
    "op.layer": "_transformer_encoder_layer_fwd",
    "op.embedding": "embedding",
    "op.activation": "relu gelu silu tanh sigmoid",
    "op.mask": "masked_fill where tril triu",
    "op.add": "add",
}
"""What an operation is in a Transformer, and torch's names of it; all others are only shapes and numbers."""
KINDS = {name: kind for kind, names in OPERATIONS.items() for name in names.split()}
VIEWS = (
    "view t transpose permute expand unsqueeze squeeze reshape slice select split _unsafe_view detach clone alias "
    "as_strided unbind chunk _to_copy unflatten"
)
"""Operations that only move or name numbers: not told."""


class Watch(TorchDispatchMode):
    """Notes every operation that computes numbers, below the module that it happens in."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self.path: list[str] = [""]
        self.names: dict[int, str] = {}
        self.alive: list[Tensor] = []  # so that no id is given twice
        self.times: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the operation, then note it."""
        del types
        found = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__.rstrip("_") or func.overloadpacket.__name__
        results = [x for x in tree_flatten(found)[0] if isinstance(x, Tensor)]
        sources = [x for x in tree_flatten((args, kwargs or {}))[0] if isinstance(x, Tensor)]
        if name in VIEWS.split():
            for x in results:  # another view of the same numbers keeps their name
                self.alive.append(x)
                self.names[id(x)] = next((self.names[id(y)] for y in sources if id(y) in self.names), "")
        elif results:
            self.note(name, func, args, dict(kwargs or {}), results[0], sources)
        return found

    def note(
        self, name: str, func: Callable[..., Any], args: Any, kwargs: Any, result: Tensor, sources: list[Tensor]
    ) -> None:
        """One more step."""
        full = f"{self.path[-1]}.{name}".lstrip(".")
        self.times[full] += 1
        path = full if self.times[full] == 1 else f"{full}#{self.times[full]}"
        operands = {
            f"x{number}": Operand("step" if self.names.get(id(x)) else "input", self.names.get(id(x), ""), x)
            for number, x in enumerate(sources)
        }
        kind = KINDS.get(name, "op.other")
        dims = tuple(f"n{axis}" for axis in range(result.ndim))

        def again(**_: Any) -> Tensor:
            made = func(*args, **kwargs)
            return next(x for x in tree_flatten(made)[0] if isinstance(x, Tensor))

        self.names[id(result)] = path
        self.steps.append(Step(path, kind, name, dims, result, operands, again))


def watched(module: nn.Module, call: Mapping[str, Any], inputs: tuple[Any, ...] = ()) -> tuple[list[Step], Any]:
    """(the operations of one call in eval mode, its output). ValueError: a forward that fails, with its own words."""
    watch, handles = Watch(), []
    for name, part in module.named_modules():
        handles.append(part.register_forward_pre_hook(lambda *_, name=name: watch.path.append(name)))
        handles.append(part.register_forward_hook(lambda *_: (watch.path.pop(), None)[1], always_call=True))
    try:
        with evaluating(module), torch.no_grad(), watch:
            output = module(*inputs, **call)
    except Exception as error:
        said = first_line(error)
        raise ValueError(
            f"trace: the forward of {type(module).__name__} failed: {type(error).__name__}: {said}"
        ) from error
    finally:
        for handle in handles:
            handle.remove()
    return watch.steps, output
