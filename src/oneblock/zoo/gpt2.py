"""Pre-norm blocks, learned positions, one matrix for embedding and head: the decoder alone, as a language model."""

from __future__ import annotations

from typing import Any

from oneblock.spec import Attention, Block, Embedding, FeedForward, Head, LayerNorm, Learned, Model, Tokens, dims
from oneblock.zoo.family import Family, Flip, Fused, Key, Rows, table
from oneblock.zoo.heads import kinds
from oneblock.zoo.hub import idle, keys, tokens, unread


def gpt2(
    dim: int = 768,
    depth: int = 12,
    heads: int = 12,
    hidden: int | None = None,
    vocab: int = 50_257,
    eps: float = 1e-5,
    activation: Any = "gelu_tanh",
    dropout: float = 0.1,
    attention_dropout: float = 0.1,
    embedding_dropout: float = 0.1,
    scaled: bool = True,
    falling: bool = False,
    tied: bool = True,
    length: int = 1024,
    tokens: Tokens = Tokens(bos=50_256, eos=50_256),
) -> Model:
    """Radford et al. 2019, "Language Models are Unsupervised Multitask Learners": pre-norm, GELU, learned positions.

    `hidden` is 4 * dim by default. Without `scaled` scores are not divided by sqrt(head_dim); with `falling` those of
    layer i (from 1) are divided by i as well.
    """

    wide, usual = FeedForward(hidden or 4 * dim, activation, bias=True), (dim // heads) ** -0.5 if scaled else 1.0

    def block(layer: int) -> Block:
        size = None if scaled and not falling else usual / (layer if falling else 1)
        attention = Attention(heads, bias=True, scale=size, dropout=attention_dropout)
        return Block(attention, wide, norm=LayerNorm(eps), dropout=dropout)

    embedding = Embedding(vocab, Learned(length), dropout=embedding_dropout)
    layers = tuple(block(layer + 1) for layer in range(depth)) if falling else (block(1),) * depth
    return Model(dim, embedding, layers, LayerNorm(eps), Head(tied), length, tokens)


def _scales(spec: Model) -> tuple[bool, bool]:
    """(scaled, falling) of a spec: whether scores are divided by sqrt(head_dim), and by the number of the layer."""
    attention = [block.attention for block in spec.layers if block.attention is not None]
    first, usual = attention[0].scale, dims(attention[0], spec.dim)[1] ** -0.5
    scaled = first is None or first == usual != 1.0
    return scaled, first is not None and (scaled or len({one.scale for one in attention}) > 1)


ROWS: Rows = {
    "embedding.{token,position}": "{wte,wpe}",
    "layers.*.attention.{q,k,v}": Fused("h.*.attn.c_attn", flip=True),
    "layers.*.attention.out": Flip("h.*.attn.c_proj"),
    "layers.*.feedforward.{up,down}": Flip("h.*.mlp.{c_fc,c_proj}"),
    "layers.*.norms.{attention_pre,feedforward_pre}": "h.*.{ln_1,ln_2}",
    "norm": "ln_f",
}

SUMMARY = {
    "summary_type": idle("cls_index"), "summary_use_proj": idle(True), "summary_activation": idle(None),
    "summary_proj_to_labels": idle(True), "summary_first_dropout": idle(0.1),
}  # fmt: skip
"""Of a head that no class here has."""

CONFIG = keys(
    vocab_size=50_257, n_embd=768, n_layer=12, n_head=12, n_inner=None, n_positions=1024, layer_norm_epsilon=1e-5,
    activation_function="gelu_new", resid_pdrop=0.1, attn_pdrop=0.1, embd_pdrop=0.1, tie_word_embeddings=True,
) | SUMMARY | tokens(bos=50_256, eos=50_256) | unread("n_ctx", "output_past", "predict_special_tokens") | {
    "scale_attn_weights": Key("scaled", lambda spec: _scales(spec)[0], True),
    "scale_attn_by_inverse_layer_idx": Key("falling", lambda spec: _scales(spec)[1], False),
    "reorder_and_upcast_attn": idle(False),
}  # fmt: skip

SIZES = table("dim depth heads", {
    "gpt2": (768, 12, 12),
    "gpt2-medium": (1024, 24, 16),
    "gpt2-large": (1280, 36, 20),
    "gpt2-xl": (1600, 48, 25),
})  # fmt: skip

GPT2 = Family(
    gpt2, SIZES, "gpt2", CONFIG, {}, ROWS, kinds("GPT2", "transformer.", writes="LMHeadModel"),
    ("h.*.attn.bias", "h.*.attn.masked_bias"),
)  # fmt: skip
