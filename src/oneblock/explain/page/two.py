"""Two texts side by side on a page: where the model treats them differently, and each part of the page for either."""

from __future__ import annotations

from collections.abc import Sequence

from oneblock.explain.page.ends import candidates, lens, noted, part, streams
from oneblock.explain.page.frame import contents, figure, line, sizes, whole
from oneblock.explain.page.maps import FULL, SIDE, grid, overview, small, weight
from oneblock.explain.page.marks import Html, scrolling, tag
from oneblock.explain.worked.form import Exercise, Maps
from oneblock.explain.worked.said import plain, side, title
from oneblock.explain.worked.two import Beside
from oneblock.explain.worked.two_text import columns, remarks, verdict
from oneblock.words import label, say

Part = tuple[str, str, Html]
"""Name, place, what is there."""


def page_of_two(found: Beside, lang: str = "en") -> str:
    """The page of two texts side by side."""
    name = label("beside", lang, plain(found.left.text), plain(found.right.text))
    both = (found.left, found.right)
    parts: list[Part] = [(label("step by step", lang), "steps", steps(found, lang))]
    for number, (one, other) in enumerate(zip(found.left.sections, found.right.sections, strict=False)):
        if one.maps and other.maps:
            either = [weights(maps, made, lang) for maps, made in zip((one.maps, other.maps), both, strict=True)]
            parts.append((title(one, found.left, lang), f"part{number}", pair(either)))
    parts += behind(both, lang) if found.left.whole else []
    parts.append((label("figure", lang), "figure", figure(found.left, lang)))
    links = contents([(at, named) for named, at, _ in parts], lang)
    return whole(name, [first(found, lang), links, *(part(*one) for one in parts)], 1, lang)


def first(found: Beside, lang: str) -> Html:
    """The sizes, who reads what, where they first differ."""
    said = [sizes(found.left, lang), *(tag("p", note) for note in remarks(found, lang))]
    for one in found.stacks:
        for made in (found.left, found.right):
            said.append(line(side(one.stack, lang), made.tokens[one.stack], made.chosen.token[one.stack]))
        said.append(tag("ul", *(tag("li", note.strip()) for note in verdict(found, one, lang))))
    return tag("div", *said)


def behind(both: Sequence[Exercise], lang: str) -> list[Part]:
    """What stands behind the steps, of both."""
    found = []
    if any(made.overview for made in both):
        said = tag("p", label("each head note", lang))
        drawn = tag("div", said, pair([under(one, overview(one, lang)) for one in both]))
        found.append((label("each head", lang), "heads", drawn))
    shown = {"stream": [(one, streams(one, lang)) for one in both]}
    shown["lens"] = [(one, lens(one.lens, lang)) for one in both if one.lens is not None]
    shown["candidates"] = [(one, candidates(one.candidates, lang)) for one in both if one.candidates is not None]
    for at, drawn in shown.items():
        name = say("step.stream", lang).name if at == "stream" else label(at, lang)
        if drawn:
            found.append((name, at, noted(at, pair([under(*one) for one in drawn]), lang)))
    return found


def under(made: Exercise, inner: Html) -> Html:
    """A part under the text it is of."""
    return tag("div", tag("p", tag("b", plain(made.text))), inner)


def pair(inner: Sequence[Html]) -> Html:
    """Two things side by side, or one below the other where there is no room."""
    return tag("div", *(tag("div", one) for one in inner), class_="pair")


def steps(found: Beside, lang: str) -> Html:
    """A line for each step of both."""
    head, rows = columns(found, lang)
    names = tag("tr", *(tag("th", name, scope="col") for name in head))
    lines = [
        tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell, class_="n") for cell in row[1:])) for row in rows
    ]
    said = label("step by step", lang)
    return scrolling(said, tag("table", tag("thead", names), tag("tbody", *lines)))


def weights(maps: Maps, made: Exercise, lang: str) -> Html:
    """The weights of the chosen head; as a picture where they are too many to be written."""
    chosen = label("in streams", lang, label("head number", lang, maps.head), say("step.pattern", lang).name)
    said = f"{plain(made.text)} · {chosen}" if made.text else chosen
    values = maps.heads[maps.head].weights
    if max(len(maps.queries), len(maps.keys)) > FULL:
        return tag("figure", small(values, said, 4 * SIDE), tag("figcaption", said))
    return scrolling(said, grid(said, maps, [[weight(x) for x in row] for row in values]))
