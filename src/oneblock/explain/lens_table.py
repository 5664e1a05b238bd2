"""The logit lens as a table: what the model would say after each block already, token by token."""

from __future__ import annotations

from oneblock.explain.inputs import spelt
from oneblock.explain.lens import lens
from oneblock.explain.table import Table
from oneblock.explain.trace import Trace
from oneblock.generate import Pipeline, Translator
from oneblock.words import label


def logit_lens(trace: Trace, reader: Pipeline | Translator | None = None, row: int = 0, lang: str = "en") -> Table:
    """The likeliest token, with its probability, that the head makes of the stream before and after each block.

    A line for each place in the stream, a column for each token read (nostalgebraist 2020, "interpreting GPT: the logit
    lens"). The last line is what the model says.

    Args:
        trace: of a model with a head for tokens.
        reader: whose tokenizer spells the tokens; without it they are numbers.
        row: of which text.
        lang: "en" or "zh".

    Raises:
        ValueError: a model without a head to look through.

    >>> import oneblock
    >>> model = oneblock.build(oneblock.named("gpt2", dim=8, depth=2, heads=2, vocab=9)).eval()
    >>> logit_lens(oneblock.trace(model, [1, 2])).column("step")
    ('embedding.embedded', 'layers.0.stream#2', 'layers.1.stream#2')
    """
    found = lens(trace, lambda token: spelt(reader, token), top=1, row=row)
    if found is None:
        raise ValueError("lens: expected a model with a head for tokens, got one without; trace another")
    rows = tuple(
        (path, *(f"{best[0].token} {best[0].probability:.2f}" for best in places))
        for path, places in zip(found.paths, found.best, strict=True)
    )
    return Table(label("lens of", lang), (label("step", lang), *found.tokens), rows)
