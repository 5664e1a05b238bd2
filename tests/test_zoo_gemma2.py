"""The family with norms on both sides, caps, and windows by turns: sizes, published configs, traps."""

from __future__ import annotations

import pytest

from oneblock.cost import cache_bytes
from oneblock.spec import Classify, Head, scale
from oneblock.weights import empty
from oneblock.zoo import FAMILIES, named
from oneblock.zoo.config import read_config, write_config
from oneblock.zoo.windows import windows
from published import counts, reads_as, same_in_the_reference

PUBLISHED = {"gemma2-2b": 2_614_341_888, "gemma2-9b": 9_241_705_984, "gemma2-27b": 27_227_128_320}
CONFIG = {
    "architectures": ["Gemma2ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
    "attn_logit_softcapping": 50.0, "bos_token_id": 2, "cache_implementation": "hybrid", "eos_token_id": 1,
    "final_logit_softcapping": 30.0, "head_dim": 256, "hidden_act": "gelu_pytorch_tanh",
    "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 2304, "initializer_range": 0.02,
    "intermediate_size": 9216, "max_position_embeddings": 8192, "model_type": "gemma2", "num_attention_heads": 8,
    "num_hidden_layers": 26, "num_key_value_heads": 4, "pad_token_id": 0, "query_pre_attn_scalar": 256,
    "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "sliding_window": 4096, "torch_dtype": "float32",
    "transformers_version": "4.42.4", "use_cache": True, "vocab_size": 256000,
}  # fmt: skip
MIDDLE = {
    "hidden_size": 3584, "intermediate_size": 14336, "num_attention_heads": 16, "num_hidden_layers": 42,
    "num_key_value_heads": 8, "sliding_window_size": 4096,
}  # fmt: skip
LARGE = {
    "head_dim": 128, "hidden_size": 4608, "intermediate_size": 36864, "num_attention_heads": 32,
    "num_hidden_layers": 46, "num_key_value_heads": 16, "query_pre_attn_scalar": 144, "_attn_implementation": "eager",
}  # fmt: skip


@pytest.mark.parametrize(("size", "published"), PUBLISHED.items())
def test_sizes_are_the_published_ones(size: str, published: int) -> None:
    counts(size, published)


@pytest.mark.parametrize("size", PUBLISHED)
def test_the_reference_counts_the_same(size: str) -> None:
    same_in_the_reference(size)


def test_published_configs_are_the_named_specs() -> None:
    reads_as(CONFIG, "gemma2-2b")
    reads_as(CONFIG | MIDDLE, "gemma2-9b")
    reads_as(CONFIG | LARGE, "gemma2-27b")


def test_the_largest_divides_scores_by_12_not_by_the_root_of_its_heads() -> None:
    attention = named("gemma2-27b").layers[0].attention
    assert (attention.head_dim, scale(attention, 4608)) == (128, pytest.approx(1 / 12))
    assert named("gemma2-9b").layers[0].attention.scale is None
    assert write_config(named("gemma2-27b"), FAMILIES)[2]["query_pre_attn_scalar"] == 144


def test_every_other_layer_sees_all_beginning_with_one_that_does_not() -> None:
    assert windows(named("gemma2-2b"))[:4] == (4096, None, 4096, None)
    with_cache = cache_bytes(named("gemma2-2b"))
    assert with_cache.at(8192) - with_cache.at(4096) == 4096 * with_cache.per_token // 2


def test_each_sublayer_has_a_norm_before_and_a_norm_behind_it() -> None:
    norms = empty(named("gemma2", depth=1)).layers[0].norms
    assert sorted(norms) == ["attention_branch", "attention_pre", "feedforward_branch", "feedforward_pre"]


def test_logits_of_the_vocabulary_are_capped_and_those_of_labels_are_not() -> None:
    assert named("gemma2").head == Head(tied=True, softcap=30.0)
    spec = read_config(CONFIG | {"architectures": ["Gemma2ForSequenceClassification"]}, FAMILIES)[2]
    assert spec.head == Classify(2, "last", bias=False)
    assert spec.layers[0].attention.softcap == 50.0
