"""`oneblock eval`: how good are a model's translations of a corpus?"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import oneblock

EXAMPLE = "oneblock eval runs/first --data recipes/tatoeba.toml --beam 5"


def run(
    model: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained run.")],
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Pairs (TSV, JSONL, .gz), or a run file: its held-out test pairs."),
    ] = None,
    direction: Annotated[
        list[str] | None, typer.Option(metavar="en-zh", help="From-to; repeatable; by default both ways.")
    ] = None,
    languages: Annotated[str, typer.Option(help="Of the two columns of --data.")] = "en,zh",
    beam: Annotated[int, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Translate a corpus and score it: BLEU and chrF by sacrebleu, with their signatures.

    Without --data: the test pairs that the run's own run.toml holds out.
    """
    ends = tuple(languages.split(","))
    if len(set(ends)) != 2:
        raise ValueError(f"--languages: expected two different names such as en,zh, got {languages!r}")
    ways = [tuple(way.split("-")) for way in direction] if direction else [ends, ends[::-1]]
    if any(len(way) != 2 for way in ways):
        raise ValueError(f"--direction: expected from-to such as en-zh, got {direction}")
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
    Console().print(table)
