"""An exercise as text for a terminal: lines of spans, each with a role that may be coloured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oneblock.draw import width
from oneblock.explain.cause import CAUSES
from oneblock.explain.lens import Candidates, Lens
from oneblock.explain.mask import SIGNS
from oneblock.explain.worked.form import Addition, Exercise, Maps, Section, Shown, Softmax
from oneblock.explain.worked.number import shown
from oneblock.explain.worked.said import (
    chosen_tokens,
    legend,
    letters,
    measures,
    notes,
    plain,
    row,
    side,
    sized,
    sources,
    title,
    wiring,
)
from oneblock.words import label, say

Span = tuple[str, str]
"""(text, role): title, section, name, formula, shape, number, dim or nothing."""
Spans = tuple[Span, ...]
WIDE = 12
"""Keys up to which a matrix is printed."""


def text(made: Exercise, lang: str = "en") -> str:
    """The exercise as plain text.

    >>> import oneblock
    >>> from oneblock.explain.worked import exercise
    >>> model = oneblock.build(oneblock.named("gpt2", dim=8, depth=1, heads=2, vocab=9)).eval()
    >>> print(text(exercise(oneblock.trace(model, [1, 2, 3]))).splitlines()[0])
    Step by step
    """
    return "\n".join(written(line) for line in spans(made, lang))


def written(line: Spans) -> str:
    """A line without its roles."""
    return "".join(said for said, _ in line).rstrip()


def spans(made: Exercise, lang: str = "en") -> Iterator[Spans]:
    """The exercise, line by line."""
    yield ((label("traced", lang, plain(made.text)) if made.text else label("step by step", lang), "title"),)
    if made.model:
        yield ((made.model, "dim"),)
    sizes = letters(made, lang)
    for at in range(0, len(sizes), 3):
        yield tuple(
            span
            for letter, size, meaning in sizes[at : at + 3]
            for span in ((f"{letter} = ", "formula"), (size, "number"), (f" {meaning}   ", "dim"))
        )
    yield from (((said, ""),) for said in notes(made, lang))
    before = None
    for section in made.sections:
        yield from opened(section, made, before, lang)
        before = section
        for step in section.steps:
            yield from one(step, section, lang)
        if section.maps is not None:
            yield from mapped(section.maps, lang)
    if made.whole:
        yield from ended(made, lang)


def opened(section: Section, made: Exercise, before: Section | None, lang: str) -> Iterator[Spans]:
    """The head of a section."""
    yield ()
    yield (
        (f"━━ {title(section, made, lang)} ", "section"),
        ("" if section.path.endswith("end") else section.path, "dim"),
    )
    yield ((f"   {section.formula}", "formula"),)
    yield ((f"   {say(section.kind, lang).purpose}", ""),)
    if section.wiring and (before is None or (before.stack, before.layer) != (section.stack, section.layer)):
        yield ((f"   {wiring(section, lang)}", ""),)


def one(step: Shown, section: Section, lang: str) -> Iterator[Spans]:
    """One step: number, name, shape; sentence, formula, operands, numbers, arithmetic."""
    said = say(step.kind, lang)
    yield ()
    yield (
        (f"{step.number:>3}  ", "number"),
        (said.name, "name"),
        (f"  {sized(step)}", "shape"),
        (f"  {step.path}", "dim"),
    )
    yield (f"     {step.written.formula}", "formula"), (f"   {said.purpose}", "")
    made_of = "; ".join(f"{name}: {where} {size}" for name, where, size in sources(step, lang))
    if made_of:
        yield ((f"     {label('works on', lang)} {made_of}", "dim"),)
    first = row(step, lang)
    if first:
        yield ((f"     {first}", "number"),)
    yield ((f"     {measures(step, lang)}", "dim"),)
    for line in step.lines:
        how = f"{line.how} = " if line.how else ""
        note = f"   {label(line.note, lang)}" if line.note else ""
        yield (f"     {line.name} = ", "formula"), (how, ""), (shown(line.value), "number"), (note, "dim")
    if step.softmax is not None and section.maps is not None:
        yield from by_hand(step.softmax, section.maps, lang)


def by_hand(found: Softmax, maps: Maps, lang: str) -> Iterator[Spans]:
    """A row of the softmax, worked."""
    yield ((f"     {label('softmax row', lang, plain(maps.queries[found.query]))}", "name"),)
    head = ("", "s'", "s' − max", "e^(s' − max)", "a")
    lines = [
        (plain(key), *map(shown, numbers))
        for key, *numbers in zip(maps.keys, found.scores, found.shifted, found.exps, found.weights, strict=True)
    ]
    total = ("", f"max {shown(found.largest)}", "", f"Σ {shown(found.sum)}", f"Σ {shown(sum(found.weights))}")
    yield from table(head, [*lines, total], "     ")


def table(head: Sequence[str], lines: Sequence[Sequence[str]], indent: str) -> Iterator[Spans]:
    """Aligned columns, numbers to the right."""
    rooms = [max(width(line[at]) for line in (head, *lines)) for at in range(len(head))]
    yield ((indent + padded(head, rooms), "dim"),)
    for line in lines:
        yield ((indent + padded(line, rooms), "number"),)


def padded(line: Sequence[str], rooms: Sequence[int]) -> str:
    """One line: the first cell to the left, the others to the right."""
    first, *rest = line
    cells = [first + " " * (rooms[0] - width(first))]
    cells += [" " * (room - width(cell)) + cell for cell, room in zip(rest, rooms[1:], strict=True)]
    return "  ".join(cells)


def mapped(maps: Maps, lang: str) -> Iterator[Spans]:
    """The mask with its causes, and the weights of the chosen head, where they are small enough to print."""
    yield ()
    if len(maps.keys) > WIDE or len(maps.queries) > 2 * WIDE:
        yield ((f"     {label('too wide', lang, WIDE)}", "dim"),)
        return
    keys = [plain(key) for key in maps.keys]
    names = [plain(query) for query in maps.queries]
    yield ((f"     {label('rows and columns', lang, label('mask of', lang, maps.path))}", "name"),)
    signs = [[name, *(SIGNS[CAUSES[cause]] for cause in line)] for name, line in zip(names, maps.hidden, strict=True)]
    yield from table(["q \\ k", *keys], signs, "     ")
    for sign, cause in legend(maps, lang):
        yield ((f"     {sign} {cause}", "dim"),)
    said = label("in streams", lang, label("head number", lang, maps.head), say("step.pattern", lang).name)
    yield ((f"     {said}", "name"),)
    weights = maps.heads[maps.head].weights
    yield from table(
        ["q \\ k", *keys], [[name, *map(shown, line)] for name, line in zip(names, weights, strict=True)], "     "
    )


def ended(made: Exercise, lang: str) -> Iterator[Spans]:
    """The stream through all blocks, the lens, the candidates."""
    for (stack, rows), where in zip(made.additions.items(), chosen_tokens(made), strict=False):
        yield ()
        yield ((f"━━ {label('in streams', lang, side(stack, lang), label('stream at', lang, where))}", "section"),)
        yield from stream(rows, lang)
    if made.lens is not None:
        yield ()
        yield ((f"━━ {label('lens', lang)}", "section"),)
        yield ((f"   {label('lens note', lang)}", ""),)
        if len(made.lens.tokens) > WIDE:
            yield ((f"   {label('first columns', lang, WIDE, len(made.lens.tokens))}", "dim"),)
        yield from through(made.lens)
    if made.candidates is not None:
        yield ()
        yield ((f"━━ {label('candidates', lang)}", "section"),)
        yield ((f"   {label('candidates note', lang)}", ""),)
        yield from spoken(made.candidates, lang)


def stream(rows: Sequence[Addition], lang: str) -> Iterator[Spans]:
    """What each addition adds, and a bar for the norm after it."""
    longest = max((one.after for one in rows), default=0.0) or 1.0
    head = [label("addition", lang), "‖x‖", "‖f(x)‖", "‖f(x)‖/‖x‖", label("norm after", lang)]
    lines = [
        [one.path, *("–" if x is None else shown(x) for x in (one.before, one.added, one.ratio, one.after))]
        for one in rows
    ]
    for at, line in enumerate(table(head, lines, "   ")):
        bar = "" if at == 0 else "  " + "█" * max(1, round(24 * rows[at - 1].after / longest))
        yield (*line, (bar, "shape"))


def through(lens: Lens) -> Iterator[Spans]:
    """A line for each stage: the best token at each place and its probability."""
    head = ["", *(plain(token) for token in lens.tokens[:WIDE])]
    lines = [
        [path, *(f"{plain(best[0].token)} {shown(best[0].probability)}" for best in stage[:WIDE])]
        for path, stage in zip(lens.paths, lens.best, strict=True)
    ]
    yield from table(head, lines, "   ")


def spoken(found: Candidates, lang: str) -> Iterator[Spans]:
    """A line for each position: its best candidates."""
    for token, best, answer in zip(found.tokens, found.best, found.answers, strict=True):
        said = "  ".join(f"{plain(one.token)} {shown(one.probability)}" for one in best)
        right = "" if answer is None else f"   {label('answer should', lang)} {plain(answer.token)}"
        yield (f"   {plain(token)} → ", "name"), (said, "number"), (right, "dim")
