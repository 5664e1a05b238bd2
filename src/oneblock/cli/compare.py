"""`oneblock compare`: two models on the same input, step by step; the first brick where they part, and why."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from oneblock.hint import nearest
from oneblock.spec import Classify, Seq2Seq
from oneblock.text.foreign import read_tokenizer
from oneblock.words import language
from oneblock.zoo import named, names

EXAMPLE = 'oneblock compare runs/mine runs/theirs "我爱你"'


def run(
    a: Annotated[str, typer.Argument(metavar="A", help="A model folder, a hub id, or a model's name.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another one of the same shape.")],
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="What both read, by A's tokenizer.")] = None,
    prompt: Annotated[str | None, typer.Option("--ids", metavar="1,2,3", help="Token ids in place of a text.")] = None,
    target: Annotated[
        str | None, typer.Option(help="What an encoder-decoder should write: a text, or ids with --ids.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the weights of models that are only named.")] = 0,
    lang: Annotated[str | None, typer.Option(metavar="en|zh", help="en or zh; by default the terminal's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Run two models on the same input in float64; name the first brick that differs beyond rounding, and the cause.

    A cause is tried before it is named: that one thing is changed in one of the models, and the steps must then agree.
    Exit code 0: they agree. 1: they differ.
    """
    spoken = language(lang)
    if (text is None) == (prompt is None):
        raise ValueError(f"compare: expected a text or --ids, got {'neither' if text is None else 'both'}")
    if text is not None and not text.strip():
        raise ValueError("compare: expected a text, got an empty one")
    given: Any = text if prompt is None else ids(prompt, "--ids")
    wanted: Any = target if target is None or prompt is None else ids(target, "--target")
    models = [opened(name, seed) for name in (a, b)]
    if target is None and text is None and asks_target(models[0].spec):
        raise ValueError("compare: an encoder-decoder needs --target beside --ids: what it should write, as ids")
    reader = models[0] if text is None else reading(a, models[0])
    found = import_module("oneblock.explain").compare(reader, models[1], given, wanted)
    print(json.dumps(found.to_dict(), ensure_ascii=False, indent=2) if as_json else found.table(spoken))
    raise typer.Exit(int(not found.agrees))


def asks_target(spec: Any) -> bool:
    """Whether a model writes a target, so that ids alone do not say all that it reads."""
    return isinstance(spec, Seq2Seq) and not isinstance(spec.decoder.head, Classify)


def ids(said: str, option: str) -> list[int]:
    """The ids that an option says."""
    words = said.replace(",", " ").split()
    if not words or not all(word.isdecimal() for word in words):
        raise ValueError(f"{option}: expected numbers such as 1,2,3, got {said!r}")
    return [int(word) for word in words]


def opened(name: str, seed: int) -> Any:
    """The model in a folder or of a hub id, in the dtype that it is stored in; or a named one with random weights."""
    if name in names():
        return import_module("oneblock.explain.drawn").drawn(named(name), name, seed)
    if not Path(name).exists() and "/" not in name:
        hint = nearest(name, names())
        hint = hint if hint.startswith("did you mean") else "`oneblock models` lists the names"
        raise ValueError(f"{name}: expected a model folder, a hub id or a model's name; {hint}")
    return import_module("oneblock.weights").load(name, dtype=None)


def reading(name: str, model: Any) -> Any:
    """The model with the tokenizer that lies beside it. ValueError: there is none."""
    if name in names():
        raise ValueError(f"compare: {name} is a name and has no tokenizer to read a text; give --ids")
    folder = import_module("oneblock.weights.fetch").fetched(name)
    try:
        return import_module("oneblock.generate").Pipeline(model, read_tokenizer(folder))
    except ValueError as error:
        raise ValueError(f"{error}; or give --ids") from None
