"""`oneblock probe`: what this machine can do, in five seconds; `oneblock cost` then bounds times by it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from oneblock.cost.machines import place
from oneblock.draw.amount import short
from oneblock.explain.probe import probe
from oneblock.hint import first_line

EXAMPLE = "oneblock probe"


def run(
    seconds: Annotated[float, typer.Option(min=0.1, help="How long it may take.")] = 5.0,
    device: Annotated[
        str | None, typer.Option(metavar="cpu|cuda|mps", help="By default an accelerator if there is one.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep/--no-keep", help="Keep it for `oneblock cost`.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Measure this machine: FLOP/s of matrix products by type of number, bytes/s of memory."""
    if device not in (None, "cpu", "cuda", "mps"):
        raise ValueError(f"device: expected cpu, cuda or mps, got {device!r}")
    try:
        found = probe(seconds, device, keep)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device {device}: {first_line(error)}") from None
    if as_json:
        print(json.dumps(asdict(found), indent=2))
        return
    for dtype, rate in found.rates.items():
        print(f"{dtype:<9} {short(rate)}FLOP/s")
    print(f"{'memory':<9} {short(found.bandwidth)}B/s, {short(found.memory)}B")
    print(found.source)
    if keep:
        print(place())
