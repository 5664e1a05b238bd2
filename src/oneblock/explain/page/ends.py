"""What stands behind the steps on a page: the stream as bars, the lens, candidates with their probabilities."""

from __future__ import annotations

from collections.abc import Sequence

from oneblock.explain.lens import Candidate, Candidates, Lens
from oneblock.explain.page.formula import math
from oneblock.explain.page.marks import Html, heading, scrolling, tag
from oneblock.explain.worked.form import Addition, Exercise
from oneblock.explain.worked.number import shown
from oneblock.explain.worked.said import chosen_tokens, plain, side
from oneblock.words import label

NORMS = (
    (r"\lVert x \rVert", "‖x‖"),
    (r"\lVert f(x) \rVert", "‖f(x)‖"),
    (r"\lVert f(x) \rVert / \lVert x \rVert", "‖f(x)‖/‖x‖"),
)
"""What is measured of an addition."""


def streams(made: Exercise, lang: str) -> Html:
    """The norm of the stream after each addition, of each stack."""
    parts = []
    for (stack, rows), where in zip(made.additions.items(), chosen_tokens(made), strict=False):
        said = label("in streams", lang, side(stack, lang), label("stream at", lang, where))
        parts.append(scrolling(said, bars(rows, said, lang)))
    return tag("div", *parts)


def bars(rows: Sequence[Addition], said: str, lang: str) -> Html:
    """A line for each addition."""
    longest = max((one.after for one in rows), default=0.0) or 1.0
    x, f, share = (math(*one) for one in NORMS)
    names = (label("addition", lang), x, f, share, label("norm after", lang), "")
    head = tag("tr", *(tag("th", name, scope="col") for name in names))
    lines = []
    for one in rows:
        numbers = ("–" if x is None else shown(x) for x in (one.before, one.added, one.ratio, one.after))
        bar = tag("td", tag("span", class_="bar", style=f"--w:{one.after / longest:.3f}"), class_="w")
        cells = (tag("td", number, class_="n") for number in numbers)
        lines.append(tag("tr", tag("th", one.path, scope="row"), *cells, bar))
    return tag("table", tag("caption", said), tag("thead", head), tag("tbody", *lines))


def lens(found: Lens, lang: str) -> Html:
    """For each stage and token the best candidate, and the probability of what comes out in the end."""
    said = label("lens", lang)
    head = tag("tr", tag("th", ""), *(tag("th", plain(token), scope="col") for token in found.tokens))
    lines = [
        tag("tr", tag("th", path, scope="row"), *(read(best[0], x) for best, x in zip(stage, final, strict=True)))
        for path, stage, final in zip(found.paths, found.best, found.final, strict=True)
    ]
    table = tag("table", tag("thead", head), tag("tbody", *lines))
    return scrolling(said, table)


def read(best: Candidate, share: float) -> Html:
    """One cell of the lens: the likeliest token, the darker the likelier the one that comes in the end."""
    return tag(
        "td", tag("b", plain(best.token)), f" {shown(best.probability)}", class_="n", style=f"--a:{share:.2f}"
    )  # fmt: skip


def candidates(found: Candidates, lang: str) -> Html:
    """For each token the likeliest next ones with bars."""
    rows = []
    for token, best, answer in zip(found.tokens, found.best, found.answers, strict=True):
        likely = [
            (tag("td", plain(one.token), class_="w"), tag("td", shown(one.probability), class_="n",
             style=f"--a:{one.probability:.2f}"))
            for one in best
        ]  # fmt: skip
        right = "" if answer is None else f"{plain(answer.token)} {shown(answer.probability)}"
        rows.append(tag("tr", tag("th", plain(token), scope="row"), *likely, tag("td", right, class_="w")))
    most = max((len(best) for best in found.best), default=0)
    places = (tag("th", str(at), scope="colgroup", colspan="2") for at in range(1, most + 1))
    head = tag("tr", tag("th", ""), *places, tag("th", label("answer should", lang), scope="col"))
    said = label("candidates", lang)
    table = tag("table", tag("thead", head), tag("tbody", *rows))
    return scrolling(said, table)


NOTES = {"stream": ("stream note",), "lens": ("lens note", "lens shade"), "candidates": ("candidates note",)}
"""Place of a part -> the labels of what is said before it."""


def noted(at: str, inner: Html, lang: str) -> Html:
    """A part after what is said of it."""
    return tag("div", tag("p", " ".join(label(key, lang) for key in NOTES[at])), inner)


def part(name: str, at: str, inner: Html) -> Html:
    """A section with its heading."""
    return tag("section", heading(2, name, id=f"{at}-title"), inner, id=at, aria_labelledby=f"{at}-title")
