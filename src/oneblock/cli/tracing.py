"""What `oneblock trace` does: open a model, follow texts through it, say what was seen. The verb itself needs no torch.

ids: (batch, length).
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import typer
from rich.console import Console
from rich.text import Text

import oneblock
from oneblock.cli.tiny import tiny
from oneblock.explain.inputs import spelt
from oneblock.explain.page import page, page_of_two
from oneblock.explain.placeless import placeless
from oneblock.explain.trace import Trace, trace
from oneblock.explain.worked import Exercise, exercise, two_text
from oneblock.explain.worked import text as one_text
from oneblock.explain.worked.choose import stacks
from oneblock.explain.worked.data import data
from oneblock.explain.worked.two import Beside, beside
from oneblock.files import write_file
from oneblock.hint import nearest
from oneblock.zoo import names

STYLES = {
    "title": "bold", "section": "bold cyan", "name": "bold", "formula": "cyan", "shape": "green", "number": "yellow",
    "dim": "dim",
}  # fmt: skip
"""Role of a span -> how it looks."""


@dataclass(frozen=True)
class Asked:
    """What is to be shown: of which texts, with what left out, and which block, head, token, steps of them."""

    texts: Sequence[str]
    target: str | None
    without_positions: bool
    layer: int
    head: int
    token: int | str | None
    step: str


def opened(model: str | None) -> tuple[Any, str, bool]:
    """(what reads texts, what it is called, whether its weights are random)."""
    if model is None:
        return oneblock.Translator.default(), "oneblock translator", False
    if model in names():
        return made_tiny(model), model, True
    if not Path(model).exists() and "/" not in model:
        hint = nearest(model, names())
        hint = hint if hint.startswith("did you mean") else "`oneblock models` lists the names"
        raise ValueError(f"{model}: expected a model's folder or a name we know; {hint}")
    return oneblock.Pipeline.load(model), Path(model).resolve().name, False


def made_tiny(name: str) -> Any:
    """A named model at a tiny size with random weights, and the packaged translator's tokenizer."""
    tokenizer = oneblock.Translator.default().tokenizer
    torch.manual_seed(0)
    return oneblock.Pipeline(oneblock.build(tiny(name, len(tokenizer))).eval(), tokenizer)


def worked(asked: Asked, holder: Any, called: str, random: bool) -> Exercise | Beside:
    """The exercise of one text, or of two side by side."""
    traces = [traced(holder, text, asked, random) for text in asked.texts]
    made = [
        exercise(
            found, asked.layer, asked.head, asked.token, text=text, model=called, random=random, name=speller(holder),
            only=asked.step,
        )
        for found, text in zip(traces, asked.texts, strict=True)
    ]  # fmt: skip
    if len(made) == 1:
        return made[0]
    return beside((traces[0], traces[1]), (made[0], made[1]), not asked.without_positions)


def traced(holder: Any, text: str, asked: Asked, random: bool) -> Trace:
    """The trace of one text."""
    pair = len(stacks(holder.model.spec)) == 2
    if asked.target is not None and not pair:
        raise ValueError("--target: only a model that answers a source has one; leave it out")
    if asked.target is not None and not asked.target.strip():
        raise ValueError("--target: expected a text, got an empty one; leave it out for what the model writes itself")
    answer = text if random and pair and asked.target is None else asked.target
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        found = trace(holder, text, answer)
        if asked.without_positions:
            found = bare(holder, text, found)
    for note in dict.fromkeys(str(warning.message) for warning in said):  # a trace reads a text more than once
        typer.echo(f"note: {note}", err=True)
    return found


def bare(holder: Any, text: str, whole: Trace) -> Trace:
    """The same text through the same model without positions, answering what it answered with them."""
    labels = whole.steps[-1].operands.get("labels")
    without = oneblock.Pipeline(placeless(holder.model), holder.tokenizer, getattr(holder, "labels", ()))
    return trace(without, text, None if labels is None else labels.value)


def speller(holder: Any) -> Any:
    """How a token id, or the number of a label, reads."""
    labels = getattr(holder, "labels", ())
    return lambda at: labels[at] if labels else spelt(holder, at)


def told(whole: Exercise | Beside, lang: str, html: Path | None, as_json: bool) -> None:
    """Print or write it."""
    if html is not None:
        said = page_of_two(whole, lang) if isinstance(whole, Beside) else page(whole, lang)
        write_file(html, said.encode("utf-8", "replace"))
    if as_json:
        print(json.dumps(data(whole, lang), ensure_ascii=False))
    elif html is not None:
        print(html)
    else:
        show(two_text.spans(whole, lang) if isinstance(whole, Beside) else one_text.spans(whole, lang))


def show(lines: Iterable[Any]) -> None:
    """Lines in colour where someone watches, else plain."""
    if not sys.stdout.isatty():
        print("\n".join("".join(said for said, _ in line).rstrip() for line in lines))
        return
    console = Console(highlight=False)
    for line in lines:
        console.print(Text.assemble(*((said, STYLES.get(role, "")) for said, role in line)))
