"""`oneblock verify`: does a model compute here what transformers makes of the same files? Brick by brick."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from oneblock.draw import width
from oneblock.text.foreign import read_tokenizer
from oneblock.words import label, language

if TYPE_CHECKING:
    from oneblock.weights.verify import Agreement

EXAMPLE = "oneblock verify models/gpt2"


def run(
    model: Annotated[str, typer.Argument(metavar="DIR", help="A model folder, or a hub id.")],
    reference: Annotated[
        str | None, typer.Option(metavar="DIR", help="What transformers opens instead; by default the same folder.")
    ] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt-ids", metavar="1,2,3", help="Compare on these ids; by default random ones.")
    ] = None,
    text: Annotated[str | None, typer.Option(help="Compare on this text, read by the folder's tokenizer.")] = None,
    length: Annotated[int, typer.Option(min=2, help="Tokens of random texts.")] = 12,
    seed: Annotated[int, typer.Option(help="Of random ids.")] = 0,
    lang: Annotated[str | None, typer.Option(metavar="en|zh", help="en or zh; by default the terminal's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every brick as JSON.")] = False,
) -> None:
    """Compare a model with transformers, brick by brick; name the first that is further apart than rounding explains.

    Exit code 0: they agree. 1: they differ. A brick agrees within ten times the noise of its own float32.
    """
    spoken = language(lang)
    if prompt is not None and text is not None:
        raise ValueError("--prompt-ids, --text: expected one of them, got both")
    given = ids(prompt) if prompt is not None else None if text is None else read(Path(model), text)
    found = import_module("oneblock.weights.verify").verify(model, reference, given, length, seed)
    if as_json:
        bricks = [
            asdict(brick)
            | {"difference": figure(brick.difference), "noise": figure(brick.noise), "agrees": brick.agrees}
            for brick in found.bricks
        ]
        print(json.dumps({"agrees": found.agrees} | asdict(found) | {"bricks": bricks}, ensure_ascii=False, indent=2))
    else:
        _print(found, spoken)
    raise typer.Exit(int(not found.agrees))


def ids(prompt: str) -> list[int]:
    """The ids that `--prompt-ids` says."""
    words = prompt.replace(",", " ").split()
    if not words or not all(word.isdecimal() for word in words):
        raise ValueError(f"--prompt-ids: expected numbers such as 1,2,3, got {prompt!r}")
    return [int(word) for word in words]


def figure(x: float) -> float | None:
    """A number as JSON has it, which knows neither NaN nor infinity."""
    return x if isfinite(x) else None


def read(folder: Path, text: str) -> list[int]:
    """The ids of a text."""
    found = read_tokenizer(folder).encode(text)
    if not found:
        raise ValueError("--text: expected a text, got none (an empty prompt)")
    return found


def summary(found: Agreement, lang: str) -> list[str]:
    """The lines below the table: where the two part first, and what was not compared."""
    lines = [label("no brick apart", lang)]
    if found.first is not None:
        given = found.given
        lines = [label("first given", lang, found.first, given) if given else label("first apart", lang, found.first)]
    for why in dict.fromkeys(found.skipped.values()):
        names = [name for name, reason in found.skipped.items() if reason == why]
        lines.append(label("not compared", lang, label(f"why {why}", lang), ", ".join(names)))
    return lines


def rows(found: Agreement, lang: str) -> list[tuple[str, ...]]:
    """The table: heads, then a line for each brick in the order in which they run."""
    heads = ("brick", "difference", "noise", "verdict")
    verdicts = [label("agrees" if brick.agrees else "differs", lang) for brick in found.bricks]
    return [
        tuple(label(head, lang) for head in heads),
        *(
            (brick.name, f"{brick.difference:.1e}", f"{brick.noise:.1e}", verdict)
            for brick, verdict in zip(found.bricks, verdicts, strict=True)
        ),
    ]


def _print(found: Agreement, lang: str) -> None:
    table = rows(found, lang)
    if sys.stdout.isatty():
        shown = Table(box=None, header_style="bold", pad_edge=False)
        for index, head in enumerate(table[0]):
            shown.add_column(head, no_wrap=True, justify="right" if index in (1, 2) else "left")
        for brick, row in zip(found.bricks, table[1:], strict=True):
            shown.add_row(*row, style="" if brick.agrees else "bold red")
        Console().print(shown)
    else:
        rooms = [max(width(row[column]) for row in table) for column in range(4)]
        for row in table:
            cells = [cell + " " * (room - width(cell)) for cell, room in zip(row, rooms, strict=True)]
            print("  ".join(cells).rstrip())
    print("\n".join(summary(found, lang)))
