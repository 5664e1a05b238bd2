"""A window over the last tokens, and grouped keys: the same recipe, cheaper for long texts."""

from __future__ import annotations

from oneblock.spec import Model, Rope
from oneblock.zoo.family import Family
from oneblock.zoo.like import changed, like, usual
from oneblock.zoo.llama import LLAMA, ROWS, kinds, llama
from oneblock.zoo.windows import behind, one_window


@like(llama, kv_heads=8, hidden=14_336, eps=1e-5, length=32_768)
def mistral(spec: Model, window: int | None = 4096) -> Model:
    """Jiang et al. 2023 (arXiv:2310.06825): each layer sees the last `window` tokens; since version 0.2 all of them."""
    made: Model = changed(spec, {"layers.*.attention.mask": behind(window)})
    return made


PLAIN = {key: row for key, row in LLAMA.config.items() if not key.endswith("_bias")}
"""The keys of a family that has no choice of biases."""

CONFIG = usual(
    PLAIN, intermediate_size=14_336, num_key_value_heads=8, max_position_embeddings=131_072
) | one_window(4096)  # fmt: skip

OPEN = {"window": None, "position": Rope(1_000_000.0)}

MISTRAL = Family(
    mistral,
    {"mistral-7b-v0.1": {}, "mistral-7b-v0.2": OPEN, "mistral-7b-v0.3": OPEN | {"vocab": 32_768}},
    "mistral", CONFIG, {}, ROWS, kinds("Mistral"),
)  # fmt: skip
