"""Biases on queries, keys and values alone, and a window that the later layers can be given."""

from __future__ import annotations

from oneblock.spec import Model, Rope, Tokens
from oneblock.zoo.family import Family
from oneblock.zoo.like import changed, like, usual
from oneblock.zoo.llama import ROWS, kinds, llama
from oneblock.zoo.mistral import PLAIN
from oneblock.zoo.windows import Windows, switched, windowed


@like(
    llama, dim=3584, depth=28, heads=28, kv_heads=4, hidden=18_944, vocab=152_064, position=Rope(1_000_000.0),
    length=131_072, tokens=Tokens(bos=151_643, eos=151_643),
)  # fmt: skip
def qwen2(spec: Model, windows: Windows = (None,)) -> Model:
    """Yang et al. 2024 (arXiv:2407.10671, 2412.15115): grouped keys, biases on q, k and v; `windows` by layer."""
    made: Model = changed(spec, {"layers.*.attention.bias": True, "layers.*.attention.out_bias": False})
    return windowed(made, windows)


CONFIG = usual(
    PLAIN, vocab_size=151_936, intermediate_size=22_016, num_key_value_heads=32, max_position_embeddings=32_768,
    bos_token_id=None, eos_token_id=None,
) | switched()  # fmt: skip

SMALL = {"vocab": 151_936, "tied": True}
SIZE_500M = {"dim": 896, "depth": 24, "heads": 14, "kv_heads": 2, "hidden": 4864} | SMALL
SIZE_1500M = {"dim": 1536, "heads": 12, "kv_heads": 2, "hidden": 8960} | SMALL
SIZE_3B = {"dim": 2048, "depth": 36, "heads": 16, "kv_heads": 2, "hidden": 11_008, "length": 32_768} | SMALL
SIZE_14B = {"dim": 5120, "depth": 48, "heads": 40, "kv_heads": 8, "hidden": 13_824, "eps": 1e-5}
SIZE_72B = {"dim": 8192, "depth": 80, "heads": 64, "kv_heads": 8, "hidden": 29_568, "eps": 1e-5}

QWEN2 = Family(
    qwen2,
    {
        "qwen2-0.5b": SIZE_500M, "qwen2-1.5b": SIZE_1500M, "qwen2-7b": {}, "qwen2-72b": SIZE_72B,
        "qwen2.5-0.5b": SIZE_500M | {"length": 32_768}, "qwen2.5-1.5b": SIZE_1500M,
        "qwen2.5-3b": SIZE_3B, "qwen2.5-7b": {}, "qwen2.5-14b": SIZE_14B,
        "qwen2.5-32b": SIZE_14B | {"depth": 64, "hidden": 27_648}, "qwen2.5-72b": SIZE_72B,
    },
    "qwen2", CONFIG, {"use_mrope": False}, ROWS, kinds("Qwen2"),
)  # fmt: skip
