"""`oneblock show`: what a model is made of, as a table, as JSON, or as a figure; nothing is built."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from oneblock.cost import parameters
from oneblock.draw import Row, cells, heading, svg, table, text, width
from oneblock.files import write_file
from oneblock.hint import nearest
from oneblock.spec import Spec, to_dict
from oneblock.spec.read import read
from oneblock.words import language
from oneblock.zoo import FAMILIES, named, names
from oneblock.zoo.config import read_public

FORMULA = 34
"""Columns that a formula needs at least."""

EXAMPLE = "oneblock show vaswani --svg vaswani.svg"


def run(
    spec: Annotated[
        str, typer.Argument(metavar="SPEC", help="A model's name, or a spec.json, a config.json, or a folder with one.")
    ],
    depth: Annotated[int, typer.Option(min=0, help="0 the whole, 1 its parts, 2 sublayers, 3 the steps in them.")] = 2,
    length: Annotated[
        int | None, typer.Option(min=1, help="Number of tokens in the shapes; by default the word.")
    ] = None,
    svg_file: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Draw the architecture into this file.")
    ] = None,
    lang: Annotated[str | None, typer.Option(metavar="en|zh", help="en or zh; by default the terminal's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print spec, parameters and rows as JSON.")] = False,
) -> None:
    """Show the bricks of a model: their formulas, the shapes that come out of them, and what they learn."""
    spoken = language(lang)
    model = find(spec)
    rows = table(model, spoken, depth, length)
    if svg_file is not None:
        write_file(svg_file, svg(model, spoken, length, title=_called(spec)).encode())
    if as_json:
        listed = [asdict(row) | {"total": row.total} for row in rows]
        said = {"spec": to_dict(model), "parameters": parameters(model), "rows": listed}
        print(json.dumps(said, ensure_ascii=False, indent=2))
    elif sys.stdout.isatty():
        console = Console()
        console.print(_rich(rows, spoken, console.width))
    else:
        print(text(rows, spoken))


def find(name: str) -> Spec:
    """The spec that a name of the zoo, a file or a folder stands for; ValueError in one line where there is none."""
    if name in names():
        return named(name)
    path = Path(name)
    if path.is_dir():
        path = path / ("spec.json" if (path / "spec.json").is_file() else "config.json")
    if not path.is_file():
        hint = nearest(name, names())
        hint = hint if hint.startswith("did you mean") else "`oneblock models` lists the names"
        raise ValueError(f"{name}: expected a model's name, a spec.json or config.json, or a folder with one; {hint}")
    return read_public(path, FAMILIES)[2] if path.name == "config.json" else read(path)


def _rich(rows: tuple[Row, ...], lang: str, room: int) -> Table:
    """Rows as a table for `room` columns: details, then formulas, are left out where they do not fit."""
    said = [cells(row, lang) for row in rows]
    brick, detail, _, shape, count = (max(width(line[column]) for line in said) for column in range(5))
    formulas = room >= brick + FORMULA + shape + count + 6
    detailed = room >= brick + detail + (FORMULA if formulas else 0) + shape + count + 8
    shown = Table(box=None, header_style="bold", pad_edge=False)
    for index, head in enumerate(heading(lang)):
        if index != 1 or formulas:
            shown.add_column(head, justify="right" if index == 3 else "left", no_wrap=index in (0, 3))
    for row, (name, details, formula, shaped, counted) in zip(rows, said, strict=True):
        first = Text(name, style="bold" if row.level < 2 else "")
        first += Text(f"  {details}" if detailed and details else "", style="dim")
        middle = [Text(formula, style="cyan")] if formulas else []
        shown.add_row(first, *middle, Text(shaped, style="green"), Text(counted))
    return shown


def _called(name: str) -> str:
    """What a figure of this spec is called: its name, or that of its file or folder."""
    path = Path(name)
    return (
        name
        if name in names()
        else path.resolve().parent.name
        if path.name in ("spec.json", "config.json")
        else path.stem
    )
