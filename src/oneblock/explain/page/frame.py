"""The frame of a page: head, contents, what is said first. The page asks nobody for anything and runs no script."""

from __future__ import annotations

from collections.abc import Sequence

from oneblock.draw import svg
from oneblock.explain.page.formula import math
from oneblock.explain.page.marks import Html, heading, tag
from oneblock.explain.page.style import style
from oneblock.explain.worked.form import Exercise
from oneblock.explain.worked.said import letters, notes, plain, side
from oneblock.words import label

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""What a browser may do with the page: draw it."""


def whole(name: str, inner: Sequence[Html], heads: int, lang: str) -> str:
    """A page from its parts."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", name),
        tag("style", Html(style(heads))),
    )
    skip = tag("a", label("skip", lang), href="#steps", class_="skip")
    body = tag("body", skip, tag("main", heading(1, name), *inner))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='zh-CN' if lang == 'zh' else lang)}\n"


def first(made: Exercise, lang: str) -> Html:
    """The sizes, the tokens, what is worked by hand."""
    said = [sizes(made, lang)]
    for stack, names in made.tokens.items():
        said.append(line(side(stack, lang), names, made.chosen.token.get(stack)))
    if any(made.answers):
        said.append(line(label("answer should", lang), made.answers, None))
    said += [tag("p", note) for note in notes(made, lang, tokens=False)]
    return tag("div", *said)


def sizes(made: Exercise, lang: str) -> Html:
    """What the letters stand for in this model."""
    found = [
        tag("li", symbol(letter), " = ", tag("b", size), tag("span", f" {meaning}", class_="soft"))
        for letter, size, meaning in letters(made, lang)
    ]
    return tag("div", tag("ul", *found, class_="sizes"), tag("p", plain(made.model), class_="soft"))


def symbol(letter: str) -> Html:
    """A letter with what is below it."""
    base, _, below = letter.partition("_")
    return math(f"{base}_{{\\mathrm{{{below}}}}}" if below else base, letter)


def line(name: str, tokens: Sequence[str], chosen: int | None) -> Html:
    """Tokens as boxes; the one that is worked by hand is marked."""
    boxes = [
        tag("span", plain(token), class_="token", aria_current="true" if at == chosen else None)
        for at, token in enumerate(tokens)
    ]
    return tag("p", tag("b", name), " ", *boxes)


def contents(entries: Sequence[tuple[str, str]], lang: str) -> Html:
    """Links to the parts: (place, name)."""
    links = [tag("li", tag("a", name, href=f"#{at}")) for at, name in entries]
    return tag("nav", heading(2, label("contents", lang)), tag("ol", *links), aria_label=label("contents", lang))


def figure(made: Exercise, lang: str) -> Html:
    """The model, drawn from its spec."""
    drawn = Html(svg(made.spec, lang, title=plain(made.model) if made.model else ""))
    return tag("div", tag("p", label("figure note", lang), class_="soft"), tag("div", drawn, class_="flow"))
