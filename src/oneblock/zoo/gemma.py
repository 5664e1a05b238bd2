"""Norm weights around zero, embeddings times sqrt(dim), gates by GELU, heads of 256 features."""

from __future__ import annotations

from typing import Any

from oneblock.spec import Model, Tokens
from oneblock.zoo.family import Config, Family, Key
from oneblock.zoo.hub import activation
from oneblock.zoo.like import changed, like, usual
from oneblock.zoo.llama import ROWS, kinds, llama
from oneblock.zoo.qwen3 import PLAIN


@like(
    llama, dim=3072, depth=28, heads=16, hidden=24_576, vocab=256_000, head_dim=256, activation="gelu_tanh", tied=True,
    length=8192, tokens=Tokens(pad=0, bos=2, eos=1),
)  # fmt: skip
def gemma(spec: Model) -> Model:
    """Mesnard et al. 2024 (arXiv:2403.08295): norms multiply by 1 + weight, token vectors are scaled up, GELU gates."""
    around_zero = {"layers.*.norm.centred": True, "norm.centred": True}
    made: Model = changed(spec, around_zero | {"embedding.scale": "sqrt_dim"})
    return made


GELU = activation("layers.0.feedforward.activation", "gelu_pytorch_tanh", tanh="gelu_pytorch_tanh")


def meant(value: Any, config: Config) -> Any:
    """The activation: the first files say "gelu" and mean the one by tanh, which later ones say in a second key."""
    words = {"gelu_pytorch_tanh" if word == "gelu" else word for word in (value, config["hidden_activation"]) if word}
    if len(words) > 1:
        raise ValueError(f"hidden_activation: expected the same as hidden_act, {value!r}, got two: {sorted(words)}")
    return GELU.read(words.pop(), config)


CONFIG = usual(
    PLAIN, vocab_size=256_000, hidden_size=3072, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=16,
    head_dim=256, intermediate_size=24_576, tie_word_embeddings=True, max_position_embeddings=8192,
    pad_token_id=0, bos_token_id=2, eos_token_id=1,
) | {
    "hidden_act": Key("activation", GELU.place, GELU.default, meant),
    "hidden_activation": Key(None, lambda _: None),
}  # fmt: skip

GEMMA = Family(
    gemma,
    {
        "gemma-2b": {"dim": 2048, "depth": 18, "heads": 8, "kv_heads": 1, "hidden": 16_384, "head_dim": None},
        "gemma-7b": {},
    },
    "gemma", CONFIG, {"use_bidirectional_attention": False}, ROWS, kinds("Gemma"),
)  # fmt: skip
