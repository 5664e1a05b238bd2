"""`oneblock embed`: a vector for every text, to compare texts by what they mean."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from oneblock.cli import texts as shared

EXAMPLE = 'oneblock embed models/encoder "A cat sat." "A dog ran." --json'


def run(
    model: shared.Model,
    texts: shared.Texts = None,
    file: shared.File = None,
    pooling: Annotated[
        str | None, typer.Option(metavar="mean|first|last", help="Over which tokens; by default the model's way.")
    ] = None,
    normalise: Annotated[bool, typer.Option(help="Vectors of length 1.")] = True,
    as_json: shared.Json = False,
    device: shared.Device = "auto",
    dtype: shared.Dtype = "float32",
    threads: shared.Threads = None,
) -> None:
    """Embed texts: one line of numbers for each, with tabs between them."""
    asked = shared.read("embed", texts, file, EXAMPLE)
    pipeline = shared.opened(model, device, dtype, threads)
    with shared.warned():
        vectors = pipeline.embed(asked, pooling=pooling, normalise=normalise).tolist()
    for text, vector in zip(asked, vectors, strict=True):
        line = json.dumps({"text": text, "vector": vector}, ensure_ascii=False)
        print(line if as_json else "\t".join(f"{number:.6g}" for number in vector))
