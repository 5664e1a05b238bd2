"""`oneblock trace`: a forward pass as a worked exercise: on the screen, as JSON, or as a page; or two side by side."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from oneblock.cli import texts as shared
from oneblock.words import language

EXAMPLE = 'oneblock trace "我爱你" --html trace.html'

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
    if model is not None and not model.strip():
        raise ValueError("--model: expected a model's folder or a name we know, got nothing; leave the option out")
    writable(html)
    follow = import_module("oneblock.cli.tracing")  # torch, so not for --help
    place = int(token) if token is not None and token.isdecimal() else token
    asking = follow.Asked(asked, target, without_positions, layer, head, place, step or "")
    follow.told(follow.worked(asking, *follow.opened(model)), spoken, html, as_json)


def writable(html: Path | None) -> None:
    """ValueError: a page that cannot be written there."""
    if html is not None and html.is_dir():
        raise ValueError(f"--html: {html}: expected a file, got a folder; add a name")
    if html is not None and not html.absolute().parent.is_dir():
        raise ValueError(f"--html: {html}: there is no folder {html.parent}; make it first")
