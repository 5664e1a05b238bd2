"""What a screen and a page both say of an exercise: titles, token lists, shapes, sources, in one language."""

from __future__ import annotations

from oneblock.draw.describe import number
from oneblock.explain.cause import CAUSES
from oneblock.explain.mask import SIGNS
from oneblock.explain.worked.choose import listed, stacks
from oneblock.explain.worked.form import Exercise, Maps, Part, Section, Shown
from oneblock.explain.worked.number import shape, shown
from oneblock.words import label, say


def plain(token: str) -> str:
    """A text without what a terminal or a page would obey: control and format characters become U+FFFD.

    >>> plain("a" + chr(27) + "[2J")
    'a\\ufffd[2J'
    """
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in token) or "∅"


def side(stack: str, lang: str) -> str:
    """What a stack is called."""
    return say(stack.rstrip(".") or "Model", lang).name


def notes(made: Exercise, lang: str, tokens: bool = True) -> list[str]:
    """What is said before the first step: the tokens, the shift, what is worked by hand."""
    found = [label("random weights", lang, made.model)] if made.random else []
    if tokens:
        found += [label("reads", lang, side(stack, lang), plain_list(read)) for stack, read in made.tokens.items()]
        found += [label("say next", lang, plain_list(made.answers))] if any(made.answers) else []
    if any(made.answers) and "decoder." in made.tokens:
        found.append(label("shifted", lang))
    found.append(label("by hand", lang, made.chosen.layer, made.chosen.head, ", ".join(chosen_tokens(made))))
    return found


def plain_list(names: tuple[str, ...]) -> str:
    """Tokens on one line."""
    return listed(tuple(plain(name) if name else "·" for name in names), 60)


def chosen_tokens(made: Exercise) -> list[str]:
    """The tokens that are worked by hand."""
    return [
        f"{plain(made.tokens[stack][at])} [{at}]" for stack, at in made.chosen.token.items() if made.tokens[stack]
    ]  # fmt: skip


def letters(made: Exercise, lang: str) -> list[tuple[str, str, str]]:
    """(letter, number, meaning) of each size."""
    return [(letter, number(size), label(f"letter {letter}", lang)) for letter, size in made.sizes]


def title(section: Section, made: Exercise, lang: str) -> str:
    """What a section is called, and where it is."""
    name = say(section.kind, lang).name
    if not section.stack and section.layer is None:
        return name
    where = side(section.stack, lang)
    if section.layer is not None:
        depth = len(stacks(made.spec)[section.stack].layers)
        where = label("block of", lang, where, section.layer, depth)
    return label("in streams", lang, where, name)


def sources(step: Shown, lang: str) -> list[tuple[str, str, str]]:
    """(name, where it comes from, its shape) of each operand."""
    return [(part.name, origin(part, lang), sizes(part, lang)) for part in step.parts]


def origin(part: Part, lang: str) -> str:
    """Where an operand comes from: the number of a step, or a path."""
    return label("step number", lang, part.number) if part.number else part.path


def sizes(part: Part, lang: str) -> str:
    """The shape of an operand, and how it is stored where that differs."""
    said = f"({', '.join(map(str, part.shape))})"
    return f"{said}, {label('stored', lang, str(part.stored))}" if part.stored else said


def measures(step: Shown, lang: str) -> str:
    """The statistics of a step."""
    of = step.statistics
    said = label("statistics", lang, *(shown(x) for x in (of.min, of.mean, of.max, of.norm)))
    return said if not of.nonfinite else f"{said} · {label('not finite', lang, of.nonfinite)}"


def sized(step: Shown) -> str:
    """The shape of a step in letters and numbers."""
    return shape(step.dims, step.shape)


def row(step: Shown, lang: str) -> str:
    """The first numbers of the step at the chosen place; empty where there are none."""
    if not step.row:
        return ""
    rest = f" {label('of all', lang, step.width)}" if step.width > len(step.row) else ""
    return f"{step_symbol(step)} = {'  '.join(map(shown, step.row))}{rest}"


def step_symbol(step: Shown) -> str:
    """The symbol of a step at its place."""
    inner = ", ".join([*map(str, step.index), ":"])
    return f"{step.written.symbol or 'x'}[{inner}]"


def wiring(section: Section, lang: str) -> str:
    """Where the norms of a block stand, in words and as a formula; empty outside a block."""
    if not section.wiring:
        return ""
    said = say(f"wiring.{section.wiring}", lang)
    return label("reason", lang, said.name, f"{said.formula} – {said.purpose}" if said.formula else said.purpose)


def legend(maps: Maps, lang: str) -> list[tuple[str, str]]:
    """(sign, cause in words) of each sign in a mask."""
    there = {cause for line in maps.hidden for cause in line}
    return [
        (SIGNS[cause], label("reason", lang, label(f"cause {cause}", lang), label(f"hidden by {cause}", lang)))
        for number_, cause in enumerate(CAUSES)
        if number_ in there
    ]
