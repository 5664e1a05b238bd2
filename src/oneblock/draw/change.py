"""What changed between two specs, as lines of text: the place, what stood there, what stands there now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from oneblock.spec import Change
from oneblock.words import label


def changes(diff: Iterable[Change], lang: str = "en") -> str:
    """One line per change; an empty text where nothing changed.

    >>> from oneblock.spec import RMSNorm
    >>> print(changes([Change("layers.*.wiring", "post", "pre"), Change("norm", None, RMSNorm(1e-6))]))
    layers.*.wiring  post → pre
    norm             none → RMSNorm(eps=1e-06)
    """
    listed = list(diff)
    room = max((len(change.path) for change in listed), default=0)
    return "\n".join(f"{c.path:<{room}}  {short(c.before, lang)} → {short(c.after, lang)}" for c in listed)


def short(value: Any, lang: str = "en") -> str:
    """A part of a spec as short as it can be said: defaults are left out.

    >>> from oneblock.spec import Attention, Causal
    >>> short(Attention(8, kv_heads=2, mask=Causal()))
    'Attention(heads=8, kv_heads=2)'
    """
    if value is None:
        return label("none", lang)
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return f"({', '.join(short(part, lang) for part in value)})"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(short(part, lang) for part in value))}}}"
    if not is_dataclass(value):
        return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    named = ((field, getattr(value, field.name)) for field in fields(value))
    said = [
        f"{field.name}={short(part, lang)}"
        for field, part in named
        if field.default is MISSING or part != field.default
    ]
    return f"{type(value).__name__}({', '.join(said)})"
