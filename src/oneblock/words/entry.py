"""The shape of an entry of the dictionary: what a thing is called, how it is written, and what it is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Lang = Literal["en", "zh"]

LANGUAGES: tuple[Lang, ...] = ("en", "zh")


@dataclass(frozen=True)
class Entry:
    """(name, sentence) in each language; symbol, formula (plain text) and LaTeX are the same in all of them."""

    en: tuple[str, str]
    zh: tuple[str, str]
    symbol: str = ""
    formula: str = ""
    latex: str = ""


@dataclass(frozen=True)
class Said:
    """An entry in one language: what `say` returns."""

    kind: str
    name: str
    symbol: str
    formula: str
    latex: str
    purpose: str
