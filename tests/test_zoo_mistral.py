"""The family that looks back over a window: sizes, published configs, and what the window means."""

from __future__ import annotations

import pytest
import torch

import oneblock
from oneblock.cost import cache_bytes
from oneblock.spec import Causal, Window
from oneblock.zoo import FAMILIES, named
from oneblock.zoo.config import write_config
from published import counts, reads_as, same_in_the_reference

PUBLISHED = {
    "mistral-7b-v0.1": 7_241_732_096,
    "mistral-7b-v0.2": 7_241_732_096,
    "mistral-7b-v0.3": 7_248_023_552,
}
CONFIG = {
    "architectures": ["MistralForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
    "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 32768,
    "model_type": "mistral", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16", "transformers_version": "4.34.0.dev0", "use_cache": True, "vocab_size": 32000,
}  # fmt: skip
TINY = {"dim": 16, "depth": 2, "heads": 4, "kv_heads": 2, "hidden": 24, "vocab": 53}


@pytest.mark.parametrize(("size", "published"), PUBLISHED.items())
def test_sizes_are_the_published_ones(size: str, published: int) -> None:
    counts(size, published)


@pytest.mark.parametrize("size", ["mistral-7b-v0.3"])
def test_the_reference_counts_the_same(size: str) -> None:
    same_in_the_reference(size)


def test_published_configs_are_the_named_specs() -> None:
    reads_as(CONFIG, "mistral-7b-v0.1")
    later = CONFIG | {"rope_theta": 1000000.0, "sliding_window": None, "attention_dropout": 0.0}
    reads_as(later, "mistral-7b-v0.2")
    reads_as(later | {"vocab_size": 32768}, "mistral-7b-v0.3")


def test_a_bias_is_refused() -> None:
    with pytest.raises(ValueError, match="attention_bias: not understood"):
        reads_as(CONFIG | {"attention_bias": True}, "mistral-7b-v0.1")


def test_the_window_counts_the_token_itself() -> None:
    """A key 4 tokens back is out of sight of a window of 4, one 3 tokens back is not."""
    assert named("mistral").layers[0].attention.mask == Causal() & Window(4096)
    model = oneblock.build(named("mistral", window=4, **(TINY | {"depth": 1})))
    ids = torch.arange(8)[None]
    other = ids.clone()
    other[0, 2] = 40
    with torch.no_grad():
        moved = (model(ids).logits != model(other).logits).any(-1)[0].tolist()
    assert moved == [False, False, True, True, True, True, False, False]


def test_a_rolling_cache_gives_what_the_whole_text_gives() -> None:
    model = oneblock.build(named("mistral", window=4, **TINY))
    ids = torch.randint(0, 53, (2, 15))
    with torch.no_grad():
        whole = model(ids).logits
        out = model(ids[:, :6], use_cache=True)
        for i in range(6, 15):
            torch.testing.assert_close(out.logits[:, -1], whole[:, i - 1], atol=1e-6, rtol=0)
            out = model(ids[:, i : i + 1], cache=out.cache)


def test_the_cache_stops_growing_at_the_window() -> None:
    bytes_of = cache_bytes(named("mistral-7b-v0.1"))
    assert bytes_of.at(4096) == bytes_of.at(100_000) == 4096 * 131_072
    assert cache_bytes(named("mistral-7b-v0.2")).endless == 131_072


def test_without_a_window_it_is_also_the_older_family_and_is_written_as_that_unless_told() -> None:
    spec = named("mistral-7b-v0.3")
    assert write_config(spec, FAMILIES)[2]["model_type"] == "llama"
    assert write_config(spec, FAMILIES, "mistral")[2]["sliding_window"] is None
    assert write_config(named("mistral-7b-v0.1"), FAMILIES)[2]["model_type"] == "mistral"
