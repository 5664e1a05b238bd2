"""The learning curve as an SVG picture: training loss, validation loss and BLEU against the step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["curve"]

WIDTH, HEIGHT, LEFT, TOP, GAP = 640, 220, 56, 34, 40
COLOURS = ("#3b6ea8", "#c0563b", "#4b8f5c", "#8a5fa8")
Line = tuple[str, list[tuple[float, float]]]


def curve(rows: Iterable[Mapping[str, Any]], title: str = "") -> str:
    """An SVG of the rows of metrics.jsonl: one panel for losses (nats per target token), one for BLEU if there is any.

    >>> svg = curve([{"kind": "train", "step": 1, "loss": 2.0}, {"kind": "train", "step": 2, "loss": 1.0}], "a < b")
    >>> svg.startswith("<svg") and "a &lt; b" in svg and svg.count("<polyline") == 1
    True
    """
    losses: dict[str, list[tuple[float, float]]] = {}
    scores: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row.get("kind") == "train":
            losses.setdefault("training loss (smoothed labels)", []).append((row["step"], row["loss"]))
        elif row.get("kind") == "valid":
            losses.setdefault("validation loss", []).append((row["step"], row["loss"]))
            for score in row.get("scores", ()):
                scores.setdefault(f"BLEU {score['direction']}", []).append((row["step"], score["bleu"]))
    groups = [list(group.items()) for group in (losses, scores) if group]
    height = TOP + len(groups) * (HEIGHT + GAP)
    panels = [_panel(group, TOP + index * (HEIGHT + GAP)) for index, group in enumerate(groups)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + LEFT + 24} {height}" role="img" '
        f'font-family="sans-serif" font-size="12" fill="#333"><title>{escape(title)}</title>'
        f'<rect width="100%" height="100%" fill="#fff"/><text x="{LEFT}" y="18" font-size="14">{escape(title)}</text>'
        + "".join(panels)
        + "</svg>\n"
    )


def _panel(lines: Sequence[Line], top: float) -> str:
    points = [point for _, line in lines for point in line if math.isfinite(point[1])]
    if not points:
        return ""
    steps, values = [step for step, _ in points], [value for _, value in points]
    x = _scale(min(steps), max(steps), LEFT, LEFT + WIDTH)
    ticks = _ticks(min(values), max(values))
    y = _scale(ticks[0], ticks[-1], top + HEIGHT, top + 16)
    parts = [
        f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#ddd"/>'
        f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
        for tick in ticks
    ]
    for step in sorted({min(steps), max(steps), *_ticks(min(steps), max(steps))}):
        if min(steps) <= step <= max(steps):
            parts.append(f'<text x="{x(step):.1f}" y="{top + HEIGHT + 16}" text-anchor="middle">{step:g}</text>')
    for index, (name, line) in enumerate(lines):
        colour = COLOURS[index % len(COLOURS)]
        path = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in line if math.isfinite(value))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        name = f"{name}, last {line[-1][1]:.3g}"
        parts.append(f'<text x="{LEFT + 8 + index * 250}" y="{top + 10}" fill="{colour}">{escape(name)}</text>')
    return "".join(parts)


def _scale(low: float, high: float, start: float, end: float) -> Any:
    span = (high - low) or 1.0
    return lambda value: start + (value - low) / span * (end - start)


def _ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers that span [low, high]."""
    rough = (high - low) / count or abs(high) / count or 1.0
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(index * step, 10) for index in range(first, max(last, first + 1) + 1)]
