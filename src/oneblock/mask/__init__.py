"""Places of tokens, what a mask means for them, and how a kernel is told."""

from oneblock.mask.convert import from_added, from_hidden, to_added, to_hidden
from oneblock.mask.meaning import allowed, rule
from oneblock.mask.places import Places, places
from oneblock.mask.sight import Bias, Sight

__all__ = ["Bias", "Places", "Sight", "allowed", "from_added", "from_hidden", "places", "rule", "to_added", "to_hidden"]
