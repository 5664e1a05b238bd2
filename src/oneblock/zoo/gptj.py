"""Attention and feed-forward side by side on one norm, and rotary positions on neighbouring features."""

from __future__ import annotations

from typing import Any

from oneblock.spec import Attention, Block, Embedding, FeedForward, Head, LayerNorm, Model, Rope, Tokens, dims
from oneblock.zoo.family import Config, Family, Key, Rows
from oneblock.zoo.gpt2 import SUMMARY
from oneblock.zoo.heads import kinds
from oneblock.zoo.hub import keys, tokens, unread


def gptj(
    dim: int = 4096,
    depth: int = 28,
    heads: int = 16,
    hidden: int | None = None,
    vocab: int = 50_400,
    rotary: int = 64,
    eps: float = 1e-5,
    activation: Any = "gelu_tanh",
    dropout: float = 0.0,
    attention_dropout: float = 0.0,
    embedding_dropout: float = 0.0,
    tied: bool = False,
    length: int | None = 2048,
    tokens: Tokens = Tokens(bos=50_256, eos=50_256),
) -> Model:
    """Wang and Komatsuzaki 2021, "GPT-J-6B": attention and feed-forward in parallel, rotary (arXiv:2104.09864).

    `hidden` is 4 * dim by default; `rotary` features of each head are turned. The head has a bias, attention has none.
    """
    block = Block(
        Attention(heads, position=Rope(fraction=rotary * heads / dim, layout="interleaved"), dropout=attention_dropout),
        FeedForward(hidden or 4 * dim, activation, bias=True),
        norm=LayerNorm(eps), wiring="parallel-shared", dropout=dropout,
    )  # fmt: skip
    embedding = Embedding(vocab, dropout=embedding_dropout)
    return Model(dim, embedding, (block,) * depth, LayerNorm(eps), Head(tied, bias=True), length, tokens)


def _rotary(value: int, config: Config) -> int:
    if not value or value % 2 or value > config["n_embd"] // config["n_head"]:
        raise ValueError(f"rotary_dim: expected an even number of at most n_embd / n_head features, got {value!r}")
    return value


def _turned(spec: Model) -> int:
    attention = spec.layers[0].attention
    return round(dims(attention, spec.dim)[1] * attention.position.fraction)  # type: ignore[arg-type, union-attr]


ROWS: Rows = {
    "embedding.token": "wte",
    "layers.*.attention.{q,k,v,out}": "h.*.attn.{q,k,v,out}_proj",
    "layers.*.feedforward.{up,down}": "h.*.mlp.{fc_in,fc_out}",
    "layers.*.norms.attention_pre": "h.*.ln_1",
    "norm": "ln_f",
}

CONFIG = keys(
    vocab_size=50_400, n_embd=4096, n_layer=28, n_head=16, n_inner=None, n_positions=2048, layer_norm_epsilon=1e-5,
    activation_function="gelu_new", resid_pdrop=0.0, attn_pdrop=0.0, embd_pdrop=0.0, tie_word_embeddings=False,
) | tokens(bos=50_256, eos=50_256) | unread("n_ctx", *SUMMARY) | {
    "rotary_dim": Key("rotary", _turned, 64, _rotary),
}  # fmt: skip

GPTJ = Family(
    gptj, {"gpt-j-6b": {}}, "gptj", CONFIG, {"rotary": True, "scale_attn_weights": True}, ROWS,
    kinds("GPTJ", "transformer."), ("h.*.attn.bias", "h.*.attn.masked_bias"),
)  # fmt: skip
