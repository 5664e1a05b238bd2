"""The norm stands behind the sublayer, before the addition; queries and keys are normed, all heads together."""

from __future__ import annotations

from oneblock.spec import Model, Rope, Tokens, Whole
from oneblock.zoo.family import Family, Rows
from oneblock.zoo.like import changed, like, usual
from oneblock.zoo.llama import ROWS as LLAMA_ROWS
from oneblock.zoo.llama import kinds, llama
from oneblock.zoo.qwen3 import PLAIN


@like(
    llama, vocab=100_352, position=Rope(500_000.0), length=4096, tokens=Tokens(pad=100_277, eos=100_257),
)  # fmt: skip
def olmo2(spec: Model) -> Model:
    """OLMo team 2025 (arXiv:2501.00656): x + norm(f(x)), and norms over the whole of a token's queries and keys."""
    made: Model = changed(spec, {"layers.*.wiring": "branch", "layers.*.attention.qk_norm": Whole(spec.layers[0].norm)})
    return made


CONFIG = usual(
    PLAIN, vocab_size=50_304, rms_norm_eps=1e-5, pad_token_id=1, bos_token_id=None, eos_token_id=50_279,
)  # fmt: skip

ROWS: Rows = {
    **LLAMA_ROWS,
    "layers.*.attention.{q,k}_norm.norm": "layers.*.self_attn.{q,k}_norm",
    "layers.*.norms.attention_branch": "layers.*.post_attention_layernorm",
    "layers.*.norms.feedforward_branch": "layers.*.post_feedforward_layernorm",
}

OLMO2 = Family(
    olmo2,
    {
        "olmo2-1b": {"dim": 2048, "depth": 16, "heads": 16, "hidden": 8192},
        "olmo2-7b": {},
        "olmo2-13b": {"dim": 5120, "depth": 40, "heads": 40, "hidden": 13_824},
        "olmo2-32b": {"dim": 5120, "depth": 64, "heads": 40, "kv_heads": 8, "hidden": 27_648},
    },
    "olmo2", CONFIG, {}, ROWS, kinds("Olmo2"),
)  # fmt: skip
