"""The family of eight experts: sizes, published config, names of experts in files, and the balance in the loss."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import oneblock
from oneblock.cost import active
from oneblock.zoo import FAMILIES, named
from oneblock.zoo.config import read_config, write_config
from published import counts, reads_as, same_in_the_reference

PUBLISHED = {
    "mixtral-8x7b": (46_702_792_704, 12_879_925_248),
    "mixtral-8x22b": (140_620_634_112, 39_152_031_744),
}
"""Size -> parameters, and those that one token uses, both embeddings counted."""
CONFIG = {
    "architectures": ["MixtralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
    "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
    "max_position_embeddings": 32768, "model_type": "mixtral", "num_attention_heads": 32, "num_experts_per_tok": 2,
    "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8, "output_router_logits": False,
    "rms_norm_eps": 1e-05, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.02, "sliding_window": None,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "transformers_version": "4.36.0.dev0", "use_cache": True,
    "vocab_size": 32000,
}  # fmt: skip
LARGE = {
    "hidden_size": 6144, "intermediate_size": 16384, "max_position_embeddings": 65536, "num_attention_heads": 48,
    "num_hidden_layers": 56, "router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0,
}  # fmt: skip
TINY = {"dim": 16, "depth": 2, "heads": 4, "kv_heads": 2, "hidden": 24, "vocab": 53, "experts": 4}


@pytest.mark.parametrize(("size", "published"), PUBLISHED.items())
def test_sizes_are_the_published_ones(size: str, published: tuple[int, int]) -> None:
    counts(size, published[0])
    assert active(named(size)) == published[1]


def test_the_reference_counts_the_same() -> None:
    same_in_the_reference("mixtral-8x22b")


def test_published_configs_are_the_named_specs() -> None:
    reads_as(CONFIG, "mixtral-8x7b")
    reads_as(CONFIG | LARGE, "mixtral-8x22b")


def test_noise_on_the_router_is_refused() -> None:
    with pytest.raises(ValueError, match=r"router_jitter_noise: expected 0.0, the only value understood here, got 0.1"):
        read_config(CONFIG | {"router_jitter_noise": 0.1}, FAMILIES)


def test_w1_is_the_gate_w3_goes_up_w2_comes_down(tmp_path: Path) -> None:
    model = oneblock.build(named("mixtral", **TINY))
    oneblock.save(model, tmp_path, format="hf")
    stored = load_file(tmp_path / "model.safetensors")
    experts = model.layers[1].feedforward.experts
    for name, ours in {"w1": experts.gate, "w3": experts.up, "w2": experts.down}.items():
        theirs = stored[f"model.layers.1.block_sparse_moe.experts.3.{name}.weight"]
        assert torch.equal(theirs, ours.weight[3]), name
    assert torch.equal(stored["model.layers.1.block_sparse_moe.gate.weight"], model.layers[1].feedforward.router.weight)


def test_the_balance_counts_in_the_loss_only_where_the_config_asks_for_it() -> None:
    asked = read_config(CONFIG | {"output_router_logits": True}, FAMILIES)[2]
    assert (named("mixtral-8x7b").balance, asked.balance) == (0.0, 0.02)
    assert write_config(asked, FAMILIES, "mixtral")[2]["router_aux_loss_coef"] == 0.02


def test_labels_of_whole_texts_have_no_balance() -> None:
    config = CONFIG | {"output_router_logits": True, "architectures": ["MixtralForSequenceClassification"]}
    assert read_config(config, FAMILIES)[2].balance == 0.0


def test_padding_has_no_part_in_the_balance() -> None:
    model = oneblock.build(named("mixtral", balance=1.0, **TINY))
    ids, mask = torch.randint(0, 53, (2, 7)), torch.ones(2, 7, dtype=torch.long)
    mask[1, 4:] = 0
    other = torch.where(mask == 1, ids, (ids + 11) % 53)
    with torch.no_grad():
        one, two = (model(x, attention_mask=mask, labels=x.masked_fill(mask == 0, -100)) for x in (ids, other))
    assert torch.equal(one.balance, two.balance)
    assert torch.equal(one.loss, two.loss)
