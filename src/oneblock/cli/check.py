"""`oneblock check`: questions to anyone's Transformer, and what is wrong with it, where, and what to do."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Annotated, Any

import typer

from oneblock.words import language

EXAMPLE = "oneblock check model.py:MyTransformer"

What = Annotated[
    str | None,
    typer.Argument(
        metavar="TARGET",
        help="file.py:Name, package.module:Name, a model's folder, transformers:ClassName, or a model we know.",
    ),
]
Kwargs = Annotated[str, typer.Option(metavar="JSON", help="Arguments of the class or factory, as a JSON object.")]
Inputs = Annotated[
    str | None, typer.Option(metavar="JSON", help='Arguments of a call, as a JSON object: {"x": [[5, 6, 7]]}.')
]
As = Annotated[str | None, typer.Option("--as", metavar="decoder|encoder|seq2seq", help="What it is meant to be.")]
Only = Annotated[list[str] | None, typer.Option(metavar="CHECK", help="Only these, by name or code; OB1: a group.")]
Skip = Annotated[list[str] | None, typer.Option(metavar="CHECK", help="All but these.")]
Explain = Annotated[str | None, typer.Option(metavar="OB101", help="What a check asks, how it judges, what is legal.")]
Form = Annotated[str, typer.Option("--format", metavar="text|json|github|sarif", help="For whom the report is.")]
FailOn = Annotated[str, typer.Option(metavar="error|warning|note", help="Exit with 1 at this or worse.")]
Timeout = Annotated[float | None, typer.Option(min=0, help="Seconds after which no further check begins.")]
Seed = Annotated[int, typer.Option(help="Of the questions, which are random.")]
Lang = Annotated[str | None, typer.Option(metavar="en|zh", help="en or zh; by default the terminal's.")]
Json = Annotated[bool, typer.Option("--json", help="The same as --format json.")]


def run(
    target: What = None,
    kwargs: Kwargs = "{}",
    inputs: Inputs = None,
    kind: As = None,
    only: Only = None,
    skip: Skip = None,
    explain: Explain = None,
    form: Form = "text",
    fail_on: FailOn = "error",
    timeout: Timeout = None,
    seed: Seed = 0,
    lang: Lang = None,
    as_json: Json = False,
) -> None:
    """Ask a Transformer whether it is right: leaks, padding, scale, masks, cache, positions, norms, loss, weights.

    Exit codes: 0 nothing found at --fail-on or worse, 1 something found, 2 bad input.
    """
    spoken = language(lang)
    asking = import_module("oneblock.cli.checking")  # torch, so not for --help
    if explain is not None:
        print(asking.explanation(explain, spoken))
        return
    form = "json" if as_json else form
    if target is None:
        raise ValueError(f"check: expected something to check, got nothing; try: {EXAMPLE}")
    asking.refused(form, fail_on)
    arguments, example = an_object("--kwargs", kwargs), an_object("--inputs", inputs or "{}")
    wanted = {"kind": kind, "only": only or (), "skip": skip or (), "timeout": timeout, "seed": seed}
    raise typer.Exit(asking.ask(target, arguments, example, form, fail_on, spoken, wanted))


def an_object(option: str, given: str) -> dict[str, Any]:
    """A JSON object. ValueError: it is none."""
    try:
        found = json.loads(given)
    except ValueError as error:
        raise ValueError(f"{option}: expected a JSON object, got {given!r} ({error})") from error
    if not isinstance(found, dict):
        raise ValueError(f"{option}: expected a JSON object, got {given!r}")
    return found
