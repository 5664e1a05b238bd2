"""An exercise as one page that needs nothing else: no script, no network, by day and by night, in either language."""

from __future__ import annotations

from oneblock.explain.page.ends import candidates, lens, noted, part, streams
from oneblock.explain.page.frame import contents, figure, first, whole
from oneblock.explain.page.maps import overview
from oneblock.explain.page.marks import Html, tag
from oneblock.explain.page.steps import section
from oneblock.explain.page.two import page_of_two
from oneblock.explain.worked.form import Exercise
from oneblock.explain.worked.said import plain, title
from oneblock.words import label, say

__all__ = ["page", "page_of_two"]


def page(made: Exercise, lang: str = "en") -> str:
    """An exercise as HTML: the figure of its model, its steps, heat maps, the stream, the lens, the candidates.

    >>> import oneblock
    >>> from oneblock.explain.worked import exercise
    >>> model = oneblock.build(oneblock.named("gpt2", dim=8, depth=1, heads=2, vocab=9)).eval()
    >>> page(exercise(oneblock.trace(model, [1, 2, 3])))[:15]
    '<!DOCTYPE html>'
    """
    parts = [section(one, made, number, lang) for number, one in enumerate(made.sections)]
    entries = [(f"part{number}", title(one, made, lang)) for number, one in enumerate(made.sections)]
    behind = after(made, lang) if made.whole else []
    names = [("figure", label("figure", lang)), *entries, *((at, name) for name, at, _ in behind)]
    name = label("traced", lang, plain(made.text)) if made.text else label("step by step", lang)
    heads = max((len(one.maps.heads) for one in made.sections if one.maps), default=1)
    drawn = part(label("figure", lang), "figure", figure(made, lang))
    inner = [first(made, lang), contents(names, lang), drawn, tag("div", *parts, id="steps")]
    return whole(name, [*inner, *(part(*one) for one in behind)], heads, lang)


def after(made: Exercise, lang: str) -> list[tuple[str, str, Html]]:
    """(name, place, part) of what stands behind the steps."""
    found = []
    if made.overview or any(one.maps for one in made.sections):
        said = tag("div", tag("p", label("each head note", lang)), overview(made, lang))
        found.append((label("each head", lang), "heads", said))
    found.append((say("step.stream", lang).name, "stream", noted("stream", streams(made, lang), lang)))
    if made.lens is not None:
        found.append((label("lens", lang), "lens", noted("lens", lens(made.lens, lang), lang)))
    if made.candidates is not None:
        found.append(
            (label("candidates", lang), "candidates", noted("candidates", candidates(made.candidates, lang), lang))
        )
    return found
