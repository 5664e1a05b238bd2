"""Random configs of decoder-only families before and beside the usual recipe: learned positions, parallel sublayers."""

from __future__ import annotations

from typing import Any

from benchmarks.agreement.cases import VOCAB, Draw, case
from benchmarks.agreement.decoders import decoder, rope

DROPOUT = (0.0, 0.1, 0.25)


def old(d: Draw) -> dict[str, Any]:
    """The keys that the two oldest families share."""
    return {
        "vocab_size": VOCAB, "n_embd": 16, "n_layer": d.pick("depth", 2, 3), "n_positions": d.pick("length", 64, 48),
        "n_inner": d.pick("inner", None, 24), "activation_function": d.pick("act", "gelu_new", "gelu", "relu", "silu"),
        "layer_norm_epsilon": d.pick("eps", 1e-5, 1e-3), "resid_pdrop": d.pick("drop", *DROPOUT),
        "attn_pdrop": d.pick("attention", *DROPOUT), "embd_pdrop": d.pick("embedding", *DROPOUT),
        "tie_word_embeddings": d.pick("tied", True, True, False), "pad_token_id": 0,
        "bos_token_id": d.pick("bos", 1, None), "eos_token_id": d.pick("eos", 2, [2, 3]),
        "summary_type": d.pick("summary", "cls_index", "mean"),
    }  # fmt: skip


GPT2 = {"GPT2LMHeadModel": "causal", "GPT2ForSequenceClassification": "classify", "GPT2Model": "base"}


@case("gpt2", "GPT2Config", GPT2)
def gpt2(d: Draw) -> dict[str, Any]:
    return old(d) | {
        "n_head": d.pick("heads", 4, 2, 16), "scale_attn_weights": d.pick("scaled", True, False),
        "scale_attn_by_inverse_layer_idx": d.pick("falling", False, False, True),
        "reorder_and_upcast_attn": d.pick("upcast", False, True, False, False, False),
    }  # fmt: skip


@case("gptj", "GPTJConfig", decoder("GPTJ"))
def gptj(d: Draw) -> dict[str, Any]:
    return old(d) | {"n_head": d.pick("heads", 4, 2), "rotary_dim": d.pick("rotary", 2, 4)}


@case("neox", "GPTNeoXConfig", decoder("GPTNeoX"))
def neox(d: Draw) -> dict[str, Any]:
    heads, share = d.pick("heads", 2, 4, 1), d.pick("share", 0.5, 1.0, 0.25, 0.5, 1.0)
    return {
        "vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": d.pick("wide", 128, 24),
        "num_hidden_layers": d.pick("depth", 2, 3), "num_attention_heads": heads,
        "hidden_act": d.pick("act", "gelu", "gelu_fast", "relu", "gelu_new"),
        "layer_norm_eps": d.pick("eps", 1e-5, 1e-3), "attention_bias": d.pick("bias", True, False),
        "use_parallel_residual": d.pick("parallel", True, True, False),
        "hidden_dropout": d.pick("drop", *DROPOUT), "attention_dropout": d.pick("attention", *DROPOUT),
        "classifier_dropout": d.pick("classifier", 0.1, 0.0), "tie_word_embeddings": d.pick("tied", False, True),
        "max_position_embeddings": 64, "pad_token_id": 0, "eos_token_id": d.pick("eos", 2, [2, 3]),
        "bos_token_id": d.pick("bos", 0, None),
        "rope_parameters": turned(d, int(32 // heads * share)) | {"partial_rotary_factor": share},
    }  # fmt: skip


@case("phi", "PhiConfig", decoder("Phi"))
def phi(d: Draw) -> dict[str, Any]:
    heads, share = d.pick("heads", 2, 4), d.pick("share", 0.5, 1.0, 0.75)
    return {
        "vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": d.pick("wide", 128, 24),
        "num_hidden_layers": d.pick("depth", 2, 3), "num_attention_heads": heads,
        "num_key_value_heads": d.pick("kv", None, 1, 2), "hidden_act": d.pick("act", "gelu_new", "gelu", "relu"),
        "layer_norm_eps": d.pick("eps", 1e-5, 1e-3), "qk_layernorm": d.pick("qk", False, True),
        "resid_pdrop": d.pick("drop", *DROPOUT), "embd_pdrop": d.pick("embedding", *DROPOUT),
        "attention_dropout": d.pick("attention", *DROPOUT), "tie_word_embeddings": d.pick("tied", False, True),
        "max_position_embeddings": 64, "pad_token_id": 0, "eos_token_id": d.pick("eos", 2, [2, 3]),
        "bos_token_id": d.pick("bos", 1, None),
        "rope_parameters": turned(d, int(32 // heads * share)) | {"partial_rotary_factor": share},
    }  # fmt: skip


@case("phi3", "Phi3Config", decoder("Phi3"))
def phi3(d: Draw) -> dict[str, Any]:
    heads, share = d.pick("heads", 2, 4), d.pick("share", 1.0, 0.5)
    trained = d.pick("trained", 4, 64)
    long = d.pick("long", False, True, True)
    factors = [1.0 + 0.1 * i for i in range(int(16 // heads * share) // 2)]
    lists = {"short_factor": factors, "long_factor": [2 * x for x in factors]} if long else {}
    size = {"attention_factor": 1.3} if long and d.pick("size", False, True) else {}
    return {
        "vocab_size": VOCAB, "hidden_size": 16, "intermediate_size": d.pick("wide", 64, 24),
        "num_hidden_layers": d.pick("depth", 2, 3), "num_attention_heads": heads,
        "num_key_value_heads": d.pick("kv", None, 1, 2), "hidden_act": d.pick("act", "silu", "gelu", "gelu_new"),
        "rms_norm_eps": d.pick("eps", 1e-5, 1e-3), "sliding_window": d.pick("window", None, 3, 7),
        "resid_pdrop": d.pick("drop", *DROPOUT), "attention_dropout": d.pick("attention", *DROPOUT),
        "tie_word_embeddings": d.pick("tied", False, True), "max_position_embeddings": 64,
        "original_max_position_embeddings": trained, "pad_token_id": 0, "eos_token_id": d.pick("eos", 2, [2, 3]),
        "bos_token_id": d.pick("bos", 1, None),
        "rope_parameters": {"rope_type": "longrope" if long else "default", "rope_theta": d.pick("theta", 1e4, 25e4)}
        | {"partial_rotary_factor": share} | lists | size,
    }  # fmt: skip


def turned(d: Draw, features: int) -> dict[str, Any]:
    """A rotary position of each kind; texts of one batch are all within the trained length or all beyond it.

    The reference asks how long the longest text of a batch is, ours how long each text is.
    """
    said = rope(d, features)
    return said | ({"original_max_position_embeddings": d.pick("trained", 4, 64)} if "short_factor" in said else {})
