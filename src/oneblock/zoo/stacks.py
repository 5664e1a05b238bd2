"""The layout of torch's own stacks, `nn.Transformer` and its halves, anywhere in a larger model."""

from __future__ import annotations

import re
from typing import Any

from oneblock.spec import (
    Attention,
    Block,
    Causal,
    Embedding,
    FeedForward,
    Full,
    Head,
    LayerNorm,
    Model,
    Seq2Seq,
    Spec,
    Tokens,
)
from oneblock.zoo.family import Fused, Row, Rows
from oneblock.zoo.layout import Layout, Shapes, count, needed

ABSENT = "absent"
"""The embedding of a stack that has none: one token, all zero."""


def stacks(
    shapes: Shapes,
    *,
    heads: int = 0,
    activation: Any = "relu",
    wiring: Any = "post",
    eps: float = 1e-5,
    causal: bool = False,
    source: str | None = None,
    target: str | None = None,
    head: str | None = None,
    tokens: Tokens = Tokens(),
) -> tuple[Spec, Rows]:
    """An encoder, a decoder, or both.

    `source`, `target`, `head` are the names of the embeddings and of the output layer beside the stacks, which have
    none. A stack without an embedding has a table of one token, all zero: it reads `inputs_embeds`. A decoder without
    `head` writes with its embedding's matrix. `wiring` is "pre" for layers with norm_first.
    `causal` is about an encoder.
    """
    needed(heads)
    known = {"activation": activation, "wiring": wiring, "eps": eps, "tokens": tokens}
    out = None if head is None and target is None else Head(head is None, bias=f"{head}.bias" in shapes)
    at = sorted({re.sub(r"layers\.\d+\..*", "", name) for name in shapes if "self_attn.in_proj" in name}, reverse=True)
    if len(at) == 1:
        decodes = causal or f"{at[0]}layers.0.norm3.weight" in shapes
        embedding = target or source
        model = _stack(shapes, at[0], heads, embedding, decodes, out, **known)
        return model, _rows(model, "", at[0], embedding, head)
    if len(at) != 2 or at[0].removesuffix("encoder.") != at[1].removesuffix("decoder."):
        raise ValueError(f"layers: expected one stack, or an encoder and a decoder beside it, got {at}")
    spec = Seq2Seq(
        _stack(shapes, at[0], heads, source, False, None, **known),
        _stack(shapes, at[1], heads, target, True, out, **known),
        share=source is not None and source == target,
    )
    rows = _rows(spec.encoder, "encoder.", at[0], source, None)
    return spec, rows | _rows(spec.decoder, "decoder.", at[1], target, head)


def _stack(
    shapes: Shapes, at: str, heads: int, embedding: str | None, decodes: bool, head: Head | None, **known: Any
) -> Model:
    """The layers below a name, as their first one shows them, and what is around them."""
    first = f"{at}layers.0."
    hidden, dim = shapes[f"{first}linear1.weight"]
    bias, norm = f"{first}linear1.bias" in shapes, LayerNorm(known["eps"], f"{first}norm1.bias" in shapes)
    block = Block(
        Attention(heads, mask=Causal() if decodes else Full(), bias=bias),
        FeedForward(hidden, known["activation"], bias=bias),
        Attention(heads, mask=Full(), bias=bias) if f"{first}norm3.weight" in shapes else None,
        norm,
        known["wiring"],
    )
    vocab = 1 if embedding is None else shapes[f"{embedding}.weight"][0]
    layers = (block,) * count(shapes, rf"{re.escape(at)}layers\.(\d+)\.")
    last = norm if f"{at}norm.weight" in shapes else None
    return Model(dim, Embedding(vocab), layers, last, head, tokens=known["tokens"])


def _rows(model: Model, ours: str, at: str, embedding: str | None, head: str | None) -> dict[str, Row]:
    block = model.layers[0]
    slots = ("attention", "feedforward") if block.cross is None else ("attention", "cross", "feedforward")
    layers, theirs = f"{ours}layers.*.", f"{at}layers.*."
    rows: dict[str, Row] = {
        f"{layers}attention.{{q,k,v}}": Fused(f"{theirs}self_attn.in_proj"),
        f"{layers}attention.out": f"{theirs}self_attn.out_proj",
        f"{layers}cross.{{q,k,v}}": Fused(f"{theirs}multihead_attn.in_proj"),
        f"{layers}cross.out": f"{theirs}multihead_attn.out_proj",
        f"{layers}feedforward.{{up,down}}": f"{theirs}{{linear1,linear2}}",
        f"{ours}norm": f"{at}norm",
        f"{ours}embedding.token": embedding or ABSENT,
    }
    norms = {f"{layers}norms.{slot}_{block.wiring}": f"{theirs}norm{i + 1}" for i, slot in enumerate(slots)}
    return rows | norms | ({f"{ours}head.out": head} if head else {})


STACKS = Layout(
    r"(.*\.)?layers\.0\.self_attn\.in_proj\.weight",
    stacks,
    {"nhead": "heads", "layer_norm_eps": "eps"},
    renamed={r"in_proj_(weight|bias)$": r"in_proj.\1"},
)
