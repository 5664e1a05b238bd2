"""The families with norms on queries and keys, dense and of many experts: sizes, published configs, traps."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import oneblock
from oneblock.cost import active
from oneblock.spec import MoE, Softmax
from oneblock.weights import empty
from oneblock.zoo import FAMILIES, named
from oneblock.zoo.config import read_config, write_config
from published import counts, reads_as, same_in_the_reference

PUBLISHED = {
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
}
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 151643,
    "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120, "initializer_range": 0.02,
    "intermediate_size": 25600, "max_position_embeddings": 40960, "max_window_layers": 64, "model_type": "qwen3",
    "num_attention_heads": 64, "num_hidden_layers": 64, "num_key_value_heads": 8, "rms_norm_eps": 1e-06,
    "rope_scaling": None, "rope_theta": 1000000, "sliding_window": None, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_cache": True, "use_sliding_window": False,
    "vocab_size": 151936,
}  # fmt: skip
MANY = {
    "architectures": ["Qwen3MoeForCausalLM"], "decoder_sparse_step": 1, "hidden_size": 2048, "intermediate_size": 6144,
    "max_window_layers": 48, "mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 768,
    "norm_topk_prob": True, "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8,
    "num_hidden_layers": 48, "num_key_value_heads": 4, "output_router_logits": False, "router_aux_loss_coef": 0.001,
}  # fmt: skip
TINY = {
    "dim": 16, "depth": 3, "heads": 4, "kv_heads": 2, "head_dim": 6, "hidden": 24, "vocab": 53, "experts": 4,
    "active": 2, "narrow": 8,
}  # fmt: skip


@pytest.mark.parametrize(("size", "published"), PUBLISHED.items())
def test_sizes_are_the_published_ones(size: str, published: int) -> None:
    counts(size, published)


@pytest.mark.parametrize("size", ["qwen3-0.6b", "qwen3-32b", "qwen3-30b-a3b"])
def test_the_reference_counts_the_same(size: str) -> None:
    same_in_the_reference(size)


def test_one_token_uses_a_tenth_of_it() -> None:
    assert active(named("qwen3-30b-a3b")) == 3_353_032_704


def test_published_configs_are_the_named_specs() -> None:
    reads_as(CONFIG, "qwen3-32b")
    reads_as(CONFIG | MANY, "qwen3-30b-a3b")


def test_heads_are_wider_than_their_share_and_each_is_normed() -> None:
    attention = empty(named("qwen3-4b", depth=1)).layers[0].attention
    assert tuple(attention.q.weight.shape) == (32 * 128, 2560)
    assert tuple(attention.q_norm.weight.shape) == tuple(attention.k_norm.weight.shape) == (128,)


def test_layers_without_experts_are_those_listed_and_those_between() -> None:
    def sparse(**keys: object) -> list[bool]:
        spec = read_config(CONFIG | MANY | {"num_hidden_layers": 4} | keys, FAMILIES)[2]
        return [isinstance(block.feedforward, MoE) for block in spec.layers]

    assert sparse() == [True] * 4
    assert sparse(mlp_only_layers=[0]) == [False, True, True, True]
    assert sparse(decoder_sparse_step=2) == [False, True, False, True]
    assert sparse(decoder_sparse_step=2, mlp_only_layers=[1]) == [False, False, False, True]


def test_weights_of_experts_sum_to_one_only_where_the_config_says_so() -> None:
    spec = read_config(CONFIG | {key: value for key, value in MANY.items() if key != "norm_topk_prob"}, FAMILIES)[2]
    assert spec.layers[0].feedforward.router == Softmax(renormalise=False)
    assert named("qwen3-30b-a3b").layers[0].feedforward.router == Softmax(renormalise=True)


def test_the_number_of_experts_is_read_in_both_spellings() -> None:
    newer = {key: value for key, value in MANY.items() if key != "num_experts"} | {"num_local_experts": 128}
    reads_as(CONFIG | newer, "qwen3-30b-a3b")


def test_dense_layers_and_experts_have_their_names_in_files(tmp_path: Path) -> None:
    model = oneblock.build(named("qwen3_moe", dense=(1,), **TINY))
    oneblock.save(model, tmp_path, format="hf")
    stored = load_file(tmp_path / "model.safetensors")
    for name in ("gate", "up", "down"):
        ours = getattr(model.layers[0].feedforward.experts, name).weight
        assert torch.equal(stored[f"model.layers.0.mlp.experts.2.{name}_proj.weight"], ours[2])
        dense = getattr(model.layers[1].feedforward, name).weight
        assert torch.equal(stored[f"model.layers.1.mlp.{name}_proj.weight"], dense)
    assert stored["model.layers.0.mlp.gate.weight"].shape == (4, 16)


def test_a_model_without_a_single_expert_is_written_too() -> None:
    spec = named("qwen3_moe", dense=(0, 1, 2), **TINY)
    config = write_config(spec, FAMILIES, "qwen3_moe")[2]
    assert config["mlp_only_layers"] == [0, 1, 2]
    assert config["intermediate_size"] == 24
