"""Norms on both sides of every sublayer, caps on scores and logits, and windows in every other layer."""

from __future__ import annotations

from typing import Any

from oneblock.spec import Head, Model, dims
from oneblock.zoo.family import Config, Family, Key, Rows
from oneblock.zoo.gemma import GELU, gemma
from oneblock.zoo.gemma import GEMMA as FIRST
from oneblock.zoo.like import changed, like, usual
from oneblock.zoo.llama import ROWS as LLAMA_ROWS
from oneblock.zoo.llama import kinds
from oneblock.zoo.windows import Windows, by_layer, windowed


@like(gemma, dim=3584, depth=42, kv_heads=8, hidden=14_336)
def gemma2(
    spec: Model,
    windows: Windows = (4096, None),
    scale: float | None = None,
    softcap: float | None = 50.0,
    logit_softcap: float | None = 30.0,
) -> Model:
    """Riviere et al. 2024 (arXiv:2408.00118): sandwich norms, capped scores and logits, windows by turns."""
    capped = {"layers.*.attention.softcap": softcap, "head.softcap": logit_softcap}
    made = changed(spec, capped | {"layers.*.attention.scale": scale, "layers.*.wiring": "sandwich"})
    return windowed(made, windows)


def root(value: Any, config: Config) -> float | None:
    """The factor on scores, 1 / sqrt of the key; None where it is the usual one."""
    width = config["head_dim"] or config["hidden_size"] // config["num_attention_heads"]
    return None if value == width else float(value) ** -0.5


def square(spec: Model) -> int:
    """The number whose root divides the scores: the width of a head, or one of its own."""
    attention: Any = spec.layers[0].attention
    return dims(attention, spec.dim)[1] if attention.scale is None else round(attention.scale**-2)


CONFIG = usual(
    FIRST.config, hidden_size=2304, num_hidden_layers=26, num_attention_heads=8, num_key_value_heads=4,
    intermediate_size=9216,
) | by_layer(4096, lambda _, layer: layer % 2 == 0) | {
    "hidden_activation": GELU,
    "hidden_act": Key(None, lambda _: None),
    "sliding_window_size": Key(None, lambda _: None),
    "query_pre_attn_scalar": Key("scale", square, 256, root),
    "attn_logit_softcapping": Key("softcap", "layers.0.attention.softcap", 50.0),
    "final_logit_softcapping": Key(
        "logit_softcap", lambda spec: spec.head.softcap if isinstance(spec.head, Head) else 30.0, 30.0
    ),
}  # fmt: skip

ROWS: Rows = {
    **LLAMA_ROWS,
    "layers.*.norms.attention_branch": "layers.*.post_attention_layernorm",
    "layers.*.norms.feedforward_pre": "layers.*.pre_feedforward_layernorm",
    "layers.*.norms.feedforward_branch": "layers.*.post_feedforward_layernorm",
}

SIZE_27B = {"dim": 4608, "depth": 46, "heads": 32, "kv_heads": 16, "hidden": 36_864, "head_dim": 128}

GEMMA2 = Family(
    gemma2,
    {
        "gemma2-2b": {"dim": 2304, "depth": 26, "heads": 8, "kv_heads": 4, "hidden": 9216},
        "gemma2-9b": {},
        "gemma2-27b": SIZE_27B | {"scale": 144**-0.5},
    },
    "gemma2", CONFIG, {"use_bidirectional_attention": False}, ROWS, kinds("Gemma2"),
)  # fmt: skip
