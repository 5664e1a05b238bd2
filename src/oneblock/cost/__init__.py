"""What a model costs, in closed form from its spec: nothing is built, no tensor library is needed."""

from oneblock.cost.cache import CacheBytes, cache_bytes
from oneblock.cost.count import active, distinct, parameters
from oneblock.cost.parts import Part, parts

__all__ = ["CacheBytes", "Part", "active", "cache_bytes", "distinct", "parameters", "parts"]
