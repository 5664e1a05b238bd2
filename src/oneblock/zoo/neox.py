"""Attention and feed-forward side by side, each with a norm of its own; a quarter of each head is turned."""

from __future__ import annotations

from typing import Any

from oneblock.spec import Attention, Block, Embedding, FeedForward, Head, LayerNorm, Model, Rope, Tokens
from oneblock.zoo.family import Family, Fused, Key, Rows, table
from oneblock.zoo.heads import kinds
from oneblock.zoo.hub import activation, idle, keys, rope, tokens


def neox(
    dim: int = 6144,
    depth: int = 44,
    heads: int = 64,
    hidden: int = 24_576,
    vocab: int = 50_432,
    position: Rope = Rope(fraction=0.25),
    eps: float = 1e-5,
    activation: Any = "gelu",
    bias: bool = True,
    parallel: bool = True,
    dropout: float = 0.0,
    attention_dropout: float = 0.0,
    tied: bool = False,
    length: int | None = 2048,
    tokens: Tokens = Tokens(bos=0, eos=0),
) -> Model:
    """Black et al. 2022 (arXiv:2204.06745), Biderman et al. 2023 (arXiv:2304.01373): parallel sublayers, two norms.

    `bias` is that of attention; without `parallel` one sublayer follows the other.
    """
    block = Block(
        Attention(heads, position=position, bias=bias, dropout=attention_dropout),
        FeedForward(hidden, activation, bias=True),
        norm=LayerNorm(eps), wiring="parallel" if parallel else "pre", dropout=dropout,
    )  # fmt: skip
    embedding = Embedding(vocab, dropout=dropout)
    return Model(dim, embedding, (block,) * depth, LayerNorm(eps), Head(tied), length, tokens)


def rows(spec: Model) -> Rows:
    """Queries, keys and values of one head stand together in one matrix."""
    heads = spec.layers[0].attention.heads  # type: ignore[union-attr]
    return {
        "embedding.token": "embed_in",
        "layers.*.attention.{q,k,v}": Fused("layers.*.attention.query_key_value", groups=heads),
        "layers.*.attention.out": "layers.*.attention.dense",
        "layers.*.feedforward.{up,down}": "layers.*.mlp.{dense_h_to_4h,dense_4h_to_h}",
        "layers.*.norms.attention_pre": "layers.*.input_layernorm",
        "layers.*.norms.feedforward_pre": "layers.*.post_attention_layernorm",
        "norm": "final_layer_norm",
    }


CONFIG = keys(
    vocab_size=50_432, hidden_size=6144, num_hidden_layers=44, num_attention_heads=64, intermediate_size=24_576,
    layer_norm_eps=1e-5, attention_bias=True, hidden_dropout=0.0, attention_dropout=0.0, tie_word_embeddings=False,
    max_position_embeddings=2048,
) | rope(fraction=0.25, old=("rotary_emb_base", "rotary_pct")) | tokens(bos=0, eos=2) | {
    "hidden_act": activation("layers.0.feedforward.activation", "gelu", tanh="gelu_fast"),
    "use_parallel_residual": Key("parallel", lambda spec: spec.layers[0].wiring == "parallel", True),
    "classifier_dropout": idle(0.1),
}  # fmt: skip

SIZES = {"gpt-neox-20b": {"activation": "gelu_tanh"}} | table("dim depth heads hidden vocab", {
    "pythia-70m": (512, 6, 8, 2048, 50_304),
    "pythia-160m": (768, 12, 12, 3072, 50_304),
    "pythia-410m": (1024, 24, 16, 4096, 50_304),
    "pythia-1b": (2048, 16, 8, 8192, 50_304),
    "pythia-1.4b": (2048, 24, 16, 8192, 50_304),
    "pythia-2.8b": (2560, 32, 32, 10_240, 50_304),
    "pythia-6.9b": (4096, 32, 32, 16_384, 50_432),
    "pythia-12b": (5120, 36, 40, 20_480, 50_688),
})  # fmt: skip

NEOX = Family(
    neox, SIZES, "gpt_neox", CONFIG, {"attention_probs_dropout_prob": 0, "hidden_dropout_prob": 0}, rows,
    kinds("GPTNeoX", "gpt_neox.", "embed_out"),
    tuple(f"layers.*.attention.{name}" for name in ("bias", "masked_bias", "rotary_emb.inv_freq")),
    {"^lm_head": "embed_out"},
)  # fmt: skip
