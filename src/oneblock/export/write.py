"""A spec as one readable file: every class that the model has, no branch that it does not take."""

from __future__ import annotations

import re
from textwrap import wrap
from typing import Any

from oneblock.cost import parameters
from oneblock.draw.brief import brief
from oneblock.export import ends, parts, sights, stacks
from oneblock.export.attends import attention
from oneblock.export.blocks import blocks
from oneblock.export.file import File
from oneblock.export.text import LONGEST, opened
from oneblock.spec import Block, Classify, Model, Seq2Seq, Spec, Whole, validate, walk
from oneblock.words import label, say

LINES = 300
"""How long a file is that one reads from begin to end."""
TOPICS = ("mask", "position", "wiring", "norm", "attention", "feedforward")
IMPORTS = {
    r"\bmath\.": "import math",
    r"\bCallable\[": "from collections.abc import Callable",
    r"\bPath\b": "from pathlib import Path",
}
LIBRARY = {
    r"\btorch\.": "import torch",
    r"\bF\.": "import torch.nn.functional as F",
    r"\bload_model\b": "from safetensors.torch import load_model",
    r"\bnn\.": "from torch import Tensor, nn",
}
DEMO = """
if __name__ == "__main__":
    with torch.device("meta"):  # shapes without numbers
        print(f"{sum(p.numel() for p in Model().parameters()):,} parameters")
"""


def standalone(spec: Spec, name: str = "model", lines: int | None = LINES) -> str:
    """The text of a Python file that holds exactly this model: torch and safetensors, nothing of ours.

    Its `Model` has our names of tensors, so that its `load` reads our model.safetensors. name: what its first line
    calls the model. lines: how long it may be; None: as long as it must be, for models whose blocks are all unlike.

    Raises:
        ValueError: parts of the spec that do not fit each other, cross-attention without an encoder, or a file that
            would be longer than `lines`.

    >>> from oneblock.zoo import named
    >>> text = standalone(named("gpt2", dim=8, depth=1, heads=2, vocab=9, length=4), "gpt2")
    >>> text.splitlines()[0]
    '\"\"\"gpt2: a Transformer in one file.'
    """
    validate(spec)
    refuse(spec)
    both = list(stacks.found(spec))
    models = [model for model, _ in both]
    drops = {value for path, value in walk(spec) if path.rpartition(".")[2] == "dropout" and value}
    file = File(models[0].dim, alike=len(drops) == 1, counted=models[0].counted)
    bricks(file, models)
    embedding = ends.embeddings(file, models)
    layers = [made(file, model, title) for model, title in both]
    heads = [ends.headed(file, model) for model in models]
    for i, (model, title) in enumerate(both):
        stacks.stack(file, model, title, (embedding[i], heads[i]), layers[i], what(model, title))
    if isinstance(spec, Seq2Seq):
        stacks.pair(file, spec)
    start(file)
    text = assembled(file, spec, name)
    short(text, spec, lines)
    return text


def refuse(spec: Spec) -> None:
    """Refuse cross-attention that has nothing to read."""
    for path, block in walk(spec):
        cross = block.cross if isinstance(block, Block) else None
        if cross is None:
            continue
        if isinstance(spec, Model) or path.startswith("encoder."):
            raise ValueError(f"{path}.cross: expected None, there is no encoder to look at; use a Seq2Seq's decoder")


def short(text: str, spec: Spec, lines: int | None) -> None:
    """Refuse a file that is longer than allowed: it would not be read."""
    count = len(text.splitlines())
    if lines is not None and count > lines:
        blocks = [block for model, _ in stacks.found(spec) for block in model.layers]
        raise ValueError(
            f"one file: expected at most {lines} lines, this model takes {count}: its {len(blocks)} blocks are of "
            f"{len(set(blocks))} kinds, in {len(re.findall('^class ', text, re.MULTILINE))} classes; make blocks more "
            f"alike, or allow it: lines={count}, --lines {count}"
        )


def bricks(file: File, models: list[Model]) -> None:
    """Write the classes inside blocks, each for all its uses in all stacks."""
    every = [(block, model) for model in models for block in model.layers]
    asks = [one for block, _ in every for one in (block.attention, block.cross) if one is not None]
    normed = [
        block.norm
        for block, _ in every
        if block.wiring != "bare" and (block.attention or block.cross or block.feedforward)
    ]
    inner = [one.qk_norm.norm if isinstance(one.qk_norm, Whole) else one.qk_norm for one in asks]
    heads = [getattr(getattr(model.head, "transform", None), "norm", None) for model in models]
    outer = [one for model in models for one in (model.norm, model.embedding.norm)]
    parts.norms(file, [one for one in [*normed, *inner, *heads, *outer] if one is not None])
    tables = [
        (model.position_bias, next((block.attention.heads for block in model.layers if block.attention), 1), 0)
        for model in models
        if model.position_bias is not None
    ]
    parts.positions(file, [parts.placed(one, file.dim) for one in asks if one.position is not None] + tables)
    sights.masks(file, models)
    found = [
        (one, name == "cross", name == "attention" and stacks.biased(model))
        for block, model in every
        for name in ("attention", "cross")
        if (one := getattr(block, name)) is not None
    ]
    attention(file, found)
    parts.feedforwards(file, [block.feedforward for block, _ in every if block.feedforward is not None], file.dim)


def made(file: File, model: Model, title: str) -> list[Any]:
    """Write the classes of a stack's blocks, and say how each is made."""
    prefix = "" if title == "Model" else title
    return blocks(file, model.layers, prefix, stacks.biased(model), stacks.told(file, model))


def what(model: Model, title: str) -> str:
    """The docstring of a stack's class."""
    parts = ["embedding", "blocks", *(["norm"] if model.norm else []), *(["head"] if model.head else [])]
    does = {"Model": "The whole model", "Encoder": "Reads the source", "Decoder": "Writes the target"}
    return f"{does[title]}: {', '.join(parts)}."


def start(file: File) -> None:
    """Write what fills a new model, and what reads a trained one."""
    linears = re.findall(r"nn\.Linear\((.*)\)", "\n".join(file.parts.values()))
    said = {"bias=False" not in one if "bias=" not in one or "bias=False" in one else None for one in linears}
    biases = "all" if said == {True} else "none" if said <= {False} else "some"
    file.brick("initialise", [{"biases": biases}], {})
    file.plain("load")


def assembled(file: File, spec: Spec, name: str) -> str:
    """The whole file: what it is, imports, constants, classes."""
    body = "\n\n\n".join(text.strip("\n") for text in file.parts.values()) + "\n\n" + DEMO
    lines = file.constants.lines(body)
    system = [line for word, line in IMPORTS.items() if re.search(word, body)]
    library = [line for word, line in LIBRARY.items() if re.search(word, body)]
    parts = [heading(spec, name), "\n".join(system), "\n".join(library), "\n".join(lines)]
    text = "\n\n".join(part for part in parts if part) + "\n\n\n" + body
    return "\n".join(line for one in text.splitlines() for line in opened(one)) + "\n"


def heading(spec: Spec, name: str) -> str:
    """The docstring of a file: the spec in one glance, and how the file is used."""
    said = {topic: brief(topic, spec) for topic in TOPICS}
    rows = [line for topic, words in said.items() for line in row(say(f"topic.{topic}").name.lower(), words)]
    models = [model for model, _ in stacks.found(spec)]
    two = isinstance(spec, Seq2Seq)
    given = "source" if two and isinstance(models[1].head, Classify) else "source, target" if two else "ids"
    return "\n".join(
        [
            f'"""{plain(name)}: a Transformer in one file.',
            "",
            *rows,
            *row(label("parameters").lower(), f"{parameters(spec):,}: {sized(models)}"),
            "",
            "    model = load()  # model.safetensors beside this file; Model() is one that has learned nothing",
            f"    out = model({given})  # {stacks.gives(models[-1])}",
            "",
            "Written by `oneblock export` to be read, checked, trained: it has no cache, so decode with a plain loop.",
            "Shapes: batch texts, length tokens, query and key tokens that look and are looked at.",
            '"""',
        ]
    )


def row(topic: str, words: str) -> list[str]:
    """A topic and what is said of it, in lines that are not too long."""
    return wrap(words, LONGEST, initial_indent=f"{topic:<14}", subsequent_indent=" " * 14)


def plain(name: str) -> str:
    """A name as a docstring may hold it: it may be a folder's, and a folder may be called anything.

    >>> plain('my "model"; x')
    'my model x'
    """
    return re.sub(r"[^\w .+-]", "", name)[:60].strip() or "model"


def sized(models: list[Model]) -> str:
    """Width, depth and vocabulary in words."""
    first = models[0]
    depths = " + ".join(str(len(model.layers)) for model in models)
    vocab = " + ".join(f"{n:,}" for n in dict.fromkeys(model.embedding.vocab for model in models))
    return f"dim {first.dim:,}, depth {depths}, vocabulary {vocab}"


__all__ = ["standalone"]
