"""`oneblock eval`: how good are a model's translations of a corpus?"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import oneblock

UNFOLDED = 10_000
"""Columns of a table that no terminal shows: enough for every line to be one line."""

EXAMPLE = "oneblock eval runs/first --data recipes/tatoeba.toml --beam 5"


def run(
    model: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained run.")],
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Pairs (TSV, JSONL, .gz), or a run file: its held-out test pairs."),
    ] = None,
    direction: Annotated[
        list[str] | None, typer.Option(metavar="en-zh", help="From-to; repeatable; by default those the run trains.")
    ] = None,
    languages: Annotated[
        str | None, typer.Option(metavar="en,zh", help="Of the two columns of --data; by default the run's.")
    ] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Translate a corpus and score it: BLEU and chrF by sacrebleu, with their signatures.

    Without --data: the test pairs that the run's own run.toml holds out.
    """
    ends, ways = sides(model, data, languages, direction)
    translator = oneblock.Translator.load(model)
    pairs = oneblock.held_out(data or model / "run.toml")
    scores = oneblock.evaluate(translator.model, translator.tokenizer, pairs, ways, beam=beam, forward=ends)
    if as_json:
        print(json.dumps([asdict(score) for score in scores], ensure_ascii=False))
        return
    table = Table(box=None, header_style="bold")
    for head in ("direction", "sentences", "beam", "BLEU", "chrF", "signature"):
        table.add_column(
            head, justify="right" if head in ("sentences", "beam", "BLEU", "chrF") else "left", overflow="fold"
        )
    for score in scores:
        figures = (f"{score.sentences:,}", str(score.beam), f"{score.bleu:.2f}", f"{score.chrf:.2f}")
        table.add_row(score.direction, *figures, score.bleu_signature)
    Console(width=None if sys.stdout.isatty() else UNFOLDED).print(table)


def sides(
    model: Path, data: Path | None, languages: str | None, direction: list[str] | None
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The languages of the pairs' two sides, and the (from, to) to score.

    What no option says, the run file of the pairs says, else the run's own run.toml, else it is English and Chinese.
    """
    files = [file for file in (data, model / "run.toml") if file and file.suffix == ".toml" and file.is_file()]
    runs = [] if languages and direction else [oneblock.Run.load(file).data for file in files]
    ends = tuple(languages.split(",")) if languages else runs[0].languages if runs else ("en", "zh")
    if len(set(ends)) != 2 or not all(ends):
        raise ValueError(f"--languages: expected two different names such as en,zh, got {languages!r}")
    trained = runs[-1] if runs else None
    forward = trained is not None and trained.directions == "forward" and set(trained.languages) == set(ends)
    usual = [trained.languages] if forward else [ends, ends[::-1]]
    ways = [tuple(way.split("-")) for way in direction] if direction else usual
    for way in ways:
        if set(way) != set(ends) or len(way) != 2:
            expected = f"{'-'.join(ends)} or {'-'.join(ends[::-1])}"
            raise ValueError(f"--direction: expected {expected}, got {'-'.join(way)}; see also --languages")
    return ends, ways
