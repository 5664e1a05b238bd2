"""One block as a figure: its norms where the wiring has them, query, key and value, and the way of the residual."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from oneblock.draw import glyphs
from oneblock.draw.describe import details, kind, number
from oneblock.draw.mixture import mixture
from oneblock.draw.pen import spread
from oneblock.draw.stage import GAP, WIDE, Stage
from oneblock.spec import SLOTS, Attention, Block, MoE, Rope
from oneblock.words import label, say

FAN = 42.0
"""How far the arrows of query and value stand from that of the key."""

HALF = 134.0
"""Width of a brick where two stand side by side."""


def block(stage: Stage, brick: Block, path: str) -> None:
    """Draw a block from where the main line is."""
    if brick.wiring.startswith("parallel"):
        parallel(stage, brick, path)
        return
    names = [name for name in ("attention", "cross", "feedforward") if getattr(brick, name) is not None]
    for name in names:
        serial(stage, brick, name, path)
    if not names:
        stage.pen.reach(-WIDE / 2, stage.y, WIDE / 2, stage.y)
        stage.up(2 * GAP, arrow=False)


def serial(stage: Stage, brick: Block, name: str, path: str) -> None:
    """A sublayer on the main line, with its norms, and its residual round it."""
    slots = SLOTS[brick.wiring]
    split = stage.up(10, arrow=False)
    if "pre" in slots:
        stage.up()
        norm(stage, brick.norm, f"{path}.norms.{name}_pre")
    body(stage, getattr(brick, name), f"{path}.{name}", cross=name == "cross")
    if "branch" in slots:
        stage.up()
        norm(stage, brick.norm, f"{path}.norms.{name}_branch")
    if not brick.skip and "post" not in slots:
        return
    stage.up()
    scaled(stage, brick)
    middle = stage.y
    if "post" in slots:
        added = f"{path}.norms.{name}_post"
        middle, edge = stage.y + 12, WIDE / 2
        norm(stage, brick.norm, added, added=brick.skip != 0)
    else:
        middle, edge = stage.y + 8, 8.0
        glyphs.plus(stage.pen, 0, middle)
        stage.y += 16
    if brick.skip:
        residual(stage, brick, split, middle, edge)


def residual(stage: Stage, brick: Block, split: float, middle: float, edge: float, away: float = WIDE / 2) -> None:
    """The way from where the stream splits, past what reaches `away` from it, to where both meet again."""
    lane = stage.side * (away + 16)
    stage.pen.dot(0, split)
    stage.pen.wire([(0, split), (lane, split), (lane, middle), (stage.side * edge, middle)])
    if brick.skip != 1:
        anchor = "start" if stage.side > 0 else "end"
        said = f"× {number(brick.skip)}"
        stage.pen.text(lane + stage.side * 4, (split + middle) / 2 - 3, said, "note", 9, anchor)


def scaled(stage: Stage, brick: Block) -> None:
    """What a sublayer's result is multiplied by, said beside its arrow."""
    if brick.branch_scale != 1:
        stage.note(f"× {number(brick.branch_scale)}")


def norm(stage: Stage, brick: Any, path: str, x: float = 0.0, wide: float = WIDE, added: bool = False) -> float:
    """A norm; with `added` the residual is added in the same box first."""
    said = say(type(brick), stage.lang).name
    if added:
        said = label("add and", stage.lang, said if said[1].isupper() else said[0].lower() + said[1:])
    return stage.brick("norm", [said], path, stage.tip(brick), x, wide)


def body(stage: Stage, brick: Any, path: str, cross: bool = False, x: float = 0.0, wide: float = WIDE) -> float:
    """The sublayer itself, from the main line (or from a line at x) up; returns its top."""
    if isinstance(brick, MoE):
        stage.y += GAP
        stage.pen.wire([(x, stage.y - GAP), (x, stage.y)], arrow=False)
        return mixture(stage, brick, path, x, wide)
    lines = [say(kind(brick, cross), stage.lang).name, *details(brick, stage.dim, stage.lang)]
    role = "attention" if isinstance(brick, Attention) else "feedforward"
    if role == "feedforward" and spread(joined := " · ".join(lines[1:]), 9.5) < wide - 20:
        lines = [lines[0], joined]
    if role == "attention" and isinstance(brick.position, Rope):
        lines.append("")
    start, bottom = stage.y, stage.y + (2.2 * GAP if isinstance(brick, Attention) else GAP)
    stage.y = bottom
    top = stage.brick(role, lines, path, stage.tip(brick, cross), x, wide)
    if not isinstance(brick, Attention):
        stage.pen.wire([(x, start), (x, bottom)])
        return top
    fan(stage, brick, x, start, bottom, cross)
    toward = -1 if x < 0 else 1 if x > 0 else -stage.side
    middle, away = (top + bottom) / 2, x + toward * (wide / 2 + 10 + glyphs.GLYPH / 2)
    stage.pen.wire([(away, middle), (x + toward * wide / 2, middle)], "thin", arrow=False)
    if stage.bias is not None and not cross:
        brick = replace(brick, position=stage.bias)
        stage.biased.append((away + toward * (glyphs.GLYPH / 2 + 2), middle))
        stage.pen.reach(stage.lane, middle, stage.lane, middle)
    glyphs.mask(stage.pen, away, middle, brick, stage.lang)
    return top


def fan(stage: Stage, brick: Attention, x: float, start: float, bottom: float, cross: bool) -> None:
    """The three arrows into an attention: value and key from the memory if `cross`, the query from the stream."""
    pen = stage.pen
    value, key, query = x - FAN, x, x + FAN
    tip = bottom + 2.5 if isinstance(brick.position, Rope) else bottom
    if cross:
        split, inlet = start + 0.6 * GAP, bottom - GAP
        stage.inlets.append((value, inlet))
        pen.wire([(x, start), (x, split), (query, split), (query, tip)])
        pen.wire([(value, inlet), (value, bottom)])
        pen.wire([(value, inlet), (key, inlet), (key, tip)])
        pen.dot(value, inlet)
    else:
        split = start + 0.8 * GAP
        pen.wire([(x, start), (key, tip)])
        pen.wire([(x, split), (value, split), (value, bottom)])
        pen.wire([(x, split), (query, split), (query, tip)])
    for letter, place in (("V", value), ("K", key), ("Q", query)):
        pen.text(place + 8, bottom - 10, letter, "letter", 9)
    if isinstance(brick.position, Rope):
        glyphs.rotation(pen, key, bottom + 9)
        glyphs.rotation(pen, query, bottom + 9)


def parallel(stage: Stage, brick: Block, path: str) -> None:
    """Attention and feed-forward side by side; the stream runs between them, or round them if they share a norm."""
    shared = brick.wiring == "parallel-shared"
    fork = split = stage.up(10, arrow=False)
    if shared:
        stage.up()
        norm(stage, brick.norm, f"{path}.norms.attention_pre")
        fork = stage.up(8, arrow=False)
    meet = pair(stage, brick, path, fork, shared)
    glyphs.plus(stage.pen, 0, meet)
    stage.y = meet + 8
    if not brick.skip:
        return
    if shared:
        stage.up()
        scaled(stage, brick)
        middle = stage.y + 8
        glyphs.plus(stage.pen, 0, middle)
        residual(stage, brick, split, middle, 8, HALF + 10)
        stage.y += 16
        return
    stage.pen.dot(0, split)
    stage.pen.wire([(0, split), (0, meet - 8)])
    if brick.skip != 1:
        stage.pen.text(4, split + 2, f"× {number(brick.skip)}", "note", 9, "start")
    if brick.branch_scale != 1:
        for x, anchor in ((-12, "end"), (12, "start")):
            stage.pen.text(x, meet + 5, f"× {number(brick.branch_scale)}", "note", 9, anchor)


def pair(stage: Stage, brick: Block, path: str, fork: float, shared: bool) -> float:
    """The two sublayers of a parallel block, from where their ways part to where they meet again."""
    places = (("attention", -stage.side * (HALF / 2 + 10)), ("feedforward", stage.side * (HALF / 2 + 10)))
    tops = []
    for name, x in places:
        stage.y = fork + (GAP if shared and name == "attention" else 2 * GAP)
        stage.pen.wire([(0, fork), (x, fork), (x, stage.y)], arrow=not shared)
        if not shared:
            stage.y = norm(stage, brick.norm, f"{path}.norms.{name}_pre", x, HALF)
        tops.append(body(stage, getattr(brick, name), f"{path}.{name}", x=x, wide=HALF))
    meet = max(tops) + GAP + 4
    for (_, x), top in zip(places, tops, strict=True):
        stage.pen.wire([(x, top), (x, meet), (8 if x > 0 else -8, meet)])
    return meet
