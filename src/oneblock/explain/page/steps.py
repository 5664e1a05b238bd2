"""The steps of an exercise on a page: name, shape, formula, what they were made from, numbers, sums written out."""

from __future__ import annotations

from oneblock.explain.page.formula import math
from oneblock.explain.page.maps import attention
from oneblock.explain.page.marks import Html, heading, scrolling, tag
from oneblock.explain.worked.form import Exercise, Line, Maps, Part, Section, Shown, Softmax
from oneblock.explain.worked.number import shown
from oneblock.explain.worked.said import measures, plain, row, sized, sizes, title
from oneblock.words import label, say

COLUMNS = (
    ("", ""), ("s'", "s'"), (r"s' - \max s'", "s' − max"), (r"e^{s' - \max s'}", "e^(s' − max)"), ("a", "a"),
)  # fmt: skip
"""The heads of a softmax that is worked by hand."""


def section(one: Section, made: Exercise, number: int, lang: str) -> Html:
    """A sublayer with its steps, and its attention where it has one."""
    said = say(one.kind, lang)
    parts = [heading(2, title(one, made, lang), id=f"part{number}-title"), tag("p", said.purpose)]
    parts.append(tag("p", math(said.latex, said.formula, block=True), class_="m"))
    if one.formula and one.formula != said.formula:
        parts.append(tag("p", f"{label('in this model', lang)} ", tag("span", one.formula, class_="f"), class_="soft"))
    if one.wiring:
        parts.append(wired(one, lang))
    steps = [step(each, one, lang) for each in one.steps]
    if one.maps is not None:
        steps.append(attention(one.maps, number, lang))
    return tag("section", *parts, *steps, id=f"part{number}", aria_labelledby=f"part{number}-title")


def wired(one: Section, lang: str) -> Html:
    """Where the norms of the block stand."""
    said = say(f"wiring.{one.wiring}", lang)
    return tag("p", f"{said.name} ", math(said.latex, said.formula), f" {said.purpose}", class_="soft")


def step(one: Shown, within: Section, lang: str) -> Html:
    """One step."""
    said = say(one.kind, lang)
    head = tag(
        "header",
        heading(3, tag("span", str(one.number), class_="no"), " ", said.name),
        tag("span", sized(one), class_="shape"),
        tag("code", one.path, class_="soft"),
    )
    parts = [
        head,
        tag("p", said.purpose),
        tag("p", math(one.written.latex, one.written.formula, block=True), class_="m"),
    ]
    if one.parts:
        parts.append(tag("p", f"{label('works on', lang)} ", *made_of(one, lang), class_="soft"))
    if one.row:
        parts.append(tag("p", row(one, lang), class_="row"))
    parts.append(tag("p", measures(one, lang), class_="soft"))
    parts += [sum_of(line, lang) for line in one.lines]
    if one.softmax is not None and within.maps is not None:
        parts.append(softmax(one.softmax, within.maps, lang))
    return tag("article", *parts, class_="step", id=f"step{one.number}")


def made_of(one: Shown, lang: str) -> list[Html | str]:
    """The operands; those that are steps lead there."""
    found: list[Html | str] = []
    for part in one.parts:
        found += ["; " if found else "", f"{part.name}: ", where(part, lang), f" {sizes(part, lang)}"]
    return found


def where(part: Part, lang: str) -> Html:
    """Where an operand comes from."""
    if part.number:
        return tag("a", label("step number", lang, part.number), href=f"#step{part.number}")
    return tag("code", part.path)


def sum_of(line: Line, lang: str) -> Html:
    """A number and the sum that gives it."""
    how = f"{line.how} = " if line.how else ""
    note = [tag("span", f"  {label(line.note, lang)}", class_="soft")] if line.note else []
    return tag("p", tag("span", line.name, class_="f"), f" = {how}", tag("b", shown(line.value)), *note, class_="sum")


def softmax(found: Softmax, maps: Maps, lang: str) -> Html:
    """One row of the softmax by hand."""
    said = label("softmax row", lang, plain(maps.queries[found.query]))
    head = tag("tr", *(tag("th", math(*name), scope="col") for name in COLUMNS))
    columns = zip(maps.keys, found.scores, found.shifted, found.exps, found.weights, strict=True)
    lines = [
        tag("tr", tag("th", plain(key), scope="row"), *(tag("td", shown(x), class_="n") for x in numbers))
        for key, *numbers in columns
    ]
    sums = ("", f"max {shown(found.largest)}", "", f"Σ {shown(found.sum)}", f"Σ {shown(sum(found.weights))}")
    foot = tag("tr", *(tag("td", cell, class_="n") for cell in sums))
    table = tag("table", tag("caption", said), tag("thead", head), tag("tbody", *lines), tag("tfoot", foot))
    return scrolling(said, table)
