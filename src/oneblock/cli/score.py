"""`oneblock score`: how likely does a model find a text?"""

from __future__ import annotations

import json
from dataclasses import asdict

from oneblock.cli import texts as shared

EXAMPLE = 'oneblock score runs/story "Once upon a time there was a cat." --json'


def run(
    model: shared.Model,
    texts: shared.Texts = None,
    file: shared.File = None,
    as_json: shared.Json = False,
    device: shared.Device = "auto",
    dtype: shared.Dtype = "float32",
    threads: shared.Threads = None,
) -> None:
    """Score texts: perplexity (1 is certain), log-probability, number of tokens scored, the text.

    For an encoder-decoder each text is a source and its target with a tab between them. --json has every token.
    """
    asked = shared.read("score", texts, file, EXAMPLE)
    pipeline = shared.opened(model, device, dtype, threads)
    for number, text in enumerate(asked, 1):
        source, tab, target = text.partition("\t")
        if pipeline.pair and not tab:
            raise ValueError(f"score: text {number}: expected a source, a tab and a target, got no tab")
        with shared.warned():
            found = pipeline.score(source, target) if pipeline.pair else pipeline.score(text)
        if as_json:
            print(json.dumps(asdict(found), ensure_ascii=False))
        else:
            print(f"{found.perplexity:.4g}\t{found.logprob:.4f}\t{len(found.tokens)}\t{found.text}")
