"""What `oneblock check` does: make the module, put the questions, print the report. The verb itself needs no torch."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from oneblock.check import CHECKS, SEVERITIES, check
from oneblock.check.formats import FORMATS
from oneblock.cli.target import resolved
from oneblock.hint import nearest
from oneblock.words import label
from oneblock.words.checks import explained


def ask(
    target: str, kwargs: Mapping[str, Any], example: dict[str, Any], form: str, fail_on: Any, lang: str, wanted: Any
) -> int:
    """Print what is wrong with a target; 1 where something is at `fail_on` or worse, else 0."""
    inputs = tensors(example)
    with quiet():
        found = resolved(target, kwargs)
        with progress() as told:
            report = check(found.module, inputs or None, reference=found.again, progress=told, **wanted)
    said = FORMATS[form](report, lang)
    if said:
        print(said)
    return 1 if report.at(fail_on) else 0


def refused(form: str, fail_on: str) -> None:
    """ValueError: a word that is none of its choices."""
    for name, value, known in (("--format", form, FORMATS), ("--fail-on", fail_on, SEVERITIES)):
        if value not in known:
            raise ValueError(f"{name}: no {value!r}; {nearest(value, known)}")


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
