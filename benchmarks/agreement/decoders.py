"""Random configs of decoder-only families."""

from __future__ import annotations

from typing import Any

from benchmarks.agreement.cases import VOCAB, Draw, case

DECODER = ("ForCausalLM", "ForSequenceClassification", "Model")
KINDS = dict(zip(DECODER, ("causal", "classify", "base"), strict=True))


def decoder(name: str) -> dict[str, Any]:
    """The classes of a decoder-only family."""
    return {f"{name}{ending}": kind for ending, kind in KINDS.items()}


def rope(d: Draw, features: int = 4) -> dict[str, Any]:
    """A rotary position of each kind; `features` are turned."""
    short = [1.0 + 0.1 * i for i in range(features // 2)]
    kinds: dict[str, dict[str, Any]] = {
        "default": {},
        "linear": {"factor": 4.0},
        "dynamic": {"factor": 2.0},
        "llama3": {
            "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16,
        },
        "yarn": {"factor": 4.0, "original_max_position_embeddings": 16},
        "longrope": {
            "factor": 4.0, "short_factor": short, "long_factor": [2 * x for x in short],
            # The reference chooses the factors by the longest text of a batch, we by each text: here all are longer.
            "original_max_position_embeddings": 5,
        },
    }  # fmt: skip
    name = d.pick("rope", *kinds)
    return {"rope_type": name, "rope_theta": d.pick("theta", 10_000.0, 500_000.0)} | kinds[name]


@case("llama", "LlamaConfig", decoder("Llama"))
def llama(d: Draw) -> dict[str, Any]:
    return {
        "vocab_size": VOCAB, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": d.pick("kv", 4, 2, 1), "head_dim": d.pick("hd", 4, 6),
        "hidden_act": d.pick("act", "silu", "gelu", "gelu_new", "relu"), "rms_norm_eps": d.pick("eps", 1e-6, 1e-3),
        "attention_bias": d.pick("bias", False, True), "mlp_bias": d.pick("wide", True, False),
        "tie_word_embeddings": d.pick("tied", False, True), "max_position_embeddings": 64,
        "rope_parameters": rope(d, d.pick("hd", 4, 6)), "pad_token_id": 0,
        "eos_token_id": d.pick("eos", 2, [2, 3]), "attention_dropout": d.pick("dropout", 0.0, 0.1),
    }  # fmt: skip
