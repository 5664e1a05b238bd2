"""A hint for a word that nobody knows."""

from oneblock.hint.near import nearest

__all__ = ["nearest"]
