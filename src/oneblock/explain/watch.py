"""Any module, watched from outside: its torch operations in order, those that a Transformer is made of marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten

from oneblock.check.seeing.watch import COPIES, VIEWS, Operation, watching
from oneblock.explain.step import Operand, Step
from oneblock.generate.mode import evaluating
from oneblock.hint import first_line

OPERATIONS = {
    "op.matmul": "mm addmm bmm baddbmm matmul linear _grouped_mm",
    "op.softmax": "softmax _softmax _log_softmax _safe_softmax",
    "op.norm": "layer_norm native_layer_norm rms_norm _fused_rms_norm native_batch_norm native_group_norm",
    "op.attention": "scaled_dot_product_attention _scaled_dot_product_flash_attention_for_cpu "
    "_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention",
    "op.embedding": "embedding",
    "op.activation": "relu gelu silu tanh sigmoid",
    "op.mask": "masked_fill where tril triu",
    "op.add": "add",
}
"""What an operation is in a Transformer, and torch's names of it; all others are only shapes and numbers."""
KINDS = {name: kind for kind, names in OPERATIONS.items() for name in names.split()}


def watched(module: nn.Module, call: Mapping[str, Any], inputs: tuple[Any, ...] = ()) -> tuple[list[Step], Any]:
    """(the operations of one call in eval mode, its output). ValueError: a forward that fails, with its own words."""
    try:
        with evaluating(module), torch.no_grad(), watching(module) as watch:
            output = module(*inputs, **call)
    except Exception as error:
        raise ValueError(
            f"trace: the forward of {type(module).__name__} failed: {type(error).__name__}: {first_line(error)}"
        ) from error
    return list(steps(watch.operations)), output


def steps(operations: Sequence[Operation]) -> Iterator[Step]:
    """Every operation that computes numbers as a step; views and copies keep the name of what they look at."""
    names: dict[int, str] = {}
    times: Counter[str] = Counter()
    for one in operations:
        held = [names.get(source, "") if source is not None else "" for source in one.sources]
        if one.name in VIEWS | COPIES:
            names[one.number] = next((name for name in held if name), "")
            continue
        full = f"{one.path}.{one.name}".lstrip(".")
        times[full] += 1
        names[one.number] = path = full if times[full] == 1 else f"{full}#{times[full]}"
        operands = {
            f"x{number}": Operand("step" if name else "input", name, x)
            for number, (name, x) in enumerate(zip(held, one.operands, strict=True))
        }
        dims = tuple(f"n{axis}" for axis in range(one.result.ndim))
        yield Step(path, KINDS.get(one.name, "op.other"), one.name, dims, one.result, operands, again(one))


def again(one: Operation) -> Callable[..., Tensor]:
    """What an operation gives when it runs once more."""
    return lambda **_: next(x for x in tree_flatten(one.again())[0] if isinstance(x, Tensor))
