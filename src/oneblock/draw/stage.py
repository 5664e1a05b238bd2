"""Where a figure of one stream stands while it is drawn from the bottom up: its pen, its height, what it has met."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from oneblock.draw.describe import formula, kind
from oneblock.draw.pen import Pen, Point
from oneblock.spec import Relative
from oneblock.words import label, say

WIDE = 164.0
"""Width of a brick on the main line."""

GAP = 15.0
"""Height of an arrow between two bricks."""


@dataclass
class Stage:
    """The main line is at x = 0; `y` is how far it has been drawn. Residuals run on `side` (1 right, -1 left).

    `letters` names shared matrices by their place, `counts` the parameters of every tensor. On the way up the drawing
    notes the `inlets` where a memory comes in, and the `biased` signs that a shared position `bias` reaches by `lane`.
    """

    lang: str
    dim: int
    side: int
    length: str
    counts: dict[str, int]
    letters: dict[str, str]
    path: str = ""
    pen: Pen = field(default_factory=Pen)
    y: float = 0.0
    inlets: list[Point] = field(default_factory=list)
    biased: list[Point] = field(default_factory=list)
    bias: Relative | None = None
    lane: float = 0.0

    def at(self, name: str) -> str:
        """The path of a part of this stream."""
        return f"{self.path}.{name}".strip(".")

    def count(self, name: str) -> int:
        """Parameters of a part of this stream."""
        return sum(count for path, count in self.counts.items() if path.startswith(f"{self.at(name)}."))

    def up(self, gap: float = GAP, arrow: bool = True) -> float:
        """Draw the main line upward; returns where it ends."""
        self.pen.wire([(0, self.y), (0, self.y + gap)], arrow=arrow)
        self.y += gap
        return self.y

    def brick(self, role: str, lines: Sequence[str], name: str, tip: str, x: float = 0.0, wide: float = WIDE) -> float:
        """A box on top of what has been drawn; returns its top, to which the main line has risen if x is 0."""
        count = self.count(name)
        tip = f"{tip}\n{label('parameters of', self.lang, f'{count:,}')}" if count else tip
        top = self.pen.box(x, self.y, wide, role, lines, self.at(name), tip)
        self.y = self.y if x else top
        return top

    def tip(self, brick: Any, cross: bool = False) -> str:
        """What a pointer that rests on a brick is told: its formula and what it is for."""
        return f"{formula(brick, self.dim, cross)}\n{say(kind(brick, cross), self.lang).purpose}"

    def shape(self, width: int | None = None) -> str:
        """The shape of the stream here, as said beside it."""
        return f"({self.length}, {self.dim if width is None else width:,})"

    def note(self, said: str) -> None:
        """A small note beside the last arrow of the main line, away from the residuals."""
        if said:
            self.pen.text(-self.side * 7, self.y - GAP / 2 - 3, said, "note", 9, "end" if self.side > 0 else "start")

    @contextmanager
    def apart(self) -> Iterator[Pen]:
        """Draw on a fresh pen for a while, to put a frame behind it afterwards."""
        outer, self.pen = self.pen, Pen()
        try:
            yield self.pen
        finally:
            self.pen = outer
