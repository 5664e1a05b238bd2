"""A small table as an answer: it prints aligned, shows as HTML in a notebook, and becomes a dictionary for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from oneblock.draw import width
from oneblock.hint import nearest

Cell = str | int | float | None
"""What stands in a table: words, a number, or nothing to say."""


@dataclass(frozen=True)
class Table:
    """A title, the names of the columns, rows of cells, and lines to read below.

    >>> print(Table("heads", ("head", "distance"), ((0, 1.5), (1, None)), ("in tokens",)))
    heads
    head  distance
       0       1.5
       1         –
    in tokens
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows, 1):
            if len(row) != len(self.columns):
                raise ValueError(f"table: expected {len(self.columns)} cells in row {number}, got {len(row)}")

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Cell, ...]]:
        return iter(self.rows)

    def column(self, name: str) -> tuple[Cell, ...]:
        """The cells below a name. ValueError: no such column, with the nearest."""
        if name not in self.columns:
            raise ValueError(f"table: no column {name!r}; {nearest(name, self.columns)}")
        at = self.columns.index(name)
        return tuple(row[at] for row in self.rows)

    def __str__(self) -> str:
        lines = [self.columns, *(tuple(said(cell) for cell in row) for row in self.rows)]
        rooms = [max(width(line[column]) for line in lines) for column in range(len(self.columns))]
        right = [self.numeric(column) for column in range(len(self.columns))]
        aligned = [
            "  ".join(pad(cell, room, far) for cell, room, far in zip(line, rooms, right, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join([self.title, *aligned, *self.notes])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        styles = ["text-align:right" if self.numeric(at) else "text-align:left" for at in range(len(self.columns))]
        head = "".join(
            f'<th style="{style}">{escape(name)}</th>' for name, style in zip(self.columns, styles, strict=True)
        )
        body = "".join(
            f"<tr>{''.join(_cell(cell, style) for cell, style in zip(row, styles, strict=True))}</tr>"
            for row in self.rows
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        caption = f'<caption style="text-align:left"><b>{escape(self.title)}</b></caption>'
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def to_dict(self) -> dict[str, object]:
        """For JSON, which knows neither NaN nor infinity: those become None."""
        rows = [[None if isinstance(cell, float) and not math.isfinite(cell) else cell for cell in row] for row in self]
        return {"title": self.title, "columns": list(self.columns), "rows": rows, "notes": list(self.notes)}

    def numeric(self, column: int) -> bool:
        """Whether a column holds numbers, so that it stands to the right."""
        cells = [row[column] for row in self.rows if row[column] is not None]
        return bool(cells) and not any(isinstance(cell, str) for cell in cells)


def said(cell: Cell) -> str:
    """A cell as text: numbers with four digits."""
    if cell is None:
        return "–"
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def pad(cell: str, room: int, right: bool) -> str:
    """A cell filled up with spaces."""
    space = " " * (room - width(cell))
    return space + cell if right else cell + space


def _cell(cell: Cell, style: str) -> str:
    return f'<td style="{style}">{escape(said(cell))}</td>'
