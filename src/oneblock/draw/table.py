"""The rows of a spec as aligned plain text, also where half of the letters are two columns wide."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import combining, east_asian_width

from oneblock.draw.describe import number
from oneblock.draw.tree import Row
from oneblock.words import label

INDENT = "  "


def cells(row: Row, lang: str = "en") -> tuple[str, str, str, str, str]:
    """(brick, details, formula, output shape, parameters) of a row as text.

    A run says "6 × 3,152,384": the rows below it are those of one of the six.
    """
    name = row.name if row.times == 1 else label("times", lang, row.times, row.name)
    shape = ", ".join(number(size) if isinstance(size, int) else size for size in row.shape)
    count = number(row.parameters) if row.times == 1 else f"{row.times} × {number(row.parameters)}"
    if row.shared and not row.parameters:
        count = label("same matrix", lang, row.shared.removesuffix(".weight"))
    return f"{INDENT * row.level}{name}", row.details, row.formula, f"({shape})", count


def heading(lang: str = "en") -> tuple[str, str, str, str]:
    """The heads of the columns: brick, formula, output, parameters."""
    brick, formula, output, parameters = (label(key, lang) for key in ("brick", "formula", "output", "parameters"))
    return brick, formula, output, parameters


def text(rows: Sequence[Row], lang: str = "en") -> str:
    """Rows as a table of plain text, one line each, numbers to the right.

    >>> from oneblock.draw.tree import rows
    >>> from oneblock.zoo import named
    >>> print(text(rows(named("vaswani"), depth=0)))  # doctest: +NORMALIZE_WHITESPACE
    brick            formula                          output                   parameters
    Encoder-decoder  decoder(target, encoder(source)) (batch, target, 37,000)  63,082,496
      Encoder        memory = encoder(source)         (batch, source, 512)     37,858,304
      Decoder        logits = decoder(target, memory) (batch, target, 37,000)  25,224,192
    """
    lines = [heading(lang)]
    for row in rows:
        brick, details, formula, shape, count = cells(row, lang)
        lines.append((f"{brick}  {details}".rstrip(), formula, shape, count))
    widths = [max(width(line[column]) for line in lines) for column in range(4)]
    return "\n".join(_line(line, widths) for line in lines)


def _line(line: Sequence[str], widths: Sequence[int]) -> str:
    *words, count = line
    padded = [word + " " * (room - width(word)) for word, room in zip(words, widths, strict=False)]
    return "  ".join([*padded, " " * (widths[-1] - width(count)) + count])


def width(said: str) -> int:
    """Columns that a text takes in a terminal.

    >>> width("注意力"), width("kᵀ")
    (6, 2)
    """
    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in said)
