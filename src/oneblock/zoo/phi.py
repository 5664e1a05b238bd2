"""Small models on textbook data: attention and feed-forward side by side on one norm, part of each head turned."""

from __future__ import annotations

from typing import Any

from oneblock.spec import Attention, Block, Embedding, FeedForward, Head, LayerNorm, Model, Rope, Tokens
from oneblock.zoo.family import Family, Key, Rows
from oneblock.zoo.heads import kinds
from oneblock.zoo.hub import keys, rope, tokens


def phi(
    dim: int = 2048,
    depth: int = 24,
    heads: int = 32,
    kv_heads: int | None = None,
    hidden: int = 8192,
    vocab: int = 51_200,
    position: Rope = Rope(fraction=0.5),
    eps: float = 1e-5,
    activation: Any = "gelu_tanh",
    qk_norm: bool = False,
    dropout: float = 0.0,
    attention_dropout: float = 0.0,
    embedding_dropout: float = 0.0,
    tied: bool = False,
    length: int | None = 2048,
    tokens: Tokens = Tokens(),
) -> Model:
    """Li et al. 2023 (arXiv:2309.05463): one norm before both sublayers, half of each head turned, biases everywhere.

    With `qk_norm` queries and keys are normed head by head before they are turned.
    """
    norm = LayerNorm(eps)
    block = Block(
        Attention(
            heads, kv_heads, position=position, qk_norm=norm if qk_norm else None, bias=True, dropout=attention_dropout
        ),
        FeedForward(hidden, activation, bias=True),
        norm=norm, wiring="parallel-shared", dropout=dropout,
    )  # fmt: skip
    embedding = Embedding(vocab, dropout=embedding_dropout)
    return Model(dim, embedding, (block,) * depth, norm, Head(tied, bias=True), length, tokens)


ROWS: Rows = {
    "embedding.token": "embed_tokens",
    "layers.*.attention.{q,k,v}": "layers.*.self_attn.{q,k,v}_proj",
    "layers.*.attention.out": "layers.*.self_attn.dense",
    "layers.*.attention.{q,k}_norm": "layers.*.self_attn.{q,k}_layernorm",
    "layers.*.feedforward.{up,down}": "layers.*.mlp.{fc1,fc2}",
    "layers.*.norms.attention_pre": "layers.*.input_layernorm",
    "norm": "final_layernorm",
}

CONFIG = keys(
    vocab_size=51_200, hidden_size=2048, num_hidden_layers=24, num_attention_heads=32, num_key_value_heads=None,
    intermediate_size=8192, hidden_act="gelu_new", layer_norm_eps=1e-5, resid_pdrop=0.0, attention_dropout=0.0,
    embd_pdrop=0.0, tie_word_embeddings=False, max_position_embeddings=2048,
) | rope(fraction=0.5, old=("rope_theta", "partial_rotary_factor")) | tokens(bos=1, eos=2) | {
    "qk_layernorm": Key("qk_norm", lambda spec: spec.layers[0].attention.qk_norm is not None, False),
}  # fmt: skip

SECOND: dict[str, Any] = {
    "dim": 2560, "depth": 32, "hidden": 10_240, "position": Rope(fraction=0.4), "dropout": 0.1,
    "tokens": Tokens(bos=50_256, eos=50_256),
}  # fmt: skip
IGNORED = ("layers.*.self_attn.rotary_emb.inv_freq",)
PHI = Family(phi, {"phi-1.5": {}, "phi-2": SECOND}, "phi", CONFIG, {}, ROWS, kinds("Phi"), IGNORED)
