"""Models as folders of spec.json and model.safetensors."""

from oneblock.weights.folder import fill, load, read_spec, read_tensors, save, spec_of, unique

__all__ = ["fill", "load", "read_spec", "read_tensors", "save", "spec_of", "unique"]
