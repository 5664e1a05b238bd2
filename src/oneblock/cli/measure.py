"""What `oneblock cost --measure` prints: predicted, counted and measured side by side, brick by brick."""

from __future__ import annotations

import json
from typing import Any

from oneblock.cost import Cost, Machine
from oneblock.draw.amount import seconds, short
from oneblock.draw.describe import kind
from oneblock.draw.invoice import aligned
from oneblock.explain.measured import Measured, measured, ordered
from oneblock.spec import Attention
from oneblock.words import label, say


def show(found: Cost, machine: Machine, lang: str, as_json: bool) -> None:
    """Run the model and print the comparison."""
    rows = measured(found, machine)
    if as_json:
        print(json.dumps({"bricks": [plain(row) for row in rows], "order": ordered(rows)}, indent=2))
        return
    kept = found.job.training
    column = say("column.forward", lang).name
    predicted, counted, clock = (label(key, lang) for key in ("predicted", "counted", "measured"))
    held = label("kept for backward", lang)
    heads = [label("brick", lang), "", f"{column}: {predicted}", counted]
    heads += [f"{held}: {predicted}", counted] if kept else []
    table = [[*heads, f"{label('time', lang)}: {label('at least', lang)}", clock]]
    table += [cells(row, kept, lang) for row in rows]
    print(aligned(table))
    print("", label("order kept", lang, *ordered(rows)), label("machine", lang, machine.name, machine.source), sep="\n")


def cells(row: Measured, kept: bool, lang: str) -> list[str]:
    """One brick as text."""
    cross = row.path.endswith("cross") and isinstance(row.brick, Attention)
    words = {"Model": "cost.shared", "Block": "residual"}.get(type(row.brick).__name__) or kind(row.brick, cross)
    name = say(words, lang).name
    said = name if row.times == 1 else label("times", lang, row.times, name)
    bytes_ = [short(value) for value in row.kept] if kept else []
    return [said, row.path, *(short(value) for value in row.flops), *bytes_, *(seconds(value) for value in row.seconds)]


def plain(row: Measured) -> dict[str, Any]:
    """One brick as numbers."""
    pairs = {"flops": row.flops, "kept": row.kept, "seconds": row.seconds}
    both = {key: {"predicted": said, "measured": seen} for key, (said, seen) in pairs.items()}
    return {"path": row.path, "brick": type(row.brick).__name__, "times": row.times} | both
