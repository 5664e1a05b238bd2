"""Text to text: sizes of both versions, published configs, one table of distances per stack, names of one matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import oneblock
from oneblock.spec import Relative, Seq2Seq
from oneblock.zoo import FAMILIES, named
from oneblock.zoo.config import read_config, write_config
from published import counts, reads_as, rewritten, same_in_the_reference

PUBLISHED = {
    "t5-small": 60_506_624, "t5-base": 222_903_552, "t5-large": 737_668_096, "t5-3b": 2_851_598_336,
    "t5-11b": 11_307_321_344, "t5-v1.1-small": 76_961_152, "t5-v1.1-base": 247_577_856, "t5-v1.1-large": 783_150_080,
    "t5-v1.1-xl": 2_849_757_184, "t5-v1.1-xxl": 11_135_332_352, "flan-t5-base": 247_577_856,
}  # fmt: skip
SMALL = {
    "architectures": ["T5ForConditionalGeneration"], "d_ff": 2048, "d_kv": 64, "d_model": 512,
    "decoder_start_token_id": 0, "dropout_rate": 0.1, "eos_token_id": 1, "initializer_factor": 1.0,
    "is_encoder_decoder": True, "layer_norm_epsilon": 1e-06, "model_type": "t5", "n_positions": 512, "num_heads": 8,
    "num_layers": 6, "output_past": True, "pad_token_id": 0, "relative_attention_num_buckets": 32,
    "task_specific_params": {"summarization": {"num_beams": 4}}, "use_cache": True, "vocab_size": 32128,
}  # fmt: skip
FLAN = {
    "architectures": ["T5ForConditionalGeneration"], "d_ff": 1024, "d_kv": 64, "d_model": 512,
    "decoder_start_token_id": 0, "dropout_rate": 0.1, "eos_token_id": 1, "feed_forward_proj": "gated-gelu",
    "initializer_factor": 1.0, "is_encoder_decoder": True, "layer_norm_epsilon": 1e-06, "model_type": "t5",
    "n_positions": 512, "num_decoder_layers": 8, "num_heads": 6, "num_layers": 8, "output_past": True,
    "pad_token_id": 0, "relative_attention_max_distance": 128, "relative_attention_num_buckets": 32,
    "tie_word_embeddings": False, "transformers_version": "4.23.1", "use_cache": True, "vocab_size": 32128,
}  # fmt: skip
TINY: dict[str, Any] = {"dim": 16, "depth": 2, "heads": 2, "hidden": 24, "vocab": 40}
SOURCE, TARGET = torch.arange(5, 12)[None], torch.arange(7, 11)[None]


def tiny(folder: Path, **arguments: Any) -> torch.nn.Module:
    model = oneblock.build(named("t5", **TINY | arguments)).eval()
    oneblock.save(model, folder, format="hf")
    return model


def logits(model: torch.nn.Module) -> Tensor:
    return model(SOURCE, decoder_input_ids=TARGET).logits


@pytest.mark.parametrize(("size", "published"), PUBLISHED.items())
def test_sizes_are_the_published_ones(size: str, published: int) -> None:
    counts(size, published)


@pytest.mark.parametrize("size", ["t5-small", "t5-3b"])
def test_the_reference_counts_the_same(size: str) -> None:
    same_in_the_reference(size)


def test_published_configs_are_the_named_specs() -> None:
    reads_as(SMALL, "t5-small")
    reads_as(FLAN, "flan-t5-small")
    assert named("flan-t5-small") == named("t5-v1.1-small")


def test_scores_are_not_scaled_and_tied_logits_are() -> None:
    first, second = named("t5-small"), named("t5-v1.1-small")
    assert first.encoder.layers[0].attention.scale == first.decoder.layers[0].cross.scale == 1.0
    assert (first.decoder.head.scale, second.decoder.head.scale) == (512**-0.5, None)
    assert second.decoder.layers[0].feedforward.activation == "gelu_tanh"


def test_distances_are_told_apart_both_ways_in_the_encoder_only_and_not_at_all_across() -> None:
    spec = named("t5-small")
    assert (spec.encoder.position_bias, spec.decoder.position_bias) == (Relative(both_ways=True), Relative())
    assert spec.decoder.layers[0].cross.position is None


def test_the_decoder_starts_from_padding_unless_told_otherwise() -> None:
    plain = {key: value for key, value in SMALL.items() if key != "decoder_start_token_id"}
    assert read_config(plain | {"pad_token_id": 3}, FAMILIES)[2].decoder.tokens.start == 3
    assert read_config(SMALL | {"decoder_start_token_id": 7}, FAMILIES)[2].decoder.tokens.start == 7


@pytest.mark.parametrize(
    ("keys", "activation", "gated"),
    [
        ({"feed_forward_proj": "gelu"}, "gelu", False),
        ({"feed_forward_proj": "gated-gelu"}, "gelu_tanh", True),
        ({"feed_forward_proj": "gated-silu"}, "silu", True),
        ({"feed_forward_proj": "gated-gelu", "dense_act_fn": "gelu", "is_gated_act": True}, "gelu", True),
    ],
)
def test_the_feed_forward_is_what_its_words_say(keys: dict[str, Any], activation: str, gated: bool) -> None:
    spec = read_config(SMALL | keys, FAMILIES)[2]
    assert isinstance(spec, Seq2Seq)
    wide = spec.encoder.layers[0].feedforward
    assert (wide.activation, wide.gated) == (activation, gated)
    assert read_config(write_config(spec, FAMILIES)[2], FAMILIES)[2] == spec


@pytest.mark.parametrize("kept", ["shared", "encoder.embed_tokens", "decoder.embed_tokens", "lm_head"])
def test_a_tied_matrix_is_found_under_each_of_its_names(kept: str, tmp_path: Path) -> None:
    model = tiny(tmp_path)

    def renamed(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return tensors | {f"{kept}.weight": tensors.pop("shared.weight")}

    rewritten(tmp_path, renamed)
    assert torch.equal(logits(oneblock.load(tmp_path)), logits(model))


@pytest.mark.parametrize("other", ["encoder.embed_tokens", "decoder.embed_tokens", "lm_head"])
def test_a_tied_matrix_may_be_there_several_times_but_not_differ(other: str, tmp_path: Path) -> None:
    model = tiny(tmp_path)
    rewritten(tmp_path, lambda tensors: tensors | {f"{other}.weight": tensors["shared.weight"].clone()})
    assert torch.equal(logits(oneblock.load(tmp_path)), logits(model))
    rewritten(tmp_path, lambda tensors: tensors | {f"{other}.weight": tensors["shared.weight"] + 1})
    with pytest.raises(ValueError, match=r"embed_tokens|lm_head|shared\.weight") as error:
        oneblock.load(tmp_path)
    assert "differs from" in str(error.value)


def test_an_untied_head_that_a_file_leaves_out_is_the_embedding(tmp_path: Path) -> None:
    model = tiny(tmp_path, tied=False)
    with torch.no_grad():
        model.decoder.head.out.weight.copy_(model.decoder.embedding.token.weight)

    def without(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        tensors.pop("lm_head.weight")
        return tensors

    rewritten(tmp_path, without, tie_word_embeddings=True, scale_decoder_outputs=False)
    again = oneblock.load(tmp_path)
    assert again.spec == model.spec
    assert torch.equal(logits(again), logits(model))


def test_a_table_across_that_old_files_hold_says_nothing(tmp_path: Path) -> None:
    model = tiny(tmp_path)
    key = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    rewritten(tmp_path, lambda tensors: tensors | {key: torch.ones(32, 2)})
    assert torch.equal(logits(oneblock.load(tmp_path)), logits(model))


def test_an_encoder_alone_is_the_whole_ones_encoder(tmp_path: Path) -> None:
    whole = tiny(tmp_path)

    def encoder(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return {name: x for name, x in tensors.items() if name.startswith(("encoder", "shared"))}

    rewritten(tmp_path, encoder, architectures=["T5EncoderModel"])
    alone = oneblock.load(tmp_path)
    assert alone.spec == whole.spec.encoder
    assert torch.equal(alone(SOURCE).encoder_outputs.x, whole.encode(SOURCE).x)


def test_padding_on_the_left_moves_nothing_that_distances_see() -> None:
    model = oneblock.build(named("t5", **TINY)).eval()
    padded, mask = torch.nn.functional.pad(SOURCE, (3, 0)), torch.tensor([[0] * 3 + [1] * 7])
    far = model(padded, mask, decoder_input_ids=TARGET).logits - logits(model)
    assert far.abs().max() < 1e-5
