"""A spec as one readable PyTorch file, or as ONNX."""

from oneblock.export.write import LINES, standalone

__all__ = ["LINES", "standalone"]
