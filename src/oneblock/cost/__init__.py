"""What a model costs, in closed form from its spec: nothing is built, no tensor library is needed."""

from oneblock.cost.parts import Part, parameters, parts

__all__ = ["Part", "parameters", "parts"]
