"""Many feed-forwards in each layer, of which every token uses two: more to know for the same work."""

from __future__ import annotations

from typing import Any

from oneblock.spec import Model, MoE, Rope
from oneblock.zoo.family import Config, Experts, Family, Key, Rows
from oneblock.zoo.hub import activation, rope
from oneblock.zoo.like import changed, like, usual
from oneblock.zoo.llama import ROWS as LLAMA_ROWS
from oneblock.zoo.llama import kinds
from oneblock.zoo.mistral import MISTRAL, mistral
from oneblock.zoo.windows import one_window


@like(mistral, window=None, position=Rope(1_000_000.0))
def mixtral(spec: Model, experts: int = 8, active: int = 2, balance: float = 0.0) -> Model:
    """Jiang et al. 2024 (arXiv:2401.04088): `experts` feed-forwards per layer, the `active` best weighted to sum to 1.

    `balance` weighs the experts' balance loss. The optional noise on the router's input in training is not there.
    """
    mixture = MoE(spec.layers[0].feedforward, experts, active)  # type: ignore[arg-type]
    made: Model = changed(spec, {"layers.*.feedforward": mixture, "balance": balance})
    return made


def weight(value: Any, config: Config) -> Any:
    """The balance loss counts only where the routers' scores are asked for."""
    return value if config["output_router_logits"] else 0.0


BALANCE = {
    "router_aux_loss_coef": Key("balance", lambda spec: spec.balance or 0.001, 0.001, weight),
    "output_router_logits": Key(None, lambda spec: spec.balance > 0, False),
}

CONFIG = usual(MISTRAL.config, rms_norm_eps=1e-5) | rope(1_000_000.0) | one_window(None) | BALANCE | {
    "intermediate_size": Key("hidden", "layers.0.feedforward.expert.hidden", 14_336),
    "hidden_act": activation("layers.0.feedforward.expert.activation", "silu"),
    "num_local_experts": Key("experts", "layers.0.feedforward.experts", 8),
    "num_experts_per_tok": Key("active", "layers.0.feedforward.active", 2),
}  # fmt: skip

ROWS: Rows = dict(LLAMA_ROWS) | {
    "layers.*.feedforward.router": "layers.*.block_sparse_moe.gate",
    "layers.*.feedforward.experts.{gate,up,down}": Experts("layers.*.block_sparse_moe.experts.*.{w1,w3,w2}"),
}

MIXTRAL = Family(
    mixtral,
    {
        "mixtral-8x7b": {},
        "mixtral-8x22b": {"dim": 6144, "depth": 56, "heads": 48, "hidden": 16_384, "length": 65_536},
    },
    "mixtral", CONFIG, {"router_jitter_noise": 0.0}, ROWS, kinds("Mixtral"),
)  # fmt: skip
