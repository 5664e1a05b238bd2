"""`oneblock classify`: which label does a text have?"""

from __future__ import annotations

import json

from oneblock.cli import texts as shared

EXAMPLE = 'oneblock classify models/sentiment "What a film!"'


def run(
    model: shared.Model,
    texts: shared.Texts = None,
    file: shared.File = None,
    as_json: shared.Json = False,
    device: shared.Device = "auto",
    dtype: shared.Dtype = "float32",
    threads: shared.Threads = None,
) -> None:
    """Classify texts: for each, every label and its probability, the likeliest first."""
    asked = shared.read("classify", texts, file, EXAMPLE)
    pipeline = shared.opened(model, device, dtype, threads)
    with shared.warned():
        found = pipeline.classify(asked)
    for text, shares in zip(asked, found, strict=True):
        ranked = sorted(shares.items(), key=lambda item: -item[1])
        line = json.dumps({"text": text, "labels": dict(ranked)}, ensure_ascii=False)
        print(line if as_json else "\t".join(f"{label} {share:.3f}" for label, share in ranked))
