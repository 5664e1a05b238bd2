"""The family whose norms are around zero: sizes, published configs, and what its files mean by gelu."""

from __future__ import annotations

import pytest
import torch

import oneblock
from oneblock.tap import listen
from oneblock.zoo import FAMILIES, named
from oneblock.zoo.config import read_config, write_config
from published import counts, reads_as, same_in_the_reference

PUBLISHED = {"gemma-2b": 2_506_172_416, "gemma-7b": 8_537_680_896}
CONFIG = {
    "architectures": ["GemmaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 2,
    "eos_token_id": 1, "head_dim": 256, "hidden_act": "gelu", "hidden_activation": None, "hidden_size": 2048,
    "initializer_range": 0.02, "intermediate_size": 16384, "max_position_embeddings": 8192, "model_type": "gemma",
    "num_attention_heads": 8, "num_hidden_layers": 18, "num_key_value_heads": 1, "pad_token_id": 0,
    "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 10000.0, "torch_dtype": "bfloat16",
    "transformers_version": "4.38.0.dev0", "use_cache": True, "vocab_size": 256000,
}  # fmt: skip
LARGE = {
    "hidden_size": 3072, "intermediate_size": 24576, "num_attention_heads": 16, "num_hidden_layers": 28,
    "num_key_value_heads": 16,
}  # fmt: skip
TINY = {"dim": 16, "depth": 1, "heads": 2, "head_dim": 8, "hidden": 24, "vocab": 53}


@pytest.mark.parametrize(("size", "published"), PUBLISHED.items())
def test_sizes_are_the_published_ones(size: str, published: int) -> None:
    counts(size, published)


@pytest.mark.parametrize("size", PUBLISHED)
def test_the_reference_counts_the_same(size: str) -> None:
    same_in_the_reference(size)


def test_published_configs_are_the_named_specs() -> None:
    reads_as(CONFIG, "gemma-2b")
    reads_as(CONFIG | LARGE, "gemma-7b")


def test_gelu_in_its_files_means_the_one_by_tanh() -> None:
    for words in (
        {"hidden_act": "gelu"},
        {"hidden_activation": "gelu_pytorch_tanh"},
        {"hidden_act": "gelu_pytorch_tanh"},
    ):
        reads_as(CONFIG | words, "gemma-2b")
    with pytest.raises(ValueError, match="hidden_activation: expected the same as hidden_act, 'gelu', got two"):
        read_config(CONFIG | {"hidden_activation": "silu"}, FAMILIES)


def test_a_true_gelu_cannot_be_said_in_its_files() -> None:
    with pytest.raises(ValueError, match="is not exactly a gemma"):
        write_config(named("gemma", activation="gelu"), FAMILIES, "gemma")


def test_seeing_ahead_is_refused() -> None:
    with pytest.raises(ValueError, match="use_bidirectional_attention: expected False"):
        read_config(CONFIG | {"use_bidirectional_attention": True}, FAMILIES)


def test_a_norm_weight_of_zero_is_the_identity() -> None:
    norm = oneblock.build(named("gemma", **TINY)).norm
    x = torch.randn(2, 3, 16)
    assert norm.weight.count_nonzero() == 0
    torch.testing.assert_close(norm(x).square().mean(-1), torch.ones(2, 3), atol=1e-4, rtol=0)


def test_embeddings_are_scaled_by_a_root_that_bfloat16_rounds() -> None:
    """sqrt(3072) = 55.43 is 55.5 in bfloat16, with which the models were trained."""
    for dtype, factor in ((torch.float32, 3072**0.5), (torch.bfloat16, 55.5)):
        model = oneblock.build(named("gemma", **(TINY | {"dim": 3072}))).to(dtype)
        with torch.no_grad(), listen(model) as seen:
            model(torch.tensor([[7]]))
        expected = model.embedding.token.weight[7] * torch.tensor(factor, dtype=dtype)
        assert torch.equal(seen["embedding.embedded"][0, 0], expected)
