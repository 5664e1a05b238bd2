"""A spec as one readable PyTorch file, or as ONNX."""

from oneblock.export.write import standalone

__all__ = ["standalone"]
