"""Models as folders of spec.json and model.safetensors, and files that are whole or absent."""

from oneblock.weights.files import replacing, sync_folder
from oneblock.weights.folder import fill, load, read_spec, read_tensors, save, spec_of, unique

__all__ = ["fill", "load", "read_spec", "read_tensors", "replacing", "save", "spec_of", "sync_folder", "unique"]
