"""Words for whoever gave bad input: the known word that was meant, an error in one line."""

from oneblock.hint.line import first_line
from oneblock.hint.near import nearest

__all__ = ["first_line", "nearest"]
