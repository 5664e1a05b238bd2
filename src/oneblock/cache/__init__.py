"""What attention remembers between decoding steps."""

from oneblock.cache.cache import Cache, make
from oneblock.cache.stores import Growing, Rolling, Static, Store

__all__ = ["Cache", "Growing", "Rolling", "Static", "Store", "make"]
