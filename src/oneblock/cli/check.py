"""`oneblock check`: questions to anyone's Transformer, and what is wrong with it, where, and what to do."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from oneblock.check import CHECKS, SEVERITIES, check
from oneblock.check.formats import FORMATS
from oneblock.cli.target import resolved
from oneblock.hint import nearest
from oneblock.words import label, language
from oneblock.words.checks import explained

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
    if explain is not None:
        print(explanation(explain, spoken))
        return
    form = "json" if as_json else form
    refused(target, form, fail_on)
    arguments, example = an_object("--kwargs", kwargs), tensors(an_object("--inputs", inputs or "{}"))
    with quiet():
        found = resolved(str(target), arguments)
        with progress() as told:
            report = check(
                found.module,
                example or None,
                kind=kind,  # type: ignore[arg-type]
                only=only or (),
                skip=skip or (),
                timeout=timeout,
                seed=seed,
                reference=found.again,
                progress=told,
            )
    said = FORMATS[form](report, spoken)
    if said:
        print(said)
    raise typer.Exit(1 if report.at(fail_on) else 0)  # type: ignore[arg-type]


def refused(target: str | None, form: str, fail_on: str) -> None:
    """ValueError: nothing to check, or a word that is none of its choices."""
    for name, value, known in (("--format", form, FORMATS), ("--fail-on", fail_on, SEVERITIES)):
        if value not in known:
            raise ValueError(f"{name}: no {value!r}; {nearest(value, known)}")
    if target is None:
        raise ValueError(f"check: expected something to check, got nothing; try: {EXAMPLE}")


def explanation(code: str, lang: str) -> str:
    """What a check is about."""
    by_name = {one.name: one.code for one in CHECKS.values()}
    code = by_name.get(code, code.upper())
    if code not in CHECKS:
        raise ValueError(f"--explain: no check is called {code!r}; {nearest(code, [*CHECKS, *by_name])}")
    words = explained(code, lang)
    parts = ("catches", "victims", "judged", "legal", "remedy")
    lines = [f"{code} [{CHECKS[code].name}] {words.title}", ""]
    return "\n".join([*lines, *(f"{label(f'check {part}', lang)}{getattr(words, part)}" for part in parts)])


def an_object(option: str, given: str) -> dict[str, Any]:
    """A JSON object. ValueError: it is none."""
    try:
        found = json.loads(given)
    except ValueError as error:
        raise ValueError(f"{option}: expected a JSON object, got {given!r} ({error})") from error
    if not isinstance(found, dict):
        raise ValueError(f"{option}: expected a JSON object, got {given!r}")
    return found


def tensors(given: dict[str, Any]) -> dict[str, Any]:
    """Lists of numbers as tensors. ValueError: lists that are no table of numbers."""
    found = {}
    for name, value in given.items():
        try:
            found[name] = torch.tensor(value) if isinstance(value, list) else value
        except (ValueError, TypeError) as error:
            raise ValueError(f"--inputs: {name}: expected numbers in lists of one length ({error})") from error
    return found


@contextmanager
def quiet() -> Iterator[None]:
    """Warnings of foreign code are not ours to print among findings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def progress() -> Iterator[Any]:
    """A bar on stderr, and what moves it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, of, name: bar.update(task, completed=done, total=of, description=name)
