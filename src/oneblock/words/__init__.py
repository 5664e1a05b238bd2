"""What everything is called: names, symbols, formulas and one sentence each, in English and Chinese."""

from __future__ import annotations

import os
from collections.abc import Mapping

from oneblock.hint import nearest
from oneblock.words.bricks import BRICKS
from oneblock.words.causes import CAUSES
from oneblock.words.costs import COLUMNS, OPERATIONS
from oneblock.words.differences import DIFFERENCES
from oneblock.words.entry import LANGUAGES, Entry, Lang, Said
from oneblock.words.experts import EXPERTS
from oneblock.words.heads import HEADS
from oneblock.words.keeping import KEPT, PRICES
from oneblock.words.labels import LABELS as SHORT
from oneblock.words.scalings import SCALINGS
from oneblock.words.steps import STEPS
from oneblock.words.trace import TRACE
from oneblock.words.understand import UNDERSTAND
from oneblock.words.wirings import JOINTS

__all__ = ["ENTRIES", "LABELS", "LANGUAGES", "Entry", "Lang", "Said", "label", "language", "say"]

ENTRIES: dict[str, Entry] = (
    BRICKS | EXPERTS | HEADS | SCALINGS | JOINTS | STEPS | DIFFERENCES | COLUMNS | OPERATIONS | KEPT | PRICES | CAUSES
)
"""kind -> entry. A kind is the name of a spec type, with a variant after a dot ("Attention.cross"), or of a step."""

LABELS: dict[str, tuple[str, str]] = SHORT | UNDERSTAND | TRACE
"""label -> (English, Chinese); `{}` marks what the user of a label fills in."""


def say(kind: str | type, lang: str = "en") -> Said:
    """Name, symbol, formula, LaTeX and purpose of a kind of brick or step, in one language.

    A kind is a spec type or its name. Raises ValueError for a kind or a language that has no words.

    >>> say("LayerNorm", "zh").name
    '层归一化'
    >>> say("Attention.cross").purpose
    "The decoder asks (query); the encoder's output answers (key and value)."
    >>> say("LayerNorn")
    Traceback (most recent call last):
    ValueError: kind: no words for 'LayerNorn'; did you mean LayerNorm?
    """
    key = kind if isinstance(kind, str) else kind.__name__
    if key not in ENTRIES:
        raise ValueError(f"kind: no words for {key!r}; {nearest(key, ENTRIES)}")
    entry = ENTRIES[key]
    name, purpose = entry.zh if known(lang) == "zh" else entry.en
    return Said(key, name, entry.symbol, entry.formula, entry.latex, purpose)


def label(key: str, lang: str = "en", *filling: object) -> str:
    """A short label of a table or figure, with what fills its gaps.

    >>> label("heads of", "zh", 8, 64)
    '8 个头 × 64'
    """
    if key not in LABELS:
        raise ValueError(f"label: no label {key!r}; {nearest(key, LABELS)}")
    return LABELS[key][LANGUAGES.index(known(lang))].format(*filling)


def language(asked: str | None = None, environ: Mapping[str, str] | None = None) -> Lang:
    """The language to speak: the one asked for, else ONEBLOCK_LANG, else the locale's if Chinese, else English.

    `environ` is `os.environ` by default. Raises ValueError for a language asked for (or set) that we do not speak.

    >>> language(None, {"LC_ALL": "zh_CN.UTF-8"})
    'zh'
    >>> language("fr")
    Traceback (most recent call last):
    ValueError: language: expected en or zh, got 'fr'
    """
    environ = os.environ if environ is None else environ
    if asked or environ.get("ONEBLOCK_LANG"):
        return known(asked or environ["ONEBLOCK_LANG"])
    locale = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    return "zh" if locale.lower().startswith("zh") else "en"


def known(lang: str) -> Lang:
    """The language if we speak it, else ValueError."""
    for one in LANGUAGES:
        if one == lang:
            return one
    raise ValueError(f"language: expected en or zh, got {lang!r}")
