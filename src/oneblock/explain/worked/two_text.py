"""Two texts side by side as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oneblock.draw import width
from oneblock.explain.worked.form import Maps
from oneblock.explain.worked.number import shape, shown
from oneblock.explain.worked.said import plain, plain_list, side, title
from oneblock.explain.worked.text import WIDE, Spans, table, written
from oneblock.explain.worked.two import Beside, Stack, apart
from oneblock.words import label, say


def text(found: Beside, lang: str = "en") -> str:
    """Both as plain text."""
    return "\n".join(written(line) for line in spans(found, lang))


def spans(found: Beside, lang: str = "en") -> Iterator[Spans]:
    """Both, line by line."""
    yield ((label("beside", lang, plain(found.left.text), plain(found.right.text)), "title"),)
    yield from (((said, ""),) for said in notes(found, lang))
    yield ()
    head, rows = columns(found, lang)
    yield from table(head, rows, "")
    for one, other in zip(found.left.sections, found.right.sections, strict=False):
        if one.maps and other.maps and len(one.maps.keys) <= WIDE and len(other.maps.keys) <= WIDE:
            yield ()
            yield ((f"━━ {title(one, found.left, lang)}", "section"),)
            yield from (((line, "number"),) for line in pair(one.maps, other.maps))


def notes(found: Beside, lang: str) -> list[str]:
    """Who reads what, what is compared, where they first differ."""
    said = remarks(found, lang)
    for one in found.stacks:
        for made in (found.left, found.right):
            said.append(label("reads", lang, side(one.stack, lang), plain_list(made.tokens[one.stack])))
        said += verdict(found, one, lang)
    return said


def remarks(found: Beside, lang: str) -> list[str]:
    """What is particular about the model that ran."""
    said = [label("random weights", lang, found.left.model)] if found.left.random else []
    return said if found.positions else [*said, label("beside without", lang)]


def verdict(found: Beside, one: Stack, lang: str) -> list[str]:
    """What a comparison of one stack says."""
    bag = label("beside bag", lang) if one.bag else label("beside no bag", lang, plain_list(one.shared) or "–")
    first = label("beside same", lang)
    if one.first_place is not None:
        first = label("beside first", lang, one.first_place, named(found, one.first_place, lang))
    moved = label("beside unmoved", lang)
    if one.first_token is not None:
        moved = label("beside moved", lang, one.first_token, named(found, one.first_token, lang))
    return [f"  {bag}", f"  {first}", f"  {moved}"]


def named(found: Beside, number: int, lang: str) -> str:
    """What the step of a number is called, with its path."""
    twin = found.step(number)
    return f"{say(twin.kind, lang).name} ({twin.path})"


def columns(found: Beside, lang: str) -> tuple[list[str], list[list[str]]]:
    """(heads, rows) of the table of steps."""
    left, right = (f"‖·‖ {brief(made.text)}".rstrip() for made in (found.left, found.right))
    head = [label("step", lang), "", left, right, label("place by place", lang), label("token by token", lang)]
    rows = []
    for one in found.steps:
        sizes = shape(one.dims, one.shapes[0])
        sizes += "" if one.shapes[0] == one.shapes[1] else f" | ({', '.join(map(str, one.shapes[1]))})"
        name = f"{one.number:>3} {say(one.kind, lang).name}"
        rows.append([name, sizes, *map(shown, one.norms), gap(one.place, lang), gap(one.token, lang)])
    return head, rows


def brief(text: str, most: int = 12) -> str:
    """The beginning of a text.

    >>> brief("A long sentence.")
    'A long sent…'
    """
    said = plain(text) if text else ""
    return said if len(said) <= most else f"{said[: most - 1]}…"


def gap(x: float | None, lang: str) -> str:
    """A difference in words or as a number."""
    return "–" if x is None else shown(x) if apart(x) else label("no difference there", lang)


def pair(one: Maps, other: Maps) -> list[str]:
    """The weights of the chosen head of both, next to each other."""
    left, right = (grid(maps) for maps in (one, other))
    room = max(map(width, left))
    many = max(len(left), len(right))
    left, right = ([*side_, *[""] * (many - len(side_))] for side_ in (left, right))
    return [f"{a}{' ' * (room - width(a))}   │   {b}" for a, b in zip(left, right, strict=True)]


def grid(maps: Maps) -> list[str]:
    """The weights of the chosen head as lines."""
    rows: Sequence[Sequence[str]] = [
        [plain(query), *map(shown, line)]
        for query, line in zip(maps.queries, maps.heads[maps.head].weights, strict=True)
    ]
    return [written(line) for line in table(["q \\ k", *map(plain, maps.keys)], rows, "   ")]
