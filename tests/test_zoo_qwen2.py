"""The family of three biases: sizes, published configs, and which layers have a window."""

from __future__ import annotations

import pytest

from oneblock.weights import empty
from oneblock.zoo import FAMILIES, named
from oneblock.zoo.config import read_config, write_config
from oneblock.zoo.windows import windows
from published import counts, reads_as, same_in_the_reference

PUBLISHED = {
    "qwen2-0.5b": 494_032_768,
    "qwen2-1.5b": 1_543_714_304,
    "qwen2-7b": 7_615_616_512,
    "qwen2-72b": 72_706_203_648,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
}
CONFIG = {
    "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151643,
    "hidden_act": "silu", "hidden_size": 896, "initializer_range": 0.02, "intermediate_size": 4864,
    "max_position_embeddings": 131072, "max_window_layers": 24, "model_type": "qwen2", "num_attention_heads": 14,
    "num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
    "sliding_window": 131072, "tie_word_embeddings": True, "torch_dtype": "bfloat16", "transformers_version": "4.40.1",
    "use_cache": True, "use_sliding_window": False, "vocab_size": 151936,
}  # fmt: skip
MIDDLE = {
    "hidden_size": 5120, "intermediate_size": 13824, "max_window_layers": 48, "num_attention_heads": 40,
    "num_hidden_layers": 48, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "tie_word_embeddings": False,
    "vocab_size": 152064, "use_mrope": False,
}  # fmt: skip


@pytest.mark.parametrize(("size", "published"), PUBLISHED.items())
def test_sizes_are_the_published_ones(size: str, published: int) -> None:
    counts(size, published)


@pytest.mark.parametrize("size", ["qwen2-1.5b", "qwen2.5-14b"])
def test_the_reference_counts_the_same(size: str) -> None:
    same_in_the_reference(size)


def test_published_configs_are_the_named_specs() -> None:
    reads_as(CONFIG, "qwen2-0.5b")
    reads_as(CONFIG | {"max_position_embeddings": 32768, "sliding_window": 32768}, "qwen2.5-0.5b")
    reads_as(CONFIG | MIDDLE, "qwen2.5-14b")


def test_the_output_projection_has_no_bias() -> None:
    attention = empty(named("qwen2", depth=1)).layers[0].attention
    assert [getattr(attention, name).bias is None for name in "qkv"] == [False] * 3
    assert attention.out.bias is None


def test_a_window_is_off_unless_switched_on_and_then_for_the_later_layers() -> None:
    def seen(**keys: object) -> list[int | None]:
        return list(windows(read_config(CONFIG | {"num_hidden_layers": 4, "sliding_window": 8} | keys, FAMILIES)[2]))

    assert seen() == [None] * 4
    assert seen(use_sliding_window=True) == [None] * 4
    assert seen(use_sliding_window=True, max_window_layers=1) == [None, 8, 8, 8]
    listed = ["sliding_attention", "full_attention"] * 2
    assert seen(use_sliding_window=True, max_window_layers=0, layer_types=listed) == [8, None] * 2


def test_layers_with_a_window_are_written_in_both_spellings() -> None:
    spec = named("qwen2", depth=3, windows=(None, 8, 8))
    _, _, config = write_config(spec, FAMILIES)
    assert (config["use_sliding_window"], config["sliding_window"], config["max_window_layers"]) == (True, 8, 1)
    assert config["layer_types"] == ["full_attention", "sliding_attention", "sliding_attention"]
    with pytest.raises(ValueError, match="of no family whose files we write"):
        write_config(named("qwen2", depth=2, windows=(4, 8)), FAMILIES)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"layer_types": ["sliding_attention"] * 24}, "layer_types: 'sliding_attention' needs a sliding_window"),
        ({"layer_types": ["full_attention"] * 3}, "layer_types: expected one for each of 24 layers, got 3"),
        ({"layer_types": ["ful_attention"] * 24}, "layer_types: 'ful_attention' is no kind we know; did you mean full"),
    ],
)
def test_what_layer_types_cannot_mean_is_refused(keys: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_config(CONFIG | keys, FAMILIES)
