"""The layout of one-page projects: the names of the decoder alone, with matrices that stand upright."""

from __future__ import annotations

from typing import Any

from oneblock.spec import Attention, Block, Embedding, FeedForward, Head, LayerNorm, Learned, Model, Spec
from oneblock.zoo.family import Fused, Rows
from oneblock.zoo.layout import Layout, Shapes, count, needed

ROWS: Rows = {
    "embedding.{token,position}": "transformer.{wte,wpe}",
    "layers.*.attention.{q,k,v}": Fused("transformer.h.*.attn.c_attn"),
    "layers.*.attention.out": "transformer.h.*.attn.c_proj",
    "layers.*.feedforward.{up,down}": "transformer.h.*.mlp.{c_fc,c_proj}",
    "layers.*.norms.{attention_pre,feedforward_pre}": "transformer.h.*.{ln_1,ln_2}",
    "norm": "transformer.ln_f",
    "head.out": "lm_head",
}


def nano(
    shapes: Shapes, *, heads: int = 0, activation: Any = "gelu", dropout: float = 0.0, eps: float = 1e-5
) -> tuple[Spec, Rows]:
    """Karpathy 2022, nanoGPT: pre-norm, learned positions, the embedding as head; all biases or none.

    Its activation is the exact GELU; checkpoints of its first half year want "gelu_tanh".
    """
    needed(heads)
    (vocab, dim), length = shapes["transformer.wte.weight"], shapes["transformer.wpe.weight"][0]
    first = "transformer.h.0."
    if shapes[f"{first}attn.c_attn.weight"] != (3 * dim, dim):
        got = shapes[f"{first}attn.c_attn.weight"]
        raise ValueError(f"{first}attn.c_attn.weight: expected {(3 * dim, dim)}, (outputs, inputs), got {got}")
    bias, norm = f"{first}attn.c_attn.bias" in shapes, LayerNorm(eps, f"{first}ln_1.bias" in shapes)
    wide = FeedForward(shapes[f"{first}mlp.c_fc.weight"][0], activation, bias=bias)
    block = Block(Attention(heads, bias=bias, dropout=dropout), wide, norm=norm, dropout=dropout)
    layers = (block,) * count(shapes, r"transformer\.h\.(\d+)\.")
    return Model(dim, Embedding(vocab, Learned(length), dropout=dropout), layers, norm, Head(tied=True), length), ROWS


NANO = Layout(
    r"transformer\.h\.0\.attn\.c_attn\.weight",
    nano,
    {"n_head": "heads"},
    ("n_layer", "n_embd", "block_size", "vocab_size", "bias"),
    ("*.attn.bias",),
)
