"""Many small experts per layer, of which each token uses a few."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from oneblock.spec import FeedForward, Model, MoE, Softmax
from oneblock.zoo.family import Config, Experts, Family, Key, Rows
from oneblock.zoo.hub import activation
from oneblock.zoo.like import changed, like, usual
from oneblock.zoo.llama import kinds
from oneblock.zoo.mixtral import BALANCE
from oneblock.zoo.qwen3 import PLAIN, qwen3
from oneblock.zoo.qwen3 import ROWS as QWEN3_ROWS
from oneblock.zoo.windows import behind, windows


@like(qwen3, dim=2048, depth=48, kv_heads=4, hidden=6144, head_dim=128)
def qwen3_moe(
    spec: Model,
    experts: int = 128,
    active: int = 8,
    narrow: int = 768,
    renormalise: bool = True,
    dense: tuple[int, ...] = (),
    window: int | None = None,
    balance: float = 0.0,
) -> Model:
    """Yang et al. 2025 (arXiv:2505.09388): experts of `narrow` hidden features in all layers but the `dense` ones."""
    one: Any = spec.layers[0]
    mixture = MoE(replace(one.feedforward, hidden=narrow), experts, active, Softmax(renormalise))
    many = replace(one, feedforward=mixture)
    layers = tuple(one if i in dense else many for i in range(len(spec.layers)))
    made: Model = changed(replace(spec, layers=layers, balance=balance), {"layers.*.attention.mask": behind(window)})
    return made


def first(spec: Model, instead: FeedForward | MoE) -> Any:
    """The first feed-forward of a kind in a spec; `instead` where there is none and a file's word has no effect."""
    layers = (block.feedforward for block in spec.layers)
    return next((one for one in layers if isinstance(one, type(instead))), instead)


def mixture(spec: Model) -> Any:
    """The experts of a spec."""
    return first(spec, MoE(FeedForward(768), 128, 8))


def without_experts(value: Any, config: Config) -> tuple[int, ...]:
    """The layers with one feed-forward for all tokens: those listed, and those between every so many."""
    layers, step = range(config["num_hidden_layers"]), config["decoder_sparse_step"]
    return tuple(i for i in layers if i in (value or ()) or (i + 1) % step)


def counted(value: Any, config: Config) -> Any:
    """The number of experts, which newer files call otherwise."""
    return config["num_local_experts"] or value


def switched_on(value: Any, config: Config) -> Any:
    """The window, where it is wanted."""
    return value if config["use_sliding_window"] else None


def listed(spec: Model) -> list[int]:
    """The numbers of the layers without experts."""
    return [i for i, block in enumerate(spec.layers) if not isinstance(block.feedforward, MoE)]


def act(spec: Model) -> Any:
    """The activation of the first layer, with experts or without."""
    ffn = spec.layers[0].feedforward
    return (ffn.expert if isinstance(ffn, MoE) else ffn).activation  # type: ignore[union-attr]


CONFIG = usual(
    PLAIN, vocab_size=151_936, hidden_size=2048, num_hidden_layers=24, num_key_value_heads=4,
    max_position_embeddings=32_768, bos_token_id=None, eos_token_id=None,
) | BALANCE | {
    "hidden_act": activation(act, "silu"),
    "intermediate_size": Key("hidden", lambda spec: first(spec, FeedForward(6144)).hidden, 6144),
    "moe_intermediate_size": Key("narrow", lambda spec: mixture(spec).expert.hidden, 768),
    "num_experts": Key("experts", lambda spec: mixture(spec).experts, 128, counted),
    "num_local_experts": Key(None, lambda _: None),
    "num_experts_per_tok": Key("active", lambda spec: mixture(spec).active, 8),
    "norm_topk_prob": Key("renormalise", lambda spec: mixture(spec).router.renormalise, False),
    "mlp_only_layers": Key("dense", listed, [], without_experts),
    "decoder_sparse_step": Key(None, lambda _: 1, 1),
    "sliding_window": Key("window", lambda spec: windows(spec)[0], 4096, switched_on),
    "use_sliding_window": Key(None, lambda spec: any(windows(spec)), False),
    "max_window_layers": Key(None, lambda _: None),
}  # fmt: skip

ROWS: Rows = {
    **QWEN3_ROWS,
    "layers.*.feedforward.router": "layers.*.mlp.gate",
    "layers.*.feedforward.experts.{gate,up,down}": Experts("layers.*.mlp.experts.*.{gate,up,down}_proj"),
}

QWEN3_MOE = Family(
    qwen3_moe,
    {
        "qwen3-30b-a3b": {},
        "qwen3-235b-a22b": {"dim": 4096, "depth": 94, "heads": 64, "hidden": 12_288, "narrow": 1536},
    },
    "qwen3_moe", CONFIG, {}, ROWS, kinds("Qwen3Moe"),
)  # fmt: skip
