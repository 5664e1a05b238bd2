"""`oneblock diff`: what tells two architectures apart, a line per brick and one for sizes; or a patch to be applied."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from oneblock.cli.show import find
from oneblock.cost import cache_bytes, parameters
from oneblock.draw import width
from oneblock.draw.compare import compare
from oneblock.draw.price import counted, factor, remembered
from oneblock.spec import Spec, diff
from oneblock.tree import to_patch
from oneblock.words import label, language

EXAMPLE = "oneblock diff vaswani vaswani-big"

Lines = list[tuple[str, str, str]]
"""(topic, what was and is there, what that does)."""


def run(
    before: Annotated[
        str, typer.Argument(metavar="A", help="A model's name, a spec.json, or a folder that holds one.")
    ],
    after: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    lang: Annotated[str | None, typer.Option(metavar="en|zh", help="en or zh; by default the terminal's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a patch: oneblock.apply(A, patch) is B.")] = False,
) -> None:
    """Compare two models: one line for each brick that differs, one for sizes, and what both cost."""
    spoken = language(lang)
    a, b = find(before), find(after)
    if as_json:
        print(json.dumps(to_patch(diff(a, b)), ensure_ascii=False, indent=2))
    elif a == b:
        print(label("no difference", spoken))
    elif sys.stdout.isatty():
        Console().print(_rich(said(a, b, spoken)))
    else:
        print(text(said(a, b, spoken)))


def said(a: Spec, b: Spec, lang: str) -> Lines:
    """The lines of a comparison, with parameters and cache at the end where they differ."""
    lines = [(line.name, line.said, line.why) for line in compare(a, b, lang)]
    counts, bytes_ = ((count(a), count(b)) for count in (parameters, lambda spec: cache_bytes(spec).per_token))
    for name, words, values in (("parameters", counted, counts), ("cache", remembered, bytes_)):
        change = label("change", lang, words(a, lang), words(b, lang))
        if words(a, lang) != words(b, lang):
            lines.append((label(name, lang).capitalize(), change + factor(*values), ""))
    return lines


def text(lines: Lines) -> str:
    """Lines as plain text: the topics aligned, the reasons after a dash."""
    room = max(width(name) for name, _, _ in lines)
    return "\n".join(
        f"{name}{' ' * (room - width(name))}  {change}" + (f" — {why}" if why else "") for name, change, why in lines
    )


def _rich(lines: Lines) -> Table:
    shown = Table(box=None, show_header=False, pad_edge=False)
    shown.add_column(no_wrap=True)
    shown.add_column()
    for name, change, why in lines:
        shown.add_row(Text(name, style="bold"), Text(change) + Text(f"\n{why}" if why else "", style="dim"))
    return shown
