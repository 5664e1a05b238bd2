"""`oneblock models`: every model we know by name, its bricks, what it costs, and where it was published."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from oneblock.cost import active, cache_bytes, parameters
from oneblock.draw import width
from oneblock.draw.brief import brief
from oneblock.draw.describe import number
from oneblock.spec import Spec
from oneblock.words import label, language, say
from oneblock.zoo import FAMILIES, named

EXAMPLE = "oneblock models"

BRICKS = ("mask", "position", "wiring", "norm", "attention", "feedforward")
PAPER = re.compile(r"([A-Z]\w+(?: et al\.| and [A-Z]\w+| team)) (\d{4})(?:,? \(?(arXiv:\d{4}\.\d{4,5}))?")


@dataclass(frozen=True)
class Known:
    """A named model: its bricks in words, its numbers, its paper."""

    name: str
    bricks: dict[str, str]
    parameters: int
    active: int
    cache_per_token: int
    paper: str


def run(
    lang: Annotated[str | None, typer.Option(metavar="en|zh", help="en or zh; by default the terminal's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print names, bricks and numbers as JSON.")] = False,
) -> None:
    """List every family and published size: bricks, parameters, bytes of cache per token, paper."""
    spoken = language(lang)
    models = known(spoken)
    if as_json:
        print(json.dumps([asdict(model) for model in models], ensure_ascii=False, indent=2))
    elif sys.stdout.isatty():
        Console().print(_rich(models, spoken))
    else:
        print(text(models, spoken))


def known(lang: str) -> list[Known]:
    """Every published size once, in the order of the families; a family without sizes by its own name."""
    return [
        describe(size, named(size), paper(family.make), lang)
        for name, family in FAMILIES.items()
        for size in family.sizes or [name]
    ]


def describe(name: str, spec: Spec, paper: str, lang: str) -> Known:
    """One model in words and numbers."""
    bricks = {topic: brief(topic, spec, lang) for topic in BRICKS}
    return Known(name, bricks, parameters(spec), active(spec), cache_bytes(spec).per_token, paper)


def paper(make: Callable[..., Spec]) -> str:
    """The paper of a family: what the docstring of its function cites, or that of the file it stands in."""
    return cited(make.__doc__ or "") or cited(sys.modules[make.__module__].__doc__ or "")


def cited(doc: str) -> str:
    """Who, year and arXiv number if it has one, as the docstring of a family's function gives them; else nothing.

    >>> cited("Vaswani et al. 2017 (arXiv:1706.03762): the first one.")
    'Vaswani et al. 2017, arXiv:1706.03762'
    """
    found = PAPER.search(doc)
    return ", ".join(filter(None, (f"{found[1]} {found[2]}", found[3]))) if found else ""


def cells(model: Known, lang: str) -> list[str]:
    """A model as the cells of its row."""
    used = f" ({label('active', lang, number(model.active))})" if model.active < model.parameters else ""
    cache = number(model.cache_per_token) if model.cache_per_token else label("no cache", lang)
    return [model.name, *model.bricks.values(), number(model.parameters) + used, cache, model.paper]


def heading(lang: str) -> list[str]:
    """The heads of the columns."""
    topics = [say(f"topic.{topic}", lang).name for topic in BRICKS]
    return [
        label("model", lang),
        *topics,
        label("parameters", lang),
        label("cache per token", lang),
        label("paper", lang),
    ]


def text(models: list[Known], lang: str) -> str:
    """Models as aligned plain text."""
    lines = [heading(lang), *(cells(model, lang) for model in models)]
    rooms = [max(width(line[column]) for line in lines) for column in range(len(lines[0]))]
    padded = [[cell + " " * (room - width(cell)) for cell, room in zip(line, rooms, strict=True)] for line in lines]
    return "\n".join("  ".join(line).rstrip() for line in padded)


def _rich(models: list[Known], lang: str) -> Table:
    shown = Table(box=None, header_style="bold", pad_edge=False)
    for index, head in enumerate(heading(lang)):
        shown.add_column(head, no_wrap=index == 0)
    for model in models:
        shown.add_row(*cells(model, lang))
    return shown
