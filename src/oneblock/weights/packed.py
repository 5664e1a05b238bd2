"""A model in one flat file: seven integers, then all numbers as float32, in an order that both sides know."""

from __future__ import annotations

from math import prod
from pathlib import Path

import torch
from torch import Tensor

from oneblock.zoo.authors import FLAT, HEADER

Sizes = dict[str, int]


def packed(path: Path) -> bool:
    """Whether a file is one of these: its length is what its first integers say."""
    return path.suffix == ".bin" and path.is_file() and _sizes(path) is not None


def unpacked(path: Path) -> tuple[dict[str, Tensor], Sizes]:
    """(name -> tensor, memory-mapped; what the integers say).

    Raises:
        ValueError: not such a file, or cut short.
    """
    sizes = _sizes(path)
    if sizes is None:
        raise ValueError(f"{path}: no flat file of a model (its length is not what its first integers say)")
    numbers = torch.from_file(str(path), shared=False, size=path.stat().st_size // 4, dtype=torch.float32)
    found: dict[str, Tensor] = {}
    at = len(HEADER)
    for name, shape in _parts(sizes):
        whole = numbers[at : at + prod(shape)].view(shape)
        at += prod(shape)
        if "*" in name:
            found |= {name.replace("*", str(layer)): part for layer, part in enumerate(whole)}
        elif name:
            found[name] = whole
    return found, sizes


def _sizes(path: Path) -> Sizes | None:
    """What the integers at the start say, if the file has the length that follows from it."""
    with path.open("rb") as file:
        head = file.read(4 * len(HEADER))
    words = [int.from_bytes(head[i : i + 4], "little", signed=True) for i in range(0, len(head), 4)]
    if len(words) < len(HEADER) or 0 in words or min(words[:5]) < 0 or words[6] < 0 or words[0] % words[3]:
        return None
    sizes = dict(zip(HEADER, words, strict=True))
    length = 4 * (len(HEADER) + sum(prod(shape) for _, shape in _parts(sizes)))
    return sizes if path.stat().st_size == length else None


def _parts(sizes: Sizes) -> list[tuple[str, tuple[int, ...]]]:
    """(name, shape) of all that follows the integers, in order; the last, the head, only where vocab is negative."""
    head_dim = sizes["dim"] // sizes["heads"]
    known = sizes | {"vocab": abs(sizes["vocab"]), "head_dim": head_dim, "narrow": sizes["kv_heads"] * head_dim}
    parts = FLAT if sizes["vocab"] < 0 else FLAT[:-1]
    return [(name, tuple(known[word] for word in words)) for name, words in parts]
