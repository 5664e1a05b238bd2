"""A mixture of experts in a figure: a router, a row of experts of which some are chosen, and their sum."""

from __future__ import annotations

from math import hypot

from oneblock.draw import glyphs
from oneblock.draw.describe import details, formula, kind
from oneblock.draw.pen import LINE, clean, fit
from oneblock.draw.stage import Stage
from oneblock.spec import MoE
from oneblock.words import label, say

PAD = 11.0
FANNED = 20.0
"""Height of the arrows from the router to the experts."""


def mixture(stage: Stage, brick: MoE, path: str, x: float, wide: float) -> float:
    """Draw it from the stage's height up, on a line at x; returns its top, to which the main line rises if x is 0."""
    pen, base, lang = stage.pen, stage.y, stage.lang
    lines = _lines(brick, stage.dim, lang)
    router = base + PAD
    experts = router + 11 + 2 * LINE + FANNED
    added = experts + 11 + LINE + 24
    high = added + 8 + LINE * len(lines) + 8 - base
    pen.marks.append(f'<g class="brick" data-path="{clean(stage.at(path))}"><title>{clean(stage.tip(brick))}</title>')
    pen.rect(x - wide / 2, base, wide, high, "feedforward")
    pen.marks.append("</g>")
    for index, line in enumerate(lines):
        said, size = ("name", 12.0) if index == 0 else ("detail", 9.5)
        pen.text(x, base + high - 16 - LINE * index, line, said, fit(line, size, wide - 12))
    pen.wire([(x, base), (x, router)])
    stage.y = router
    words = say("step.router", lang)
    routed = [words.name, label("chosen of", lang, brick.active, brick.experts)]
    tip = f"{words.formula}\n{say(kind(brick.router)).formula}\n{words.purpose}"
    top = stage.brick("softmax", routed, f"{path}.router", tip, x, wide - 2 * PAD)
    _row(stage, brick, path, x, wide - 2 * PAD, top, experts, added)
    glyphs.plus(pen, x, added)
    stage.y = base if x else base + high
    return base + high


def _row(stage: Stage, brick: MoE, path: str, x: float, wide: float, below: float, bottom: float, added: float) -> None:
    """The experts side by side; strong lines lead through those that a token was sent to."""
    shown: list[int | None] = [*range(brick.experts)] if brick.experts <= 4 else [0, 1, None, brick.experts - 1]
    pitch = wide / max(len(shown), 2)
    chosen = ([1, len(shown) - 1, 2, 0] if len(shown) > 2 else [0, 1])[: brick.active]
    top = bottom + 11 + LINE
    tip = f"{formula(brick.expert, stage.dim)}\n{say('expert', stage.lang).purpose}"
    for index, number in enumerate(shown):
        at = x + pitch * (index - (len(shown) - 1) / 2)
        strong = index in chosen
        stage.pen.wire([(x, below), (at, bottom)], "wire" if strong else "thin", arrow=strong)
        long = hypot(at - x, added - top)
        end = (x + (at - x) * 8 / long, added - (added - top) * 8 / long)
        if strong:
            stage.pen.wire([(at, top), end], arrow=False)
        if number is None:
            stage.pen.text(at, bottom + 8, "⋯", "name", 12)
        else:
            stage.pen.box(at, bottom, pitch - 5, "glyph", [str(number + 1)], stage.at(f"{path}.experts"), tip)


def _lines(brick: MoE, dim: int, lang: str) -> list[str]:
    return [say("MoE", lang).name, say(kind(brick.expert), lang).name, " · ".join(details(brick.expert, dim, lang))]
