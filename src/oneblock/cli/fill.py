"""`oneblock fill`: which words fit into the gaps of a text?"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from oneblock.cli import texts as shared

EXAMPLE = 'oneblock fill models/encoder "Paris is the [MASK] of France."'


def run(
    model: shared.Model,
    texts: shared.Texts = None,
    file: shared.File = None,
    top_k: Annotated[int, typer.Option(help="Words for each gap, the likeliest first.")] = 5,
    as_json: shared.Json = False,
    device: shared.Device = "auto",
    dtype: shared.Dtype = "float32",
    threads: shared.Threads = None,
) -> None:
    """Fill the gaps of texts, written [MASK]: for each gap, words and their probabilities."""
    asked = shared.read("fill", texts, file, EXAMPLE)
    pipeline = shared.opened(model, device, dtype, threads)
    for text in asked:
        with shared.warned():
            gaps = pipeline.fill(text, top_k=top_k)
        if as_json:
            print(json.dumps({"text": text, "gaps": [gap.candidates for gap in gaps]}, ensure_ascii=False))
            continue
        for gap in gaps:
            print("\t".join(f"{word} {share:.3f}" for word, share in gap.candidates))
