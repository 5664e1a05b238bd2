"""Random configs of the families that followed the usual recipe: windows, experts, other norms and wirings."""

from __future__ import annotations

from typing import Any

from benchmarks.agreement.cases import VOCAB, Draw, case
from benchmarks.agreement.decoders import decoder, rope

FULL, LOCAL = "full_attention", "sliding_attention"
ACTS = ("silu", "gelu", "gelu_new", "relu")


def usual(d: Draw, acts: tuple[str, ...] = ACTS, widths: tuple[int | None, ...] = (4, 6, None)) -> dict[str, Any]:
    """The keys that all of them share; a head's width is left out where it is None."""
    heads, width = d.pick("heads", 4, 4, 2), d.pick("hd", *widths)
    return ({} if width is None else {"head_dim": width}) | {
        "vocab_size": VOCAB, "hidden_size": 16, "intermediate_size": d.pick("wide", 24, 32),
        "num_hidden_layers": d.pick("depth", 2, 3), "num_attention_heads": heads,
        "num_key_value_heads": d.pick("kv", 2, 1), "hidden_act": d.pick("act", *acts),
        "rms_norm_eps": d.pick("eps", 1e-6, 1e-3), "attention_dropout": d.pick("dropout", 0.0, 0.1),
        "tie_word_embeddings": d.pick("tied", False, True), "max_position_embeddings": d.pick("length", 64, 32),
        "rope_parameters": rope(d, width or 16 // heads), "pad_token_id": 0, "bos_token_id": d.pick("bos", 1, None),
        "eos_token_id": d.pick("eos", 2, [2, 3]),
    }  # fmt: skip


def without(config: dict[str, Any], *names: str) -> dict[str, Any]:
    """A config without some keys."""
    return {key: value for key, value in config.items() if key not in names}


@case("mistral", "MistralConfig", decoder("Mistral"))
def mistral(d: Draw) -> dict[str, Any]:
    # With a window of 1 the reference's cache keeps everything: with it and without it, it writes other tokens.
    return usual(d) | {"sliding_window": d.pick("window", 4, None, 2, 64)}


@case("mixtral", "MixtralConfig", decoder("Mixtral"))
def mixtral(d: Draw) -> dict[str, Any]:
    config = usual(d, widths=(4, 6))
    if config["rope_parameters"]["rope_type"] == "default" and config["head_dim"] * config["num_attention_heads"] == 16:
        config = without(config, "head_dim")  # the reference cannot stretch positions where it is left out
    return config | balance(d) | {
        "sliding_window": d.pick("window", None, 4), "num_local_experts": d.pick("experts", 4, 8, 2),
        "num_experts_per_tok": d.pick("active", 2, 1),
    }  # fmt: skip


def balance(d: Draw) -> dict[str, Any]:
    """The keys of the experts' balance loss."""
    coefficient = d.pick("coefficient", 0.02, 0.5, 0.0)
    return {"output_router_logits": d.pick("balance", True, False), "router_aux_loss_coef": coefficient}


def layered(d: Draw, depth: int) -> dict[str, Any]:
    """The keys of a window that some layers have, off unless switched on."""
    on = d.pick("on", True, False)
    listed = d.pick("listed", None, [FULL] * depth, ([LOCAL] + [FULL, LOCAL] * depth)[:depth])
    return {
        "use_sliding_window": on, "sliding_window": d.pick("window", 4, 3, None if not on else 5),
        "max_window_layers": d.pick("from", 1, 0, 28),
        "layer_types": listed if on else d.pick("said", None, [FULL] * depth),
    }  # fmt: skip


@case("qwen2", "Qwen2Config", decoder("Qwen2"))
def qwen2(d: Draw) -> dict[str, Any]:
    config = usual(d)
    return config | layered(d, config["num_hidden_layers"])


@case("qwen3", "Qwen3Config", decoder("Qwen3"))
def qwen3(d: Draw) -> dict[str, Any]:
    config = usual(d, widths=(4, 6))
    return config | layered(d, config["num_hidden_layers"]) | {"attention_bias": d.pick("bias", False, True)}


@case("qwen3_moe", "Qwen3MoeConfig", decoder("Qwen3Moe"))
def qwen3_moe(d: Draw) -> dict[str, Any]:
    listed, step = d.pick("dense", [], [1], None, [0]), d.pick("step", 1, 1, 2)
    config = usual(d) | balance(d)
    sparse = [i for i in range(config["num_hidden_layers"]) if i not in (listed or []) and (i + 1) % step == 0]
    # Without any experts the reference fails over the balance of none.
    return config | {"output_router_logits": config["output_router_logits"] and bool(sparse)} | {
        "attention_bias": d.pick("bias", False, True), "use_sliding_window": d.pick("on", True, False, False),
        "sliding_window": d.pick("window", 4, 3), "moe_intermediate_size": d.pick("narrow", 8, 16),
        "num_experts": d.pick("experts", 8, 4), "num_experts_per_tok": d.pick("active", 2, 3),
        "norm_topk_prob": d.pick("renormalise", True, False, True), "decoder_sparse_step": step,
        "mlp_only_layers": listed,
    }  # fmt: skip


@case("gemma", "GemmaConfig", decoder("Gemma"))
def gemma(d: Draw) -> dict[str, Any]:
    bias = {"attention_bias": d.pick("bias", False, True), "use_bidirectional_attention": d.pick("way", None, False)}
    return usual(d, ("gelu_pytorch_tanh", "gelu", "silu", "relu"), (4, 6)) | bias


@case("gemma2", "Gemma2Config", decoder("Gemma2"))
def gemma2(d: Draw) -> dict[str, Any]:
    config = usual(d, ("gelu_pytorch_tanh", "gelu", "silu", "relu"), (4, 6))
    depth = config["num_hidden_layers"]
    return without(config, "hidden_act") | {
        "attention_bias": d.pick("bias", False, True), "hidden_activation": config["hidden_act"],
        "query_pre_attn_scalar": d.pick("scalar", 4, 6, 9, 16), "sliding_window": d.pick("window", 4, 3),
        "layer_types": d.pick("listed", None, [FULL] * depth, [LOCAL] * depth, ([FULL, LOCAL] * depth)[:depth]),
        "attn_logit_softcapping": d.pick("cap", 5.0, None, 50.0),
        "final_logit_softcapping": d.pick("top", 3.0, 30.0, None),
        "use_bidirectional_attention": d.pick("way", None, False),
    }  # fmt: skip


@case("olmo2", "Olmo2Config", decoder("Olmo2"))
def olmo2(d: Draw) -> dict[str, Any]:
    return usual(d) | {"attention_bias": d.pick("bias", False, True), "num_key_value_heads": d.pick("kv", 2, 1, None)}
