"""`oneblock cost`: what a model costs, brick by brick, by closed formulas; what a change costs; what a run costs."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from shutil import get_terminal_size
from typing import Annotated, Any

import typer

from oneblock.cli.show import find
from oneblock.cost import Cost, Line, Machine, active, bound, cost, crossovers, machine, parameters
from oneblock.cost.job import usual
from oneblock.draw.bill import bills
from oneblock.draw.invoice import conventions, listing, summary, table
from oneblock.draw.priced import priced
from oneblock.draw.priced import text as changes
from oneblock.spec import Seq2Seq, Spec, to_dict
from oneblock.words import label, language

EXAMPLE = "oneblock cost vaswani --phase train"

DEEPEST = 9
"""A depth that no row goes beyond."""


Named = Annotated[str, typer.Argument(metavar="SPEC", help="A model's name, a spec.json, or a folder with one.")]
Other = Annotated[str | None, typer.Argument(metavar="OTHER", help="Another: price what changes, line by line.")]
Batch = Annotated[int, typer.Option(help="Texts.")]
Length = Annotated[int | None, typer.Option(help="Tokens of each text, or in the cache; by default 1024 if they fit.")]
What = Annotated[str, typer.Option(metavar="train|prefill|decode", help="What is run.")]
Numbers = Annotated[str, typer.Option(metavar="float32|bfloat16|float16", help="Type of numbers.")]
Source = Annotated[int | None, typer.Option(help="Tokens of each source; by default as many.")]
How = Annotated[
    str | None, typer.Option(metavar="fused|plain|recomputed", help="How scores are computed; by default as here.")
]
Logits = Annotated[str, typer.Option(metavar="whole|chunked", help="Whether all logits lie in memory.")]
Where = Annotated[
    str | None, typer.Option("--machine", metavar="NAME", help="Whose rates bound the time; `here` after a probe.")
]
Depth = Annotated[int, typer.Option(min=0, help="0 the whole, 1 its parts, 2 the bricks in each layer.")]
Terms = Annotated[bool, typer.Option("--terms", help="List every term with its formula.")]
Measure = Annotated[bool, typer.Option("--measure", help="Run it: predicted, counted, measured.")]
Lang = Annotated[str | None, typer.Option(metavar="en|zh", help="en or zh; by default the terminal's.")]
Json = Annotated[bool, typer.Option("--json", help="Print bricks, terms and sums as JSON.")]


def run(
    spec: Named,
    other: Other = None,
    batch: Batch = 1,
    length: Length = None,
    phase: What = "prefill",
    dtype: Numbers = "bfloat16",
    source: Source = None,
    attention: How = None,
    loss: Logits = "whole",
    machine_name: Where = None,
    depth: Depth = 2,
    terms: Terms = False,
    measure: Measure = False,
    lang: Lang = None,
    as_json: Json = False,
) -> None:
    """Price a model: FLOPs, bytes, intensity, and the least time of every brick, in closed form."""
    spoken, model, rates = language(lang), find(spec), machine(machine_name)
    rates.rate(dtype)
    after = None if other is None else find(other)
    if source is not None and not any(isinstance(one, Seq2Seq) for one in (model, after)):
        names = spec if other is None else f"neither {spec} nor {other}"
        raise ValueError(f"--source: {names} reads {'no' if other is None else 'a'} source; leave it out")
    if terms and (after is not None or measure) and not as_json:
        raise ValueError("--terms: expected one model that is priced, not two or a measured one; leave one of them out")
    wanted: dict[str, Any] = {"batch": batch, "length": length, "phase": phase, "dtype": dtype, "source": source}
    wanted |= {"attention": attention, "loss": loss}
    if after is not None:
        if measure:
            raise ValueError("--measure: expected one model, got two; run it for each")
        difference(model, after, rates, spoken, as_json, wanted)
    elif measure:
        import_module("oneblock.cli.measure").show(cost(model, **wanted), rates, spoken, as_json)
    elif as_json:
        print(json.dumps(plain(model, cost(model, **wanted), rates), ensure_ascii=False, indent=2))
    else:
        tell(cost(model, **wanted), rates, spoken, depth, terms)


def tell(found: Cost, rates: Machine, lang: str, depth: int, terms: bool) -> None:
    """Print a cost as a table with what follows from it, and its terms if wanted."""
    room = get_terminal_size().columns if sys.stdout.isatty() else None
    print(table(bills(found, rates, lang, depth), found, lang, room))
    print("", *summary(found, rates, lang), "", *conventions(found, lang), sep="\n")
    if terms:
        print("", *listing(bills(found, rates, lang, DEEPEST), lang), sep="\n")


def difference(before: Spec, after: Spec, rates: Machine, lang: str, as_json: bool, wanted: dict[str, Any]) -> None:
    """Print what a change costs, line by line, at a length that both models have."""
    if wanted["length"] is None:
        wanted = wanted | {"length": min(usual(spec, wanted["phase"]) for spec in (before, after))}
    lines = priced(before, after, rates, lang, **wanted)
    if as_json:
        print(json.dumps([line.plain for line in lines], indent=2))
    else:
        print(label("no difference", lang) if before == after else changes(lines, lang))


def plain(spec: Spec, found: Cost, rates: Machine) -> dict[str, Any]:
    """A cost as numbers and formulas, without a word of any language."""
    whole = bound(found.lines, rates, found.job.dtype)
    return {
        "spec": to_dict(spec),
        "job": vars(found.job) | {"source": found.job.read},
        "parameters": parameters(spec),
        "active": {f"embeddings {tables}": active(spec, tables) for tables in (2, 1, 0)},
        "totals": found.totals,
        "memory": found.memory,
        "machine": vars(rates) | {"rates": dict(rates.rates)},
        "bound": vars(whole),
        "crossovers": [vars(one) for one in crossovers(spec, found.job.dtype)],
        "bricks": [brick(line, rates, found.job.dtype) for line in found.lines],
    }


def brick(line: Line, rates: Machine, dtype: str) -> dict[str, Any]:
    """One brick of all layers that are alike, with its terms."""
    named = [
        {"column": t.column, "name": t.name, "formula": t.form.text, "sizes": t.sizes, "value": t.value}
        for t in line.terms
    ]
    return {
        "path": line.path,
        "brick": type(line.brick).__name__,
        "times": line.times,
        "layers": list(line.layers),
        "parameters": line.parameters,
        "sums": line.sums,
        "bound": vars(bound([line], rates, dtype)),
        "terms": named,
    }
