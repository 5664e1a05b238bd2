"""Does a trace fit into memory? Its size from a run of the same model without data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from oneblock.bricks import build_model
from oneblock.explain import record as room

GIB = 2**30
LITTLE = 1 << 26
"""Entries of attention scores, all layers and heads together, below which nobody asks."""


def fits(model: nn.Module, call: Mapping[str, Any], gradients: bool = False) -> None:
    """ValueError where the steps of that call need more memory than is free, with both sizes and a way out."""
    spec: Any = model.spec
    ids = [value for name, value in call.items() if name.endswith("input_ids") and isinstance(value, Tensor)]
    longest, batch = max((x.shape[1] for x in ids), default=1), max((len(x) for x in ids), default=1)
    stacks = [spec] if hasattr(spec, "layers") else [spec.encoder, spec.decoder]
    heads = sum(block.attention.heads for stack in stacks for block in stack.layers if block.attention is not None)
    if batch * heads * longest**2 < LITTLE:
        return
    weight = next(model.parameters())
    needed = size(spec, call, weight.dtype) * (2 if gradients else 1)  # a gradient for each step
    free = torch.cuda.mem_get_info(weight.device)[0] if weight.is_cuda else available()
    if needed > free:
        raise ValueError(
            f"trace: the steps of {batch} x {longest} tokens need {needed / GIB:.1f} GiB, {free / GIB:.1f} GiB are "
            "free; give a shorter text or fewer of them"
        )


def size(spec: Any, call: Mapping[str, Any], dtype: torch.dtype) -> int:
    """Bytes of all steps of a call, counted on a model without data."""
    with torch.device("meta"):
        model = build_model(spec).to(dtype)
    empty = {name: value.to("meta") if isinstance(value, Tensor) else value for name, value in call.items()}
    empty = {name: value for name, value in empty.items() if not name.endswith("attention_mask") and name != "labels"}
    events, _ = room.record(model, empty)
    return sum(event.tensor.nbytes for event in events)


def available() -> int:
    """Bytes of memory that are free, as far as the system tells; else a great many."""
    status = Path("/proc/meminfo")
    if status.is_file():
        known = dict(line.split(":", 1) for line in status.read_text("utf-8").splitlines())
        return int(known["MemAvailable"].split()[0]) * 1024
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 1 << 60
