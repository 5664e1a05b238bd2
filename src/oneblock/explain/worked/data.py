"""An exercise as what JSON knows: the same numbers, with the words of one language beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from oneblock.explain.worked.form import Exercise, Overview, Section, Shown
from oneblock.spec import Model, Seq2Seq, to_dict
from oneblock.words import say

PICTURES = ("all", "overview")
"""Fields that hold weights for pictures only."""


def data(made: Any, lang: str = "en") -> Any:
    """Dataclasses as dictionaries, tuples as lists; numbers that JSON does not know (−∞) become None.

    >>> data((1.0, float("-inf")))
    [1.0, None]
    """
    if isinstance(made, float):
        return made if math.isfinite(made) else None
    if isinstance(made, Model | Seq2Seq):
        return to_dict(made)
    if is_dataclass(made) and not isinstance(made, type):
        found = {
            field.name: data(getattr(made, field.name), lang)
            for field in fields(made)
            if field.name not in PICTURES or (not isinstance(made, Exercise | Overview) and field.name != "all")
        }
        return spoken(made, lang) | found
    if isinstance(made, Mapping):
        return {str(key): data(value, lang) for key, value in made.items()}
    return [data(one, lang) for one in made] if isinstance(made, tuple | list) else made


def spoken(made: Any, lang: str) -> dict[str, str]:
    """Name, purpose and formula of a step or a section."""
    if not isinstance(made, Shown | Section):
        return {}
    said = say(made.kind, lang)
    if isinstance(made, Shown):
        return {"name": said.name, "purpose": said.purpose}
    return {"name": said.name, "symbol": said.symbol, "formula": said.formula, "purpose": said.purpose}
