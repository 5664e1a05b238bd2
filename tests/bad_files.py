"""What tests of bad model folders share: a good model to damage, and how a refusal must look."""

from __future__ import annotations

import json
import struct
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

import oneblock
from oneblock.zoo import named

WEIGHTS, INDEX, CONFIG = "model.safetensors", "model.safetensors.index.json", "config.json"
Q = "model.layers.0.self_attn.q_proj.weight"
SMALL = {"dim": 8, "depth": 2, "heads": 2, "hidden": 12, "vocab": 11, "length": 16}


@cache
def model() -> Any:
    torch.manual_seed(0)
    return oneblock.build(named("llama", **SMALL))


def refused(path: object, *words: str) -> str:
    """The one line with which `load` refuses it."""
    with pytest.raises(ValueError) as error:  # noqa: PT011
        oneblock.load(path)
    line = str(error.value)
    assert "\n" not in line
    for word in words:
        assert word in line, line
    return line


def rebuilt(header: Any, data: bytes, length: int | None = None) -> bytes:
    """A safetensors file of a header and data as they come."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def parts(path: Path) -> tuple[dict[str, Any], bytes]:
    """(header, data) of a safetensors file."""
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]
