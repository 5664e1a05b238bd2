"""Attention on a page: heat maps of scores, mask and weights per head, and the arithmetic behind each cell."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oneblock.explain.cause import CAUSES
from oneblock.explain.mask import SIGNS
from oneblock.explain.page.marks import Html, scrolling, tag
from oneblock.explain.page.picture import picture
from oneblock.explain.worked.form import Cell, Exercise, Maps, Matrix
from oneblock.explain.worked.number import shown
from oneblock.explain.worked.said import legend, plain
from oneblock.words import label, say

MATRICES = ("scores", "masked", "weights")
"""A head's matrices; the kinds of their steps are the same but for the last."""
SIDE = 72
"""About how many pixels wide a small picture is."""
FULL = 48
"""Tokens up to which a matrix is written out; a longer one is a picture."""


def attention(maps: Maps, number: int, lang: str) -> Html:
    """Everything of one attention: the mask, a tab for each head, panels for the cells."""
    linked = {(one.head, one.query, one.key) for one in maps.cells}
    parts = [mask(maps, lang), tabs(maps, number, linked, lang)]
    if maps.path.endswith(".cross"):
        parts.append(together(maps, lang))
    if len(maps.heads) < len(maps.all):
        parts.append(tag("p", label("more cells", lang), class_="soft"))
    panels = [panel(one, maps, number, lang) for one in maps.cells]
    return tag("div", *parts, *panels, id=f"m{number}")


def mask(maps: Maps, lang: str) -> Html:
    """Who may look at whom, a sign for each cause."""
    if max(len(maps.queries), len(maps.keys)) > FULL:
        return Html("")
    said = label("rows and columns", lang, label("mask of", lang, maps.path))
    rows = [
        [tag("td", SIGNS[CAUSES[cause]], class_="m x" if cause else "m") for cause in line] for line in maps.hidden
    ]  # fmt: skip
    causes = [tag("li", tag("b", sign), " ", why) for sign, why in legend(maps, lang)]
    return tag("div", scrolling(said, grid(said, maps, rows)), tag("ul", *causes, class_="soft"))


def grid(said: str, maps: Maps, rows: Sequence[Sequence[Html]]) -> Html:
    """A table with the tokens at its sides."""
    head = tag("tr", tag("th", "q \\ k"), *(tag("th", plain(key), scope="col") for key in maps.keys))
    lines = [
        tag("tr", tag("th", plain(query), scope="row"), *cells) for query, cells in zip(maps.queries, rows, strict=True)
    ]
    return tag("table", tag("caption", said), tag("thead", head), tag("tbody", *lines))


def tabs(maps: Maps, number: int, linked: set[tuple[int, int, int]], lang: str) -> Html:
    """A tab for each head that is written out; the chosen one is open."""
    heads = list(maps.heads)
    buttons = [
        (
            tag("input", type="radio", name=f"h{number}", id=f"h{number}-{head}", checked=head == maps.head),
            tag("label", label("head number", lang, head), for_=f"h{number}-{head}"),
        )
        for head in heads
    ]
    panes = [
        tag("div", *(matrix(maps, head, name, number, linked, lang) for name in MATRICES), class_="tab")
        for head in heads
    ]
    notes = tag("p", label("pick a cell", lang), class_="soft")
    return tag(
        "fieldset", tag("legend", label("each head", lang)), *buttons, notes, *panes, class_="tabs"
    )  # fmt: skip


def matrix(
    maps: Maps, head: int, name: str, number: int, linked: set[tuple[int, int, int]], lang: str
) -> Html:  # fmt: skip
    """One matrix of one head as a heat map."""
    values: Matrix = getattr(maps.heads[head], name)
    kind = "step.pattern" if name == "weights" else f"step.{name}"
    said = label("in streams", lang, label("head number", lang, head), say(kind, lang).name)
    if max(len(maps.queries), len(maps.keys)) > FULL:
        large = largest(values)
        shares = [[abs(x) / large if math.isfinite(x) else 0.0 for x in line] for line in values]
        return tag("figure", small(shares, said, 4 * SIDE), tag("figcaption", said))
    large = 1.0 if name == "weights" else largest(values)
    rows = [
        [cell(x, large, (head, query, key), maps, number, linked) for key, x in enumerate(line)]
        for query, line in enumerate(values)
    ]
    return scrolling(said, grid(said, maps, rows))


def largest(values: Matrix) -> float:
    """The largest size of a finite number."""
    return max((abs(x) for line in values for x in line if math.isfinite(x)), default=0.0) or 1.0


def cell(
    x: float, large: float, at: tuple[int, int, int], maps: Maps, number: int, linked: set[tuple[int, int, int]]
) -> Html:
    """One number, the darker the larger; it leads to its arithmetic where that is on the page."""
    inner: Html | str = shown(x)
    if at in linked:
        inner = tag("a", inner, href=f"#c{number}-{'-'.join(map(str, at))}")
    if not math.isfinite(x):
        return tag("td", inner, class_="n x")
    chosen = " y" if at[0] == maps.head and at[1] == maps.query else ""
    share = f"--a:{abs(x) / large:.2f}".replace("0.", ".")
    return tag("td", inner, class_=("n c" if x < 0 else "n") + chosen, style=share)


def panel(one: Cell, maps: Maps, number: int, lang: str) -> Html:
    """The arithmetic of a cell; it is shown when a link leads to it."""
    names = f"{plain(maps.queries[one.query])} → {plain(maps.keys[one.key])}"
    lines = [tag("p", f"{line.name} = {line.how} = ", tag("b", shown(line.value)), class_="sum") for line in one.lines]
    said = label("in streams", lang, label("head number", lang, one.head), names)
    return tag(
        "div", tag("a", label("back", lang), href=f"#m{number}", class_="back"), tag("b", said), *lines,
        class_="cell", id=f"c{number}-{one.head}-{one.query}-{one.key}",
    )  # fmt: skip


def together(maps: Maps, lang: str) -> Html:
    """The mean over all heads: which source token each target token looks at."""
    if max(len(maps.queries), len(maps.keys)) > FULL:
        return Html("")
    many = len(maps.all)
    rows = [
        [weight(sum(head[query][key] for head in maps.all) / many) for key in range(len(maps.keys))]
        for query in range(len(maps.queries))
    ]
    said = label("cross of all", lang)
    return tag("div", tag("p", label("cross note", lang), class_="soft"), scrolling(said, grid(said, maps, rows)))


def weight(x: float) -> Html:
    """A share as a cell without a link."""
    return tag("td", shown(x), class_="n", style=f"--a:{x:.2f}".replace("0.", "."))


def overview(made: Exercise, lang: str) -> Html:
    """A picture of each head of each attention of the model."""
    shown_ = {part.maps.path: part.maps for part in made.sections if part.maps}
    rest = {one.path: one for one in made.overview}
    order = [step.path.removesuffix(".pattern") for step in made.every if step.kind == "step.pattern"]
    parts = []
    for path in order:
        one = shown_.get(path) or rest.get(path)
        if one is None:
            continue
        heads = [pictured(values, path, head, lang) for head, values in enumerate(one.all)]
        parts.append(tag("div", tag("code", path), tag("div", *heads, class_="grid")))
    return tag("div", *parts)


def pictured(values: Matrix, path: str, head: int, lang: str) -> Html:
    """One head as a picture with its number."""
    said = f"{path}, {label('head number', lang, head)}"
    return tag("figure", small(values, said, SIDE), tag("figcaption", str(head)))


def small(values: Sequence[Sequence[float]], said: str, side: int) -> Html:
    """A matrix as a picture, about `side` pixels wide."""
    high, wide = len(values), len(values[0])
    scale = max(1, side // max(high, wide))
    return tag("img", src=picture(values), alt=said, width=wide * scale, height=high * scale)
