"""`oneblock translate`: texts from the command line, a file or standard input; one line out for each line in."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import oneblock

EXAMPLE = 'oneblock translate "我爱你"'
Told = Any
SHOWN = 60


def run(
    texts: Annotated[list[str] | None, typer.Argument(metavar="TEXT…", help="Sentences, each in quotes.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="F", help="Translate every line of this file, - for stdin.")
    ] = None,
    to: Annotated[
        str | None, typer.Option(metavar="en|zh", help="Target language; by default the other one, line by line.")
    ] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")] = 5,
    n_best: Annotated[int, typer.Option(help="Translations printed for each line, best first, at most beam.")] = 1,
    model: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of a trained run; by default the model in the package.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line, with scores.")] = False,
) -> None:
    """Translate between Chinese and English: one line out per line in, an empty line for an empty line.

    With --n-best K there are K lines per line in. Texts come from the arguments, else --file, else standard input.
    """
    lines = _lines(texts, file)
    translator = oneblock.Translator.load(model) if model else oneblock.Translator.default()
    with _progress(len(lines)) as told:
        found = translator(lines, to=to, beam=beam, n_best=n_best, progress=told)
    for number, translation in enumerate(found, 1):
        if translation.cut:
            cut = " ".join(translation.cut.split())
            shown = cut if len(cut) <= SHOWN else f"{cut[:SHOWN]}… ({len(cut):,} characters)"
            typer.echo(f"line {number}: too long for the model, left out: {shown}", err=True)
        _print(translation, n_best, as_json)


def _lines(texts: Sequence[str] | None, file: Path | None) -> list[str]:
    if texts and file:
        raise ValueError("translate: expected texts or --file, got both")
    if texts:
        for number, text in enumerate(texts, 1):
            if not text.strip():
                raise ValueError(
                    f"translate: text {number} is empty; give a sentence, or --file for a file with empty lines"
                )
        return list(texts)
    if file is None and sys.stdin.isatty():
        raise ValueError(f"translate: nothing to translate; try: {EXAMPLE}")
    raw = sys.stdin.buffer.read() if file is None or str(file) == "-" else _bytes(file)
    lines = []
    for number, line in enumerate(raw.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        try:
            lines.append(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            where = "standard input" if file is None else file
            raise ValueError(
                f"{where}:{number}: expected UTF-8, got byte {line[error.start]:#04x}; convert it"
            ) from None
    return lines


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ValueError(
            f"--file: {file}: expected a text file, got an error ({error.strerror or error}); check the path"
        ) from None


def _print(translation: Any, n_best: int, as_json: bool) -> None:
    if as_json:
        alternatives = [alternative._asdict() for alternative in translation.alternatives]
        print(json.dumps(asdict(translation) | {"alternatives": alternatives}, ensure_ascii=False))
        return
    print(translation.text)
    alternatives = [alternative.text for alternative in translation.alternatives]
    for text in [*alternatives, *[""] * (n_best - 1 - len(alternatives))]:
        print(text)


@contextmanager
def _progress(total: int) -> Iterator[Told]:
    """Shows how many lines are done, on stderr, where someone watches and there is more than one."""
    if total < 2 or not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("translating"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda done, all_of_them: progress.update(task, completed=done, total=all_of_them)
