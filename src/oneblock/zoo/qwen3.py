"""Norms on queries and keys instead of biases, and heads of a fixed width."""

from __future__ import annotations

from typing import Any

from oneblock.spec import Model, Rope, Tokens
from oneblock.zoo.family import Family, Rows
from oneblock.zoo.like import changed, like, usual
from oneblock.zoo.llama import LLAMA, kinds, llama
from oneblock.zoo.llama import ROWS as LLAMA_ROWS
from oneblock.zoo.windows import Windows, switched, windowed


@like(
    llama, depth=36, kv_heads=8, hidden=12_288, vocab=151_936, position=Rope(1_000_000.0), length=40_960,
    tokens=Tokens(bos=151_643, eos=151_645),
)  # fmt: skip
def qwen3(spec: Model, windows: Windows = (None,)) -> Model:
    """Yang et al. 2025 (arXiv:2505.09388): an RMSNorm on each head's queries and keys before they are turned."""
    return windowed(changed(spec, {"layers.*.attention.qk_norm": spec.norm}), windows)


PLAIN = {key: row for key, row in LLAMA.config.items() if key != "mlp_bias"}

CONFIG = usual(
    PLAIN, vocab_size=151_936, intermediate_size=22_016, num_key_value_heads=32, head_dim=128,
    max_position_embeddings=32_768, bos_token_id=None, eos_token_id=None,
) | switched()  # fmt: skip

ROWS: Rows = {**LLAMA_ROWS, "layers.*.attention.{q,k}_norm": "layers.*.self_attn.{q,k}_norm"}

SMALL: dict[str, Any] = {"depth": 28, "heads": 16, "tied": True}

QWEN3 = Family(
    qwen3,
    {
        "qwen3-0.6b": SMALL | {"dim": 1024, "hidden": 3072, "head_dim": 128},
        "qwen3-1.7b": SMALL | {"dim": 2048, "hidden": 6144},
        "qwen3-4b": {"dim": 2560, "hidden": 9728, "head_dim": 128, "tied": True},
        "qwen3-8b": {},
        "qwen3-14b": {"dim": 5120, "depth": 40, "heads": 40, "hidden": 17_408},
        "qwen3-32b": {"dim": 5120, "depth": 64, "heads": 64, "hidden": 25_600, "head_dim": 128},
    },
    "qwen3", CONFIG, {}, ROWS, kinds("Qwen3"),
)  # fmt: skip
