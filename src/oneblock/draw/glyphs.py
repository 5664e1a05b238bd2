"""The small signs of a figure: who may look at whom, a wave, a rotation, an addition, the badge of a shared matrix."""

from __future__ import annotations

from oneblock.draw.describe import number
from oneblock.draw.pen import Pen, fit
from oneblock.spec import Alibi, Attention, Causal, Relative, Window, atoms
from oneblock.words import label

CELLS = 6
PITCH = 5.0
GLYPH = CELLS * PITCH


def visible(attention: Attention, query: int, key: int) -> float:
    """How strongly a cell of the sign is filled: 0 hidden, 1 seen, between where a bias weakens the distance.

    A window is drawn two cells deep, whatever it measures.

    >>> [visible(Attention(8), 1, key) for key in range(3)]
    [1.0, 1.0, 0.0]
    """
    for rule in atoms(attention.mask):
        if isinstance(rule, Causal) and key > query:
            return 0.0
        if isinstance(rule, Window) and query - key > (1 if rule.back > 1 else 0):
            return 0.0
        if isinstance(rule, Window) and rule.ahead is not None and key - query > min(rule.ahead, 1):
            return 0.0
    distance = abs(query - key)
    if isinstance(attention.position, Alibi):
        return max(0.15, 1 - 0.17 * distance)
    if isinstance(attention.position, Relative):
        return (1.0, 0.8, 0.6, 0.6, 0.4, 0.4)[min(distance, 5)]
    return 1.0


def mask(pen: Pen, x: float, y: float, attention: Attention, lang: str) -> None:
    """The mask of an attention as a little matrix centred on a point, queries downward, keys to the right."""
    left, top = x - GLYPH / 2, y + GLYPH / 2
    pen.rect(left - 1.5, top - GLYPH - 1.5, GLYPH + 3, GLYPH + 3, "glyph", corner=2)
    for query in range(CELLS):
        for key in range(CELLS):
            shade = visible(attention, query, key)
            if not shade:
                continue
            at = f'x="{left + key * PITCH + 0.4:g}" y="{-top + query * PITCH + 0.4:g}" width="4.2" height="4.2"'
            faint = "" if shade == 1 else f' fill-opacity="{shade:g}"'
            pen.marks.append(f'<rect class="seen" {at}{faint}/>')
    for index, said in enumerate(captions(attention, lang)):
        pen.text(x, top - GLYPH - 10.5 - 9 * index, said, "note", fit(said, 8, 46))


def captions(attention: Attention, lang: str) -> list[str]:
    """What stands below the sign of a mask."""
    said = []
    for rule in sorted(atoms(attention.mask), key=repr):
        if isinstance(rule, Window):
            said.append(label("window", lang, number(rule.back)))
        else:
            said.append(label("causal" if isinstance(rule, Causal) else "full", lang))
    return said


def plus(pen: Pen, x: float, y: float) -> None:
    """An addition."""
    pen.circle(x, y, 8, "plus")
    pen.curve("M-4.5 0H4.5M0 -4.5V4.5", "stroke", (x, y), 8)


def wave(pen: Pen, x: float, y: float) -> None:
    """A sinusoid in a circle."""
    pen.circle(x, y, 11, "plus")
    pen.curve("M-10 0C-6 -9 -4 -9 0 0S6 9 10 0", "stroke", (x, y), 11)


def rotation(pen: Pen, x: float, y: float) -> None:
    """A turning arrow in a circle: what goes through it is rotated by its position."""
    pen.circle(x, y, 6.5, "knob")
    pen.curve("M3.2 -1.6A3.6 3.6 0 1 0 3.4 1.4", "stroke", (x, y), 6.5)
    pen.curve("M4.9 -3.8L3.9 -0.6L1 -2.2Z", "arrow", (x, y), 6.5)


def badge(pen: Pen, x: float, y: float, letter: str, turned: bool = False) -> None:
    """The name of a shared matrix in a small circle; `turned` where it is used transposed."""
    pen.circle(x, y, 8.5, "badge")
    raised = '<tspan dy="-3.5" font-size="6.5">T</tspan>' if turned else ""
    at = f'x="{x:g}" y="{-y + 3.6:g}" font-size="10" text-anchor="middle"'
    pen.marks.append(f'<text class="letter" {at}>{letter}{raised}</text>')
