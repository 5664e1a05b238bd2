"""A trace as a worked exercise: data in no language, which a terminal, a page and JSON print alike."""

from oneblock.explain.worked.build import exercise
from oneblock.explain.worked.form import Exercise

__all__ = ["Exercise", "exercise"]
