"""The recipe of most open models with queries, keys and values in one matrix, and a window on what a token sees."""

from __future__ import annotations

from typing import Any

from oneblock.spec import LongRope, Model, Rope, Tokens
from oneblock.zoo.family import Family, Fused, Key, Rows
from oneblock.zoo.heads import kinds
from oneblock.zoo.hub import keys, rope, tokens
from oneblock.zoo.like import changed, like
from oneblock.zoo.llama import ROWS as LLAMA_ROWS
from oneblock.zoo.llama import llama
from oneblock.zoo.windows import behind, one_window


@like(
    llama, "head_dim bias wide_bias", dim=3072, hidden=8192, vocab=32_064, eps=1e-5, length=4096,
    tokens=Tokens(pad=32_000, bos=1, eos=32_000),
)  # fmt: skip
def phi3(spec: Model, window: int | None = None, dropout: float = 0.0) -> Model:
    """Abdin et al. 2024 (arXiv:2404.14219): rotary, RMSNorm, SwiGLU, no biases; a token sees the last `window` ones.

    A text that grows past the trained length of a `LongRope` position while it is decoded with a cache keeps the keys
    that were turned by the short factors; the authors' code reads it anew at that one step.
    """
    return changed(spec, {"layers.*.attention.mask": behind(window), "layers.*.dropout": dropout})


def _trained(spec: Model) -> int | None:
    stretched = spec.layers[0].attention.position.scaling  # type: ignore[union-attr]
    return stretched.length if isinstance(stretched, LongRope) else spec.length


ROWS: Rows = {
    **LLAMA_ROWS,
    "layers.*.attention.{q,k,v}": Fused("layers.*.self_attn.qkv_proj"),
    "layers.*.feedforward.{gate,up}": Fused("layers.*.mlp.gate_up_proj"),
}

CONFIG = keys(
    vocab_size=32_064, hidden_size=3072, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=None,
    intermediate_size=8192, hidden_act="silu", rms_norm_eps=1e-5, resid_pdrop=0.0, attention_dropout=0.0,
    tie_word_embeddings=False, max_position_embeddings=4096,
) | one_window(None) | rope(old=("rope_theta", "partial_rotary_factor")) | tokens(pad=32_000, bos=1, eos=32_000) | {
    "original_max_position_embeddings": Key(None, _trained, 4096),
}  # fmt: skip
FIXED = {
    "attention_bias": False, "mlp_bias": False, "lm_head_bias": False, "embd_pdrop": 0.0, "full_attn_mod": 1,
    "interpolate_factor": 1,
}  # fmt: skip

MEDIUM: dict[str, Any] = {"dim": 5120, "depth": 40, "heads": 40, "kv_heads": 10, "hidden": 17_920}
FOURTH: dict[str, Any] = MEDIUM | {
    "vocab": 100_352, "position": Rope(250_000.0), "length": 16_384,
    "tokens": Tokens(pad=100_349, bos=100_257, eos=100_265),
}  # fmt: skip
PHI3 = Family(
    phi3,
    {"phi-3-mini-4k": {"window": 2047}, "phi-3-medium-4k": MEDIUM | {"window": 2047}, "phi-4": FOURTH},
    "phi3", CONFIG, FIXED, ROWS, kinds("Phi3"), ("layers.*.self_attn.rotary_emb.inv_freq",),
)  # fmt: skip
