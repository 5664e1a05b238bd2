"""Models as folders: ours, and the hub's under every family's own names."""

from oneblock.weights.fill import empty, fill, spec_of, ties, unique
from oneblock.weights.folder import load, read_spec, read_tensors, save, save_pretrained
from oneblock.weights.foreign import read_foreign
from oneblock.weights.hub import read_hub, write_hub
from oneblock.weights.tensors import stored

__all__ = [
    "empty",
    "fill",
    "load",
    "read_foreign",
    "read_hub",
    "read_spec",
    "read_tensors",
    "save",
    "save_pretrained",
    "spec_of",
    "stored",
    "ties",
    "unique",
    "write_hub",
]
