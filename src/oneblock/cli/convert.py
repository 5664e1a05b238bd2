"""`oneblock convert`: a model folder of one kind as a folder of another, read again before it takes its place."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib import import_module
from typing import Annotated, Any

import typer

from oneblock.hint import nearest

EXAMPLE = "oneblock convert models/gpt2 models/gpt2-here"
FORMATS = ("oneblock", "hf")


def run(
    source: Annotated[
        str, typer.Argument(metavar="SRC", help="Folder of ours or of Hugging Face's, a hub id, or a file of tensors.")
    ],
    folder: Annotated[str, typer.Argument(metavar="DST", help="A new folder.")],
    form: Annotated[
        str, typer.Option("--format", metavar="oneblock|hf", help="What to write: ours, or what transformers opens.")
    ] = "oneblock",
    family: Annotated[
        str | None, typer.Option(help="Whose files to write with --format hf; by default the first that fits.")
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(metavar="float32|bfloat16|float16", help="Of the numbers; by default as they are stored."),
    ] = None,
    layout: Annotated[
        str | None, typer.Option(help="Of files without config.json; by default what the tensors' names show.")
    ] = None,
    size: Annotated[
        list[str] | None, typer.Option(metavar="heads=12", help="What no shape shows, for such files; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Convert a model: its weights bit for bit unless --dtype says otherwise, its tokenizer's files along.

    The result is read again and compared before it takes its place; DST must be new or empty.
    """
    form = known("--format", form, FORMATS)
    convert = import_module("oneblock.weights.convert").convert
    found = convert(source, folder, form, family, dtype, layout, sizes(size or []))
    if as_json:
        print(json.dumps(asdict(found), ensure_ascii=False, indent=2))
        return
    said = "" if dtype in (None, "auto") else f" after conversion to {dtype}"
    print(f"{found.folder}: {found.model}, {found.parameters:,} parameters, {found.dtype}, {found.bytes:,} bytes")
    print(f"wrote {', '.join(found.files)}; read again: every tensor equal bit for bit{said}")


def known(option: str, word: str, words: tuple[str, ...]) -> str:
    """The word if it is one of these."""
    if word not in words:
        raise ValueError(f"{option}: expected one of {', '.join(words)}, got {word!r}; {nearest(word, words)}")
    return word


def sizes(given: list[str]) -> dict[str, Any]:
    """What `--size` says.

    >>> sizes(["heads=12", "causal=true", "head=lm_head"])
    {'heads': 12, 'causal': True, 'head': 'lm_head'}
    """
    found: dict[str, Any] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not (name and equals and value):
            raise ValueError(f"--size: expected NAME=VALUE such as heads=12, got {one!r}")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = value
    return found
