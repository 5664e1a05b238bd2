"""Two texts side by side on a page: where the model treats them differently, and who looks at whom in either."""

from __future__ import annotations

from oneblock.explain.page.ends import part
from oneblock.explain.page.frame import whole
from oneblock.explain.page.maps import FULL, grid, weight
from oneblock.explain.page.marks import Html, scrolling, tag
from oneblock.explain.worked.form import Maps
from oneblock.explain.worked.said import plain, title
from oneblock.explain.worked.two import Beside
from oneblock.explain.worked.two_text import columns, notes
from oneblock.words import label, say


def page_of_two(found: Beside, lang: str = "en") -> str:
    """The page of two texts side by side."""
    name = label("beside", lang, plain(found.left.text), plain(found.right.text))
    said = [tag("p", note) for note in notes(found, lang)]
    inner = [tag("div", *said), part(label("step by step", lang), "steps", steps(found, lang))]
    for number, (one, other) in enumerate(zip(found.left.sections, found.right.sections, strict=False)):
        if one.maps and other.maps:
            both = [weights(maps, lang) for maps in (one.maps, other.maps)]
            inner.append(part(title(one, found.left, lang), f"part{number}", tag("div", *both, class_="pair")))
    return whole(name, inner, 1, lang)


def steps(found: Beside, lang: str) -> Html:
    """A line for each step of both."""
    head, rows = columns(found, lang)
    names = tag("tr", *(tag("th", name, scope="col", class_="f") for name in head))
    lines = [
        tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell, class_="n") for cell in row[1:])) for row in rows
    ]
    said = label("step by step", lang)
    return scrolling(said, tag("table", tag("thead", names), tag("tbody", *lines)))


def weights(maps: Maps, lang: str) -> Html:
    """The weights of the chosen head."""
    if max(len(maps.queries), len(maps.keys)) > FULL:
        return Html("")
    said = label("in streams", lang, label("head number", lang, maps.head), say("step.pattern", lang).name)
    return scrolling(said, grid(said, maps, [[weight(x) for x in line] for line in maps.heads[maps.head].weights]))
