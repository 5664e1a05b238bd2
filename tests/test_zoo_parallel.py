"""Families whose attention and feed-forward stand side by side: sizes, published configs, turned and fused heads."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import oneblock
from oneblock.spec import LayerNorm, Rope, get
from oneblock.zoo import FAMILIES, named
from oneblock.zoo.config import read_config
from published import counts, reads_as, same_in_the_reference

PUBLISHED = {
    "gpt-j-6b": 6_050_882_784, "gpt-neox-20b": 20_554_567_680, "pythia-70m": 70_426_624, "pythia-160m": 162_322_944,
    "pythia-410m": 405_334_016, "pythia-1b": 1_011_781_632, "pythia-1.4b": 1_414_647_808, "pythia-2.8b": 2_775_208_960,
    "pythia-6.9b": 6_857_302_016, "pythia-12b": 11_846_072_320, "phi-1.5": 1_418_270_720, "phi-2": 2_779_683_840,
}  # fmt: skip
J = {
    "activation_function": "gelu_new", "architectures": ["GPTJForCausalLM"], "attn_pdrop": 0.0, "bos_token_id": 50256,
    "embd_pdrop": 0.0, "eos_token_id": 50256, "gradient_checkpointing": False, "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-05, "model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_inner": None, "n_layer": 28,
    "n_positions": 2048, "resid_pdrop": 0.0, "rotary": True, "rotary_dim": 64, "scale_attn_weights": True,
    "summary_activation": None, "summary_first_dropout": 0.1, "summary_proj_to_labels": True,
    "summary_type": "cls_index", "summary_use_proj": True, "tie_word_embeddings": False,
    "tokenizer_class": "GPT2Tokenizer", "transformers_version": "4.18.0.dev0", "use_cache": True, "vocab_size": 50400,
}  # fmt: skip
NEOX = {
    "architectures": ["GPTNeoXForCausalLM"], "attention_probs_dropout_prob": 0, "bos_token_id": 0, "eos_token_id": 0,
    "hidden_act": "gelu_fast", "hidden_dropout_prob": 0, "hidden_size": 6144, "initializer_range": 0.02,
    "intermediate_size": 24576, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048, "model_type": "gpt_neox",
    "num_attention_heads": 64, "num_hidden_layers": 44, "rotary_emb_base": 10000, "rotary_pct": 0.25,
    "tie_word_embeddings": False, "torch_dtype": "float16", "transformers_version": "4.19.0.dev0", "use_cache": True,
    "vocab_size": 50432,
}  # fmt: skip
PYTHIA = {
    "architectures": ["GPTNeoXForCausalLM"], "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "gelu",
    "hidden_size": 5120, "initializer_range": 0.02, "intermediate_size": 20480, "layer_norm_eps": 1e-05,
    "max_position_embeddings": 2048, "model_type": "gpt_neox", "num_attention_heads": 40, "num_hidden_layers": 36,
    "rotary_emb_base": 10000, "rotary_pct": 0.25, "tie_word_embeddings": False, "torch_dtype": "float16",
    "transformers_version": "4.24.0", "use_cache": True, "use_parallel_residual": True, "vocab_size": 50688,
}  # fmt: skip
PHI = {
    "architectures": ["PhiForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 50256, "embd_pdrop": 0.0,
    "eos_token_id": 50256, "hidden_act": "gelu_new", "hidden_size": 2560, "initializer_range": 0.02,
    "intermediate_size": 10240, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048, "model_type": "phi",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "partial_rotary_factor": 0.4,
    "qk_layernorm": False, "resid_pdrop": 0.1, "rope_scaling": None, "rope_theta": 10000.0,
    "tie_word_embeddings": False, "torch_dtype": "float16", "transformers_version": "4.37.0", "use_cache": True,
    "vocab_size": 51200,
}  # fmt: skip
TINY = {"dim": 32, "depth": 2, "heads": 2, "hidden": 48, "vocab": 53}


@pytest.mark.parametrize(("size", "published"), PUBLISHED.items())
def test_sizes_are_the_published_ones(size: str, published: int) -> None:
    counts(size, published)


@pytest.mark.parametrize("size", ["gpt-j-6b", "pythia-70m", "phi-2"])
def test_the_reference_counts_the_same(size: str) -> None:
    same_in_the_reference(size)


def test_published_configs_are_the_named_specs() -> None:
    reads_as(J, "gpt-j-6b")
    reads_as(NEOX, "gpt-neox-20b")
    reads_as(PYTHIA, "pythia-12b")
    reads_as(PHI, "phi-2")
    small = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24, "partial_rotary_factor": 0.5}
    reads_as(PHI | small | {"bos_token_id": None, "eos_token_id": None, "resid_pdrop": 0.0}, "phi-1.5")


def test_a_quarter_of_each_head_is_turned_where_a_file_says_nothing() -> None:
    silent = {key: value for key, value in PYTHIA.items() if not key.startswith("rotary")}
    assert read_config(silent, FAMILIES)[2] == named("pythia-12b")
    whole = read_config(PYTHIA | {"rotary_pct": 1.0}, FAMILIES)[2]
    assert get(whole, "layers.0.attention.position") == Rope()
    today = {"rope_parameters": {"rope_theta": 500.0, "rope_type": "default", "partial_rotary_factor": 0.5}}
    assert get(read_config(silent | today, FAMILIES)[2], "layers.0.attention.position") == Rope(500.0, 0.5)


@pytest.mark.parametrize(
    ("config", "wrong", "said"),
    [
        (J, {"rotary_dim": None}, "rotary_dim: expected an even number"),
        (J, {"rotary_dim": 7}, "rotary_dim: expected an even number"),
        (J, {"rotary": False}, "rotary: expected True"),
        (J, {"scale_attn_weights": False}, "scale_attn_weights: expected True"),
        (NEOX, {"hidden_dropout_prob": 0.1}, "hidden_dropout_prob: expected 0"),
        (NEOX, {"rotary_pct": 0.265}, "partial_rotary_factor: 0.265 of 96 features is odd"),
        (PHI, {"partial_rotary_factor": 0.42}, "partial_rotary_factor: 0.42 of 80 features is odd"),
    ],
)
def test_what_cannot_be_meant_is_refused(config: dict[str, object], wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_config(config | wrong, FAMILIES)


def test_gptj_turns_neighbours_and_has_a_bias_only_where_the_authors_do() -> None:
    spec = named("gpt-j-6b")
    assert get(spec, "layers.0.attention.position") == Rope(fraction=0.25, layout="interleaved")
    names = set(oneblock.build(named("gptj", rotary=4, **TINY)).state_dict())
    assert {"head.out.bias", "layers.0.feedforward.up.bias"} <= names
    assert not {name for name in names if "attention." in name and name.endswith("bias")}


def test_neox_holds_queries_keys_and_values_head_by_head(tmp_path: Path) -> None:
    model = oneblock.build(named("neox", **TINY))
    oneblock.save(model, tmp_path, format="hf", family="neox")
    theirs = load_file(tmp_path / "model.safetensors")
    fused = theirs["gpt_neox.layers.1.attention.query_key_value.weight"].view(2, 3, 16, 32)
    for i, name in enumerate("qkv"):
        own = getattr(model.layers[1].attention, name).weight
        assert torch.equal(fused[:, i].flatten(0, 1), own)
    assert torch.equal(theirs["embed_out.weight"], model.head.out.weight)


def test_neox_heads_under_their_later_name_are_read(tmp_path: Path) -> None:
    model = oneblock.build(named("neox", **TINY))
    oneblock.save(model, tmp_path, format="hf", family="neox")
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["lm_head.weight"] = tensors.pop("embed_out.weight")
    masks = {
        f"gpt_neox.layers.{i}.attention.{name}": torch.ones(1) for i in range(2) for name in ("bias", "masked_bias")
    }
    angles = {"gpt_neox.layers.0.attention.rotary_emb.inv_freq": torch.ones(2)}
    save_file(tensors | masks | angles, tmp_path / "model.safetensors")
    assert torch.equal(oneblock.load(tmp_path).head.out.weight, model.head.out.weight)


def test_neox_sublayers_may_also_follow_each_other() -> None:
    serial, parallel = named("neox", parallel=False, **TINY), named("neox", **TINY)
    assert (serial.layers[0].wiring, parallel.layers[0].wiring) == ("pre", "parallel")
    one, two = oneblock.build(serial), oneblock.build(parallel)
    two.load_state_dict(one.state_dict())
    ids = torch.arange(6)[None]
    with torch.no_grad():
        assert not torch.allclose(one(ids).logits, two(ids).logits)


def test_phi_has_every_bias_and_may_norm_queries_and_keys() -> None:
    model = oneblock.build(named("phi", qk_norm=True, **TINY))
    names = set(model.state_dict())
    assert {name.replace(".weight", ".bias") for name in names if "embedding" not in name} <= names
    assert get(model.spec, "layers.0.attention.qk_norm") == LayerNorm(1e-5)
    assert model.layers[0].attention.q_norm.weight.shape == (16,)
