"""Encoder-decoders that read from files: sizes, published configs, where positions begin, vocabularies, the bias."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import oneblock
from oneblock.bricks.positions import sinusoids
from oneblock.spec import Sinusoidal, put
from oneblock.zoo import FAMILIES, named
from oneblock.zoo.config import read_config, write_config
from published import counts, numbers, reads_as, rewritten, same_in_the_reference

BIAS, TABLES = 58_101, 2 * 512 * 512
PUBLISHED = {"bart-base": 139_420_416, "bart-large": 406_291_456, "opus-mt-en-de": 74_410_496 - TABLES + BIAS}
"""The bias of the logits counts where it is a part of the model; tables of sinusoids never do."""
BART = {
    "_name_or_path": "bart-base", "activation_dropout": 0.1, "activation_function": "gelu", "add_bias_logits": False,
    "add_final_layer_norm": False, "architectures": ["BartModel"], "attention_dropout": 0.1, "bos_token_id": 0,
    "classif_dropout": 0.1, "classifier_dropout": 0.0, "d_model": 768, "decoder_attention_heads": 12,
    "decoder_ffn_dim": 3072, "decoder_layerdrop": 0.0, "decoder_layers": 6, "decoder_start_token_id": 2,
    "dropout": 0.1, "early_stopping": True, "encoder_attention_heads": 12, "encoder_ffn_dim": 3072,
    "encoder_layerdrop": 0.0, "encoder_layers": 6, "eos_token_id": 2, "forced_eos_token_id": 2,
    "forced_bos_token_id": 0, "gradient_checkpointing": False, "id2label": {"0": "LABEL_0"}, "init_std": 0.02,
    "is_encoder_decoder": True, "label2id": {"LABEL_0": 0}, "max_position_embeddings": 1024, "model_type": "bart",
    "no_repeat_ngram_size": 3, "normalize_before": False, "normalize_embedding": True, "num_beams": 4,
    "num_hidden_layers": 6, "pad_token_id": 1, "scale_embedding": False, "use_cache": True, "vocab_size": 50265,
}  # fmt: skip
MARIAN = {
    "_num_labels": 3, "activation_dropout": 0.0, "activation_function": "swish", "add_bias_logits": False,
    "add_final_layer_norm": False, "architectures": ["MarianMTModel"], "attention_dropout": 0.0,
    "bad_words_ids": [[58100]], "bos_token_id": 0, "classif_dropout": 0.0, "d_model": 512,
    "decoder_attention_heads": 8, "decoder_ffn_dim": 2048, "decoder_layerdrop": 0.0, "decoder_layers": 6,
    "decoder_start_token_id": 58100, "dropout": 0.1, "encoder_attention_heads": 8, "encoder_ffn_dim": 2048,
    "encoder_layerdrop": 0.0, "encoder_layers": 6, "eos_token_id": 0, "extra_pos_embeddings": 58101,
    "force_bos_token_to_be_generated": False, "init_std": 0.02, "is_encoder_decoder": True, "max_length": 512,
    "max_position_embeddings": 512, "model_type": "marian", "normalize_before": False, "normalize_embedding": False,
    "num_beams": 6, "num_hidden_layers": 6, "pad_token_id": 58100, "scale_embedding": True,
    "static_position_embeddings": True, "vocab_size": 58101,
}  # fmt: skip
TINY: dict[str, Any] = {
    "dim": 16, "depth": 2, "decoder_depth": 1, "heads": 2, "decoder_heads": 4, "hidden": 24, "decoder_hidden": 32,
    "vocab": 40, "length": 24,
}  # fmt: skip
SOURCE, TARGET = torch.arange(5, 12)[None], torch.arange(7, 11)[None]


def logits(model: torch.nn.Module) -> Tensor:
    return model(SOURCE, decoder_input_ids=TARGET).logits


def tiny(folder: Path, family: str, **arguments: Any) -> torch.nn.Module:
    spec = named(family, **TINY | arguments)
    model = oneblock.build(put(spec, "decoder.head.bias", True)).eval()
    with torch.no_grad():
        model.decoder.head.out.bias.normal_()
    oneblock.save(model, folder, format="hf")
    return model


@pytest.mark.parametrize(("size", "published"), PUBLISHED.items())
def test_sizes_are_the_published_ones(size: str, published: int) -> None:
    counts(size, published)


def test_the_reference_counts_the_same() -> None:
    same_in_the_reference("bart-base")


def test_the_reference_counts_its_tables_of_sinusoids_and_not_its_bias() -> None:
    transformers = pytest.importorskip("transformers", reason="the reference library is not installed")
    config = write_config(named("opus-mt-en-de"), FAMILIES)[2]
    with torch.device("meta"):
        theirs = transformers.MarianMTModel(transformers.MarianConfig.from_dict(config))
    assert numbers(theirs) == 74_410_496 == oneblock.parameters(named("opus-mt-en-de")) + TABLES - BIAS


def test_published_configs_are_the_named_specs() -> None:
    reads_as(BART, "bart-base")
    reads_as(MARIAN, "opus-mt-en-de")


def test_the_class_that_writes_has_a_bias_on_its_logits() -> None:
    spec = read_config(BART | {"architectures": ["BartForConditionalGeneration"]}, FAMILIES)[2]
    assert spec == put(read_config(BART, FAMILIES)[2], "decoder.head.bias", True)


def test_what_starts_a_decoder() -> None:
    assert named("bart-base").decoder.tokens.start == named("bart-base").decoder.tokens.eos == 2
    assert named("opus-mt-en-de").decoder.tokens.start == named("opus-mt-en-de").decoder.tokens.pad == 58_100


def test_positions_begin_at_row_2_and_a_table_has_as_many_rows_more() -> None:
    assert oneblock.build(named("bart", **TINY)).encoder.embedding.position.weight.shape == (26, 16)


def test_sinusoids_stand_in_halves() -> None:
    assert named("opus-mt-en-de").encoder.embedding.position == Sinusoidal("half")
    waves = sinusoids(Sinusoidal("half"), torch.tensor([[1]]), 4)[0, 0]
    expected = torch.tensor([1.0, 0.01]).sin(), torch.tensor([1.0, 0.01]).cos()
    assert torch.allclose(waves, torch.cat(expected))


@pytest.mark.parametrize("family", ["bart", "marian"])
@pytest.mark.parametrize(
    "kept", ["model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head"]
)
def test_a_shared_matrix_is_found_under_each_of_its_names(family: str, kept: str, tmp_path: Path) -> None:
    model = tiny(tmp_path, family)

    def renamed(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return tensors | {f"{kept}.weight": tensors.pop("model.shared.weight")}

    rewritten(tmp_path, renamed)
    assert torch.equal(logits(oneblock.load(tmp_path)), logits(model))


def test_bare_files_lack_the_prefix_and_are_read_all_the_same(tmp_path: Path) -> None:
    model = tiny(tmp_path, "bart")

    def bare(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        found = {name.removeprefix("model."): x for name, x in tensors.items() if name != "final_logits_bias"}
        return found | {f"{one}.embed_tokens.weight": found["shared.weight"].clone() for one in ("encoder", "decoder")}

    rewritten(tmp_path, bare, architectures=["BartModel"])
    assert torch.allclose(logits(oneblock.load(tmp_path)) + model.decoder.head.out.bias, logits(model), atol=1e-6)


def test_tables_of_sinusoids_in_files_say_nothing(tmp_path: Path) -> None:
    model = tiny(tmp_path, "marian")
    tables = {f"model.{stack}.embed_positions.weight": torch.ones(24, 16) for stack in ("encoder", "decoder")}
    rewritten(tmp_path, lambda tensors: tensors | tables)
    assert torch.equal(logits(oneblock.load(tmp_path)), logits(model))


def test_two_vocabularies_have_each_their_own_matrix(tmp_path: Path) -> None:
    model = tiny(tmp_path, "marian", share=False, decoder_vocab=30)
    again = oneblock.load(tmp_path)
    assert again.spec == model.spec
    assert logits(again).shape[-1] == 30
    assert torch.equal(logits(again), logits(model))
    assert again.decoder.head.out.weight is again.decoder.embedding.token.weight


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"num_hidden_layers": 5}, "num_hidden_layers: expected encoder_layers=6, got 5"),
        ({"normalize_before": True}, "normalize_before: expected False, the only value understood here, got True"),
        ({"encoder_layerdrop": 0.1}, "encoder_layerdrop: expected 0.0, the only value understood here, got 0.1"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings: expected True, the only value understood here"),
        ({"normalise": True}, "normalise: not understood"),
    ],
)
def test_what_a_config_cannot_mean_here_is_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_config(BART | keys, FAMILIES)


def test_a_classifiers_decoder_reads_the_text_itself_and_its_last_token_speaks() -> None:
    config = write_config(named("bart", **TINY), FAMILIES)[2] | {"architectures": ["BartForSequenceClassification"]}
    assert read_config(config, FAMILIES)[2].decoder.head.labels == 3
    two = read_config(config | {"num_labels": 2}, FAMILIES)[2]
    assert write_config(two, FAMILIES)[2]["id2label"] == {"0": "LABEL_0", "1": "LABEL_1"}
    model = oneblock.build(two).eval()
    padded, mask = torch.nn.functional.pad(SOURCE, (0, 3), value=1), torch.tensor([[1] * 7 + [0] * 3])
    found = model(SOURCE, labels=torch.tensor([1]))
    assert found.logits.shape == (1, 2)
    assert found.loss is not None
    assert torch.allclose(found.logits, model(padded, mask).logits, atol=1e-6)
    shifted = torch.nn.functional.pad(SOURCE[:, :-1], (1, 0), value=2)
    assert torch.equal(found.logits, model(SOURCE, decoder_input_ids=shifted).logits)
