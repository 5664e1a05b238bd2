"""Weights laid out for a CPU that reads all of them for every token: `prepack` before decoding.

x: (..., inputs); weight: (outputs, inputs).
"""

from __future__ import annotations

import mmap
import warnings
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["prepack"]

M = TypeVar("M", bound=nn.Module)
BLOCKS = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
"""Whether this torch has oneDNN, whose products read weights in its own blocks."""
BYTES = torch.backends.quantized.engine in ("x86", "fbgemm") and hasattr(torch.ops.quantized, "linear_dynamic")
"""Whether it has fbgemm, whose products take weights of int8. torch says that their present form will go one day."""
NARROW = not getattr(torch.cpu, "_is_vnni_supported", bool)()
"""Whether products of bytes need inputs of 7 bits: without VNNI their sums overflow."""


def prepack(model: M, batch: int = 1, dtype: torch.dtype | str | None = None) -> M:
    """Lay out the weights of a model's linear layers, in place, as a CPU reads them fastest while decoding.

    A decoding step multiplies every matrix by one row for each text and beam, so reading the weights is all it waits
    for. Those of half precision, and of float32 for several rows, are put into oneDNN's blocks: 1.3 to 1.8 times the
    tokens per second. For a single float32 row the longer side of each matrix is laid together, in huge pages where
    the system has them. The numbers are the same up to rounding. On other devices nothing is done.

    With int8 a weight is one of 255 steps up to the largest of its row, and each product rounds its inputs to 255 steps
    of their range (Jacob et al. 2018, arXiv:1712.05877): once more two to three times the tokens per second, and
    answers that may differ.

    The model can then be neither trained nor saved nor moved: load it again for that. It holds as much memory as
    before, but a head that shares the embedding's table gets a copy of its own.

    Args:
        model: any module; its `nn.Linear` layers are replaced.
        batch: rows of a step: texts times beams.
        dtype: None keeps that of the weights; "int8" or `torch.int8`.

    Raises:
        ValueError: a batch below 1, another dtype, int8 where no layer can have it.

    >>> from oneblock import build, generate, named
    >>> model = build(named("gpt2", dim=8, depth=1, heads=2, vocab=9)).eval()
    >>> before = generate(model, [[1, 2]], max_new_tokens=3)
    >>> bool((generate(prepack(model), [[1, 2]], max_new_tokens=3) == before).all())
    True
    """
    if batch < 1:
        raise ValueError(f"batch: expected at least 1 row, got {batch}")
    if dtype not in (None, "int8", torch.int8):
        raise ValueError(f"dtype: expected int8 or None, got {dtype}; load the model in the dtype that you want")
    found = [
        (parent, name, layer)
        for parent in model.modules()
        for name, layer in parent.named_children()
        if type(layer) is nn.Linear and layer.weight.device.type == "cpu"
    ]
    if dtype is not None and not (BYTES and found):
        raise ValueError("dtype: int8 needs linear layers on an x86 CPU and a torch with fbgemm; take bfloat16")
    for parent, name, layer in found:
        setattr(parent, name, laid_out(layer, batch, dtype is not None))
    return model


def laid_out(layer: nn.Linear, batch: int, rounded: bool) -> nn.Module:
    """What takes the place of a layer."""
    if rounded:
        return Int8(layer)
    if layer.weight.dtype == torch.float32 and (batch == 1 or not BLOCKS):
        return LongRows(layer)
    return Blocks(layer, batch) if BLOCKS else layer


class Prepacked(nn.Module):
    """A linear layer without parameters."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.bias = None if layer.bias is None else layer.bias.detach()
        self.register_state_dict_pre_hook(refuse)


class Blocks(Prepacked):
    """x W^T + b, with W in oneDNN's blocks."""

    def __init__(self, layer: nn.Linear, batch: int) -> None:
        super().__init__(layer)
        self.weight = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach().contiguous(), batch)

    def forward(self, x: Tensor) -> Tensor:
        return product(x, self.weight, self.bias)


class LongRows(Prepacked):
    """x W^T + b, with the longer side of W lying together: the shorter its rows, the slower memory is read."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__(layer)
        weight = layer.weight.detach()
        self.wide = self.in_features > self.out_features
        self.weight = huge(weight) if self.wide else huge(weight.T).T

    def forward(self, x: Tensor) -> Tensor:
        if self.wide and BLOCKS and x.numel() == self.in_features:
            return product(x, self.weight, self.bias)
        return F.linear(x, self.weight, self.bias)


class Int8(Prepacked):
    """x W^T + b, with W rounded to bytes once and x at each product."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__(layer)
        weight = layer.weight.detach().float()
        step = weight.abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny) / 127  # (outputs,)
        zero = torch.zeros_like(step, dtype=torch.long)
        with warnings.catch_warnings(action="ignore"):  # that this will go one day: BYTES is asked then
            rounded = torch.quantize_per_channel(weight, step, zero, 0, torch.qint8)
        self.weight = torch.ops.quantized.linear_prepack(rounded, None if self.bias is None else self.bias.float())

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = torch.ops.quantized.linear_dynamic(x.float(), self.weight, NARROW)
        return found.type_as(x)


def product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b by oneDNN."""
    if torch.compiler.is_compiling():
        return opaque(x, weight, bias)
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return found


@torch.library.custom_op("oneblock::prepacked_linear", mutates_args=())
def opaque(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`product` as torch.compile must see it: its own rules for this product want weights that are constants."""
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return found


@opaque.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:  # noqa: ARG001
    return x.new_empty(*x.shape[:-1], weight.shape[0])


def huge(x: Tensor) -> Tensor:
    """A contiguous copy, in huge pages where the system has them: it finds its way to 4 KiB pages too slowly."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return x.contiguous()
    room = mmap.mmap(-1, max(x.nbytes, 1))
    room.madvise(mmap.MADV_HUGEPAGE)
    copy = torch.frombuffer(room, dtype=x.dtype, count=x.numel()).view(x.shape)
    return copy.copy_(x)


def refuse(*_: Any) -> None:
    """ValueError: a packed model has no state dict."""
    raise ValueError("state_dict: the model was prepacked for decoding; load it again to save or to train it")
