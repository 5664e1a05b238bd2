"""The family whose norms stand behind the sublayers: sizes, published config, and the width of its norms."""

from __future__ import annotations

import pytest

from oneblock.weights import empty
from oneblock.zoo import named
from published import counts, reads_as, same_in_the_reference

PUBLISHED = {
    "olmo2-1b": 1_484_916_736,
    "olmo2-7b": 7_298_617_344,
    "olmo2-13b": 13_716_198_400,
    "olmo2-32b": 32_234_279_936,
}
CONFIG = {
    "architectures": ["Olmo2ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "eos_token_id": 100257,
    "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 11008,
    "max_position_embeddings": 4096, "model_type": "olmo2", "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 32, "pad_token_id": 100277, "rms_norm_eps": 1e-06, "rope_scaling": None,
    "rope_theta": 500000, "tie_word_embeddings": False, "torch_dtype": "float32", "transformers_version": "4.47.0.dev0",
    "use_cache": False, "vocab_size": 100352,
}  # fmt: skip


@pytest.mark.parametrize(("size", "published"), PUBLISHED.items())
def test_sizes_are_the_published_ones(size: str, published: int) -> None:
    counts(size, published)


@pytest.mark.parametrize("size", ["olmo2-1b", "olmo2-32b"])
def test_the_reference_counts_the_same(size: str) -> None:
    same_in_the_reference(size)


def test_published_configs_are_the_named_specs() -> None:
    reads_as(CONFIG, "olmo2-7b")
    more = {"hidden_size": 5120, "intermediate_size": 13824, "num_attention_heads": 40, "num_hidden_layers": 40}
    reads_as(CONFIG | more | {"num_key_value_heads": 40}, "olmo2-13b")


def test_nothing_is_normed_before_a_sublayer() -> None:
    assert sorted(empty(named("olmo2", depth=1)).layers[0].norms) == ["attention_branch", "feedforward_branch"]


def test_queries_and_keys_are_normed_over_all_heads() -> None:
    attention = empty(named("olmo2-32b", depth=1)).layers[0].attention
    assert tuple(attention.q_norm.norm.weight.shape) == (40 * 128,)
    assert tuple(attention.k_norm.norm.weight.shape) == (8 * 128,)
