"""Fused matrices, a window, and long texts turned by factors of their own: sizes and published configs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import oneblock
from oneblock.spec import Causal, LongRope, Rope, Window, get
from oneblock.zoo import FAMILIES, named
from oneblock.zoo.config import read_config
from published import counts, reads_as, same_in_the_reference

PUBLISHED = {"phi-3-mini-4k": 3_821_079_552, "phi-3-medium-4k": 13_960_238_080, "phi-4": 14_659_507_200}
CONFIG = {
    "architectures": ["Phi3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
    "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"}, "bos_token_id": 1, "embd_pdrop": 0.0,
    "eos_token_id": 32000, "hidden_act": "silu", "hidden_size": 3072, "initializer_range": 0.02,
    "intermediate_size": 8192, "max_position_embeddings": 4096, "model_type": "phi3", "num_attention_heads": 32,
    "num_hidden_layers": 32, "num_key_value_heads": 32, "original_max_position_embeddings": 4096,
    "pad_token_id": 32000, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 10000.0,
    "sliding_window": 2047, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "transformers_version": "4.40.2", "use_cache": True, "vocab_size": 32064,
}  # fmt: skip
MEDIUM = {
    "hidden_size": 5120, "intermediate_size": 17920, "num_attention_heads": 40, "num_hidden_layers": 40,
    "num_key_value_heads": 10,
}  # fmt: skip
TINY = {"dim": 32, "depth": 2, "heads": 4, "kv_heads": 2, "hidden": 48, "vocab": 53}


@pytest.mark.parametrize(("size", "published"), PUBLISHED.items())
def test_sizes_are_the_published_ones(size: str, published: int) -> None:
    counts(size, published)


def test_the_reference_counts_the_same() -> None:
    same_in_the_reference("phi-3-mini-4k")


def test_published_configs_are_the_named_specs() -> None:
    reads_as(CONFIG, "phi-3-mini-4k")
    reads_as(CONFIG | MEDIUM, "phi-3-medium-4k")
    fourth = {
        "bos_token_id": 100257, "eos_token_id": 100265, "pad_token_id": 100349, "max_position_embeddings": 16384,
        "original_max_position_embeddings": 16384, "rope_theta": 250000, "sliding_window": None, "vocab_size": 100352,
    }  # fmt: skip
    reads_as(CONFIG | MEDIUM | fourth, "phi-4")


def test_the_window_counts_the_token_itself() -> None:
    assert named("phi-3-mini-4k").layers[0].attention.mask == Causal() & Window(2047)


def test_fused_matrices_are_cut_by_the_widths_of_grouped_heads(tmp_path: Path) -> None:
    model = oneblock.build(named("phi3", **TINY))
    oneblock.save(model, tmp_path, format="hf", family="phi3")
    theirs = load_file(tmp_path / "model.safetensors")
    fused, both = (theirs[f"model.layers.1.{name}.weight"] for name in ("self_attn.qkv_proj", "mlp.gate_up_proj"))
    attention, wide = model.layers[1].attention, model.layers[1].feedforward
    assert torch.equal(fused, torch.cat([attention.q.weight, attention.k.weight, attention.v.weight]))
    assert torch.equal(both, torch.cat([wide.gate.weight, wide.up.weight]))


@pytest.mark.parametrize("word", ["su", "longrope"])
@pytest.mark.parametrize("place", ["rope_scaling", "rope_parameters"])
def test_long_texts_in_old_and_new_spelling(word: str, place: str) -> None:
    lists = {"short_factor": [1.0] * 48, "long_factor": [1.5] * 48}
    said = {key: value for key, value in CONFIG.items() if key != "rope_scaling"} | {"max_position_embeddings": 131072}
    spec = read_config(said | {place: lists | {"type": word, "rope_type": word}}, FAMILIES)[2]
    position = get(spec, "layers.0.attention.position")
    assert position.scaling == LongRope((1.0,) * 48, (1.5,) * 48, 4096, pytest.approx(1.190238))
    again = FAMILIES["phi3"].config["rope_parameters"].written(spec)
    assert read_config(said | {"rope_parameters": again}, FAMILIES)[2] == spec


def test_three_quarters_of_each_head_may_be_turned() -> None:
    spec = read_config(CONFIG | {"partial_rotary_factor": 0.75}, FAMILIES)[2]
    assert get(spec, "layers.0.attention.position") == Rope(fraction=0.75)


def test_how_far_a_text_reaches_is_asked_of_each_text_not_of_its_batch() -> None:
    """A short text beside a long one has the same logits as alone; the reference library turns both as long ones."""
    scaling = LongRope((1.0,) * 4, (3.0, 2.0, 5.0, 4.0), 6, 1.2)
    model = oneblock.build(named("phi3", position=Rope(scaling=scaling), **TINY)).eval()
    ids = torch.randint(0, 53, (2, 9))
    mask = torch.ones(2, 9, dtype=torch.long)
    mask[1, 4:] = 0
    with torch.no_grad():
        together, alone = model(ids, mask).logits[1, :4], model(ids[1:, :4]).logits[0]
    torch.testing.assert_close(together, alone, atol=1e-6, rtol=0)
