"""`oneblock trace`: a forward pass as a worked exercise: on the screen, as JSON, or as a page; or two side by side."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.text import Text

import oneblock
from oneblock.cli import texts as shared
from oneblock.explain.inputs import spelt
from oneblock.explain.page import page, page_of_two
from oneblock.explain.trace import Trace, trace
from oneblock.explain.worked import Exercise, exercise, two_text
from oneblock.explain.worked import text as one_text
from oneblock.explain.worked.choose import stacks
from oneblock.explain.worked.data import data
from oneblock.explain.worked.two import Beside, beside
from oneblock.files import write_file
from oneblock.hint import nearest
from oneblock.spec import Tokens
from oneblock.words import language
from oneblock.zoo import FAMILIES, named, names
from oneblock.zoo.family import Family

EXAMPLE = 'oneblock trace "我爱你" --html trace.html'

STYLES = {
    "title": "bold", "section": "bold cyan", "name": "bold", "formula": "cyan", "shape": "green", "number": "yellow",
    "dim": "dim",
}  # fmt: skip
"""Role of a span -> how it looks."""
TINY = {
    "dim": 32, "depth": 2, "heads": 4, "kv_heads": 2, "hidden": 64, "head_dim": 8, "narrow": 16, "experts": 4,
    "active": 2, "rotary": 4, "window": 3, "decoder_depth": 2, "decoder_heads": 4, "decoder_hidden": 64, "length": 128,
}  # fmt: skip
"""Sizes of a named model that is built for the eye; each only where the family has it."""


Asked = Annotated[list[str] | None, typer.Argument(metavar="TEXT [TEXT]", help="A text, or two to set side by side.")]
Holder = Annotated[
    str | None,
    typer.Option("--model", help="A model's folder, or a name we know, then tiny and with random weights."),
]
Layer = Annotated[int, typer.Option(help="The block that is shown.")]
Head = Annotated[int, typer.Option(help="The head that is worked by hand.")]
Token = Annotated[str | None, typer.Option(help="The token that is worked by hand: its place, or how it reads.")]
Step = Annotated[str | None, typer.Option(metavar="PATH", help="Only this step, or all that a glob matches.")]
Target = Annotated[str | None, typer.Option(help="What a translator should write; by default what it writes itself.")]
Without = Annotated[
    bool, typer.Option("--without-positions", help="Leave out what tells the model where tokens stand.")
]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page that needs nothing else.")]
Lang = Annotated[str | None, typer.Option(metavar="en|zh", help="en or zh; by default the terminal's.")]
Json = Annotated[bool, typer.Option("--json", help="Print steps and numbers as one JSON object.")]


def run(
    texts: Asked = None,
    model: Holder = None,
    layer: Layer = 0,
    head: Head = 0,
    token: Token = None,
    step: Step = None,
    target: Target = None,
    without_positions: Without = False,
    html: Html = None,
    lang: Lang = None,
    as_json: Json = False,
) -> None:
    """Show every step of a forward pass with its numbers: formulas, shapes, heads, one softmax row by hand.

    The default model is the translator in the package. Two texts are set side by side.
    """
    spoken = language(lang)
    asked = shared.read("trace", texts, None, EXAMPLE)
    if len(asked) > 2:
        raise ValueError(f"trace: expected one text, or two to set side by side, got {len(asked)}")
    writable(html)
    holder, called, random = opened(model)
    traces = [traced(holder, text, target, random, without_positions) for text in asked]
    place = int(token) if token is not None and token.isdecimal() else token
    made = [
        exercise(
            found, layer, head, place, text=text, model=called, random=random, name=speller(holder), only=step or ""
        )
        for found, text in zip(traces, asked, strict=True)
    ]  # fmt: skip
    whole: Any = made[0]
    if len(made) == 2:
        whole = beside((traces[0], traces[1]), (made[0], made[1]), not without_positions)
    told(whole, spoken, html, as_json)


def writable(html: Path | None) -> None:
    """ValueError: a page that cannot be written there."""
    if html is not None and html.is_dir():
        raise ValueError(f"--html: {html}: expected a file, got a folder; add a name")
    if html is not None and not html.absolute().parent.is_dir():
        raise ValueError(f"--html: {html}: there is no folder {html.parent}; make it first")


def opened(model: str | None) -> tuple[Any, str, bool]:
    """(what reads texts, what it is called, whether its weights are random)."""
    if model is None:
        return oneblock.Translator.default(), "oneblock translator", False
    if model in names():
        return tiny(model), model, True
    if not Path(model).exists() and "/" not in model:
        hint = nearest(model, names())
        hint = hint if hint.startswith("did you mean") else "`oneblock models` lists the names"
        raise ValueError(f"{model}: expected a model's folder or a name we know; {hint}")
    return oneblock.Pipeline.load(model), Path(model).resolve().name, False


def tiny(name: str) -> Any:
    """A named model at a tiny size with random weights, and the packaged translator's tokenizer."""
    tokenizer = oneblock.Translator.default().tokenizer
    family: Family = next(one for one in FAMILIES.values() if name == one.name or name in one.sizes)
    known, fixed = signature(family.make).parameters, family.sizes.get(name, {})
    sizes: dict[str, Any] = {"vocab": len(tokenizer), "tokens": Tokens(0, 1, 2, 1)}
    for key, size in TINY.items():
        usual = fixed.get(key, known[key].default) if key in known else None
        if usual is not None or key in ("dim", "depth", "heads"):
            sizes |= {key: size} if key in known else {}
    if known.get("windows") is not None:
        usual = fixed.get("windows", known["windows"].default)
        sizes["windows"] = tuple(None if far is None else TINY["window"] for far in usual)
    torch.manual_seed(0)
    return oneblock.Pipeline(oneblock.build(named(name, **sizes)).eval(), tokenizer)


def traced(holder: Any, text: str, target: str | None, random: bool, without: bool) -> Trace:
    """The trace of one text."""
    pair = len(stacks(holder.model.spec)) == 2
    if target is not None and not pair:
        raise ValueError("--target: only a model that answers a source has one; leave it out")
    edit = {"*embedding.position": torch.zeros_like} if without else None
    if without and any(model.embedding.position is None for model in stacks(holder.model.spec).values()):
        raise ValueError(
            "--without-positions: expected a model that adds positions to its embedding, got one that tells them in "
            "attention or not at all; leave the option out"
        )
    answer = text if random and pair and target is None else target
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        found = trace(holder, text, answer, edit=edit)
    for note in dict.fromkeys(str(warning.message) for warning in said):  # a trace reads a text more than once
        typer.echo(f"note: {note}", err=True)
    return found


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
