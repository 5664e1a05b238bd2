"""What the verbs about texts share: where texts come from, and a model with its tokenizer."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

import oneblock

Model = Annotated[str, typer.Argument(metavar="MODEL", help="Folder of a model, ours or Hugging Face's, or a hub id.")]
Texts = Annotated[list[str] | None, typer.Argument(metavar="TEXT…", help="Texts, each in quotes.")]
File = Annotated[
    Path | None, typer.Option("--file", metavar="F", help="A text in every line of this file, - for stdin.")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, ...")]
Dtype = Annotated[str, typer.Option(help="Of the weights: float32, bfloat16, float16, or auto, as stored.")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads; by default torch's choice.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]


def opened(model: str, device: str, dtype: str, threads: int | None) -> Any:
    """The model with its tokenizer."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    return oneblock.Pipeline.load(model, device=device, dtype=dtype)


def read(verb: str, texts: Sequence[str] | None, file: Path | None, example: str, blank: bool = False) -> list[str]:
    """The texts of the arguments, else the lines of --file, else those of standard input.

    None of them is empty; with `blank` lines may be, and those at the end count too.
    """
    if texts and file:
        raise ValueError(f"{verb}: expected texts or --file, got both")
    if not texts and file is None and sys.stdin.isatty():
        raise ValueError(f"{verb}: expected a text, got none; try: {example}")
    found = list(texts) if texts else lines(file)
    while found and not (texts or blank or found[-1].strip()):
        found.pop()
    for number, text in enumerate(found, 1):
        if not text.strip() and (texts or not blank):
            raise ValueError(f"{verb}: text {number} is empty (an empty prompt); leave it out")
    if not found:
        raise ValueError(f"{verb}: expected a text, got none; try: {example}")
    return found


def lines(file: Path | None) -> list[str]:
    """The lines of a file, of standard input for None or -."""
    where = "standard input" if file is None or str(file) == "-" else str(file)
    raw = sys.stdin.buffer.read() if where == "standard input" else Path(where).read_bytes()
    found = []
    for number, line in enumerate(raw.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        try:
            found.append(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            byte = f"{line[error.start]:#04x}"
            raise ValueError(f"{where}:{number}: expected UTF-8, got byte {byte}; convert it") from None
    return found


@contextmanager
def warned() -> Iterator[None]:
    """What a model warns about goes to stderr, a line each."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in said:
        typer.echo(f"note: {warning.message}", err=True)
