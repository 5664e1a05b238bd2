"""Rotary positions, RMS norms, gated feed-forward, no biases: the recipe of most open language models since 2023."""

from __future__ import annotations

from typing import Any

from oneblock.spec import Attention, Block, Embedding, FeedForward, Head, Model, RMSNorm, Rope, Smooth, Tokens
from oneblock.zoo.family import Family, Rows, table
from oneblock.zoo.heads import kinds as kinds
from oneblock.zoo.hub import keys, rope, tokens


def llama(
    dim: int = 4096,
    depth: int = 32,
    heads: int = 32,
    kv_heads: int | None = None,
    hidden: int = 11_008,
    vocab: int = 32_000,
    head_dim: int | None = None,
    position: Rope = Rope(),
    eps: float = 1e-6,
    activation: Any = "silu",
    bias: bool = False,
    wide_bias: bool = False,
    tied: bool = False,
    attention_dropout: float = 0.0,
    length: int | None = 2048,
    tokens: Tokens = Tokens(bos=1, eos=2),
) -> Model:
    """Touvron et al. 2023 (arXiv:2302.13971): rotary, RMSNorm, SwiGLU, no biases; later grouped keys (2307.09288)."""
    block = Block(
        Attention(heads, kv_heads, head_dim, position=position, bias=bias, dropout=attention_dropout),
        FeedForward(hidden, activation, gated=True, bias=wide_bias),
        norm=RMSNorm(eps),
    )
    return Model(dim, Embedding(vocab), (block,) * depth, RMSNorm(eps), Head(tied), length, tokens)


THIRD: dict[str, Any] = {
    "kv_heads": 8, "vocab": 128_256, "position": Rope(500_000.0), "eps": 1e-5, "length": 8192,
    "tokens": Tokens(bos=128_000, eos=128_001),
}  # fmt: skip
LONGER: dict[str, Any] = THIRD | {"position": Rope(500_000.0, scaling=Smooth(8.0, 8192)), "length": 131_072}
SMALL: dict[str, Any] = LONGER | {"position": Rope(500_000.0, scaling=Smooth(32.0, 8192)), "tied": True}
COLUMNS = "dim depth heads hidden"
SIZES = (
    table(COLUMNS, {
        "llama-7b": (4096, 32, 32, 11_008),
        "llama-13b": (5120, 40, 40, 13_824),
        "llama-33b": (6656, 60, 52, 17_920),
        "llama-65b": (8192, 80, 64, 22_016),
    })
    | table(COLUMNS, {"llama2-7b": (4096, 32, 32, 11_008), "llama2-13b": (5120, 40, 40, 13_824)}, eps=1e-5, length=4096)
    | table(COLUMNS, {"llama2-70b": (8192, 80, 64, 28_672)}, kv_heads=8, eps=1e-5, length=4096)
    | table(COLUMNS, {"llama3-8b": (4096, 32, 32, 14_336), "llama3-70b": (8192, 80, 64, 28_672)}, **THIRD)
    | table(COLUMNS, {
        "llama3.1-8b": (4096, 32, 32, 14_336),
        "llama3.1-70b": (8192, 80, 64, 28_672),
        "llama3.1-405b": (16_384, 126, 128, 53_248),
    }, **LONGER)
    | table(COLUMNS, {"llama3.2-1b": (2048, 16, 32, 8192), "llama3.2-3b": (3072, 28, 24, 8192)}, **SMALL)
)  # fmt: skip

ROWS: Rows = {
    "embedding.token": "embed_tokens",
    "layers.*.attention.{q,k,v}": "layers.*.self_attn.{q,k,v}_proj",
    "layers.*.attention.out": "layers.*.self_attn.o_proj",
    "layers.*.feedforward.{gate,up}": "layers.*.mlp.{gate,up}_proj",
    "layers.*.feedforward.down": "layers.*.mlp.down_proj",
    "layers.*.norms.attention_pre": "layers.*.input_layernorm",
    "layers.*.norms.feedforward_pre": "layers.*.post_attention_layernorm",
    "norm": "norm",
}

CONFIG = keys(
    vocab_size=32_000, hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=None,
    head_dim=None, intermediate_size=11_008, hidden_act="silu", rms_norm_eps=1e-6, attention_bias=False, mlp_bias=False,
    attention_dropout=0.0, tie_word_embeddings=False, max_position_embeddings=2048,
) | rope() | tokens(bos=1, eos=2)  # fmt: skip

LLAMA = Family(
    llama, SIZES, "llama", CONFIG, {"pretraining_tp": 1}, ROWS, kinds("Llama"),
    ("layers.*.self_attn.rotary_emb.inv_freq",),
)  # fmt: skip
