"""The weights of a model folder beside a written file, under our names, where the file's `load` looks for them."""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from oneblock.files import replacing
from oneblock.weights import load, unique
from oneblock.weights.tensors import WEIGHTS


def write_weights(folder: Path, path: Path) -> None:
    """Write the weights of a folder, ours or the hub's, as they are stored. ValueError: they cannot be read."""
    tensors = unique(load(folder, dtype=None))
    with replacing(path) as fresh:
        save_file(tensors, fresh, metadata={"format": "pt"})


def state(folder: Path) -> dict[str, Tensor]:
    """Every tensor of a folder's model by name, tied ones twice, in float32."""
    return dict(load(folder).state_dict())


__all__ = ["WEIGHTS", "state", "write_weights"]
