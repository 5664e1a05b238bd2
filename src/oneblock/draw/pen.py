"""A pen for figures: boxes, wires with round corners, circles and text, as SVG, knowing how much room they take.

Coordinates are in pixels, x to the right and y upward, as a figure of an architecture is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from math import hypot
from unicodedata import east_asian_width

Point = tuple[float, float]

RADIUS = 7.0
ARROW = 6.0
LINE = 13.0


def clean(said: str) -> str:
    """Text that may stand in XML: escaped, without characters that XML does not know.

    >>> clean('a<b & "c"' + chr(0))
    'a&lt;b &amp; &quot;c&quot;'
    """
    return escape(re.sub(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", said))


def spread(said: str, size: float) -> float:
    """About how many pixels wide a text of this font size is."""
    return size * sum(
        1.0 if east_asian_width(letter) in "WF" else 0.3 if letter in " .,·il" else 0.56 for letter in said
    )


def fit(said: str, size: float, room: float) -> float:
    """The font size, made smaller where the text would not fit into `room` pixels."""
    return size if (wide := spread(said, size)) <= room else round(size * room / wide, 2)


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


class Pen:
    """A growing drawing: `marks` are its SVG elements, `left bottom right top` the room they take."""

    def __init__(self) -> None:
        self.marks: list[str] = []
        self.left = self.bottom = float("inf")
        self.right = self.top = float("-inf")

    def reach(self, left: float, bottom: float, right: float, top: float) -> None:
        """Make the drawing's bounds include this rectangle."""
        self.left, self.bottom = min(self.left, left), min(self.bottom, bottom)
        self.right, self.top = max(self.right, right), max(self.top, top)

    def add(self, mark: str, around: Point, half: float) -> None:
        """A ready SVG element that takes a square of twice `half` around a point."""
        self.marks.append(mark)
        self.reach(around[0] - half, around[1] - half, around[0] + half, around[1] + half)

    def place(self, other: Pen, right: float = 0.0, up: float = 0.0) -> None:
        """Another drawing, moved."""
        if not other.marks:
            return
        inner = "\n".join(other.marks)
        moved = f'<g transform="translate({_n(right)} {_n(-up)})">\n{inner}\n</g>' if right or up else inner
        self.marks.append(moved)
        self.reach(other.left + right, other.bottom + up, other.right + right, other.top + up)

    def rect(self, left: float, bottom: float, wide: float, high: float, role: str, corner: float = 6) -> None:
        """A plain rectangle with round corners."""
        at = f'x="{_n(left)}" y="{_n(-bottom - high)}" width="{_n(wide)}" height="{_n(high)}" rx="{_n(corner)}"'
        self.marks.append(f'<rect class="{role}" {at}/>')
        self.reach(left, bottom, left + wide, bottom + high)

    def box(self, x: float, bottom: float, wide: float, role: str, lines: Sequence[str], path: str, tip: str) -> float:
        """A brick: a named box centred on x; the first line is its name, the rest are details. Returns its top.

        An empty last line leaves room. `path` is where the brick is in the model, `tip` what a pointer that rests on
        it is told.
        """
        high = 11.0 + LINE * len(lines)
        self.marks.append(f'<g class="brick" data-path="{clean(path)}"><title>{clean(tip)}</title>')
        self.rect(x - wide / 2, bottom, wide, high, role)
        for index, line in enumerate(filter(None, lines)):
            words = "name" if index == 0 else "detail"
            size = fit(line, 12.0 if index == 0 else 9.5, wide - 12)
            self.text(x, bottom + high - 16 - LINE * index, line, words, size)
        self.marks.append("</g>")
        return bottom + high

    def text(self, x: float, y: float, said: str, role: str, size: float, anchor: str = "middle") -> None:
        """A line of text whose baseline is at y."""
        at = f'x="{_n(x)}" y="{_n(-y)}" font-size="{size:g}"'
        self.marks.append(f'<text class="{role}" {at} text-anchor="{anchor}">{clean(said)}</text>')
        wide = spread(said, size)
        left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * wide
        self.reach(left, y - 0.25 * size, left + wide, y + 0.9 * size)

    def dot(self, x: float, y: float) -> None:
        """Where a wire splits."""
        self.add(f'<circle class="dot" cx="{_n(x)}" cy="{_n(-y)}" r="2.2"/>', (x, y), 2.2)

    def circle(self, x: float, y: float, radius: float, role: str) -> None:
        """A circle with a rim."""
        self.add(f'<circle class="{role}" cx="{_n(x)}" cy="{_n(-y)}" r="{_n(radius)}"/>', (x, y), radius)

    def curve(self, steps: str, role: str, around: Point, half: float) -> None:
        """A path in SVG's own steps, drawn relative to a point (there y is downward)."""
        moved = f'transform="translate({_n(around[0])} {_n(-around[1])})"'
        self.add(f'<path class="{role}" {moved} d="{steps}"/>', around, half)

    def wire(self, points: Sequence[Point], role: str = "wire", arrow: bool = True) -> None:
        """A line through the points with round corners, and an arrow head at its end."""
        points = [p for p, before in zip(points, [None, *points], strict=False) if p != before]
        if len(points) < 2:
            return
        end, before = points[-1], points[-2]
        long = hypot(end[0] - before[0], end[1] - before[1])
        ahead = ((end[0] - before[0]) / long, (end[1] - before[1]) / long)
        steps = [f"M{_n(points[0][0])} {_n(-points[0][1])}"]
        for last, corner, coming in zip(points, points[1:], points[2:], strict=False):
            start, stop = _toward(corner, last), _toward(corner, coming)
            steps.append(
                f"L{_n(start[0])} {_n(-start[1])}Q{_n(corner[0])} {_n(-corner[1])} {_n(stop[0])} {_n(-stop[1])}"
            )
        stop = (end[0] - ahead[0] * ARROW * 0.6, end[1] - ahead[1] * ARROW * 0.6) if arrow else end
        steps.append(f"L{_n(stop[0])} {_n(-stop[1])}")
        self.marks.append(f'<path class="{role}" d="{"".join(steps)}"/>')
        if arrow:
            self._head(end, ahead)
        for x, y in points:
            self.reach(x, y, x, y)

    def _head(self, end: Point, ahead: Point) -> None:
        back = (end[0] - ahead[0] * ARROW, end[1] - ahead[1] * ARROW)
        side = (-ahead[1] * ARROW * 0.45, ahead[0] * ARROW * 0.45)
        corners = (end, (back[0] + side[0], back[1] + side[1]), (back[0] - side[0], back[1] - side[1]))
        steps = "L".join(f"{_n(x)} {_n(-y)}" for x, y in corners)
        self.marks.append(f'<path class="arrow" d="M{steps}Z"/>')


def _toward(corner: Point, other: Point) -> Point:
    """The point on the way from a corner where its rounding ends."""
    long = hypot(other[0] - corner[0], other[1] - corner[1])
    part = min(RADIUS, long / 2) / long
    return corner[0] + (other[0] - corner[0]) * part, corner[1] + (other[1] - corner[1]) * part
