"""The oldest encoder and its kin: sizes, published configs, names in old files, segments, where padding stands."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import oneblock
from oneblock.spec import Classify, Head, Model, Pool, Transform
from oneblock.zoo import FAMILIES, named
from oneblock.zoo.config import read_config
from published import counts, reads_as, rewritten, same_in_the_reference, same_in_the_reference_as

MASKED = {
    "bert-base": 109_514_298, "bert-large": 335_174_458, "roberta-base": 124_697_433, "roberta-large": 355_412_057,
    "distilbert-base": 66_985_530,
}  # fmt: skip
BARE = {
    "bert-base": 109_482_240, "bert-large": 335_141_888, "roberta-base": 124_645_632, "roberta-large": 355_359_744,
    "distilbert-base": 66_362_880,
}  # fmt: skip
TINY: dict[str, Any] = {"dim": 16, "depth": 2, "heads": 2, "hidden": 24, "vocab": 40, "length": 24}
BERT = {
    "architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1, "gradient_checkpointing": False,
    "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02,
    "intermediate_size": 3072, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "bert",
    "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0, "position_embedding_type": "absolute",
    "transformers_version": "4.6.0.dev0", "type_vocab_size": 2, "use_cache": True, "vocab_size": 30522,
    "directionality": "bidi", "pooler_fc_size": 768, "pooler_num_attention_heads": 12, "pooler_num_fc_layers": 3,
    "pooler_size_per_head": 128, "pooler_type": "first_token_transform",
}  # fmt: skip
ROBERTA = {
    "architectures": ["RobertaForMaskedLM"], "attention_probs_dropout_prob": 0.1, "bos_token_id": 0, "eos_token_id": 2,
    "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02,
    "intermediate_size": 3072, "layer_norm_eps": 1e-05, "max_position_embeddings": 514, "model_type": "roberta",
    "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 1, "type_vocab_size": 1, "vocab_size": 50265,
}  # fmt: skip
DISTILBERT = {
    "activation": "gelu", "architectures": ["DistilBertForMaskedLM"], "attention_dropout": 0.1, "dim": 768,
    "dropout": 0.1, "hidden_dim": 3072, "initializer_range": 0.02, "max_position_embeddings": 512,
    "model_type": "distilbert", "n_heads": 12, "n_layers": 6, "pad_token_id": 0, "qa_dropout": 0.1,
    "seq_classif_dropout": 0.2, "sinusoidal_pos_embds": False, "tie_weights_": True,
    "transformers_version": "4.10.0.dev0", "vocab_size": 30522,
}  # fmt: skip


def bare(size: str) -> Model:
    spec = named(size)
    return replace(spec, head=None if "distil" in size else Pool("first", Transform("tanh", None)))


@pytest.mark.parametrize(("size", "published"), MASKED.items())
def test_sizes_with_the_head_that_guesses_words(size: str, published: int) -> None:
    counts(size, published)


@pytest.mark.parametrize(("size", "published"), BARE.items())
def test_sizes_of_the_bare_models(size: str, published: int) -> None:
    assert oneblock.parameters(bare(size)) == published


@pytest.mark.parametrize("size", ["bert-base", "roberta-base", "distilbert-base"])
def test_the_reference_counts_the_same(size: str) -> None:
    same_in_the_reference(size)
    same_in_the_reference_as(bare(size), size.partition("-")[0])


def test_published_configs_are_the_named_specs() -> None:
    reads_as(BERT, "bert-base")
    reads_as(ROBERTA, "roberta-base")
    reads_as(DISTILBERT, "distilbert-base")


def test_a_config_of_another_kind_of_position_is_refused() -> None:
    with pytest.raises(ValueError, match="position_embedding_type: expected 'absolute', the only value"):
        read_config(BERT | {"position_embedding_type": "relative_key"}, FAMILIES)


def test_a_classifier_drops_what_its_config_says_or_what_all_others_drop() -> None:
    def read(**keys: object) -> Classify:
        config = BERT | {"architectures": ["BertForSequenceClassification"], "hidden_dropout_prob": 0.2} | keys
        return read_config(config, FAMILIES)[2].head

    assert read() == Classify(2, "first", Transform("tanh", None), dropout=0.2)
    assert read(classifier_dropout=0.0, id2label={str(i): str(i) for i in range(3)}).dropout == 0.0
    assert read(id2label={str(i): str(i) for i in range(3)}).labels == 3


def logits(model: torch.nn.Module, seed: int = 0, **inputs: Tensor) -> Tensor:
    ids = torch.randint(5, 40, (2, 7), generator=torch.Generator().manual_seed(seed))
    return model(ids, **inputs).logits


def test_files_of_old_and_of_pretraining_are_read(tmp_path: Path) -> None:
    model = oneblock.build(named("bert", **TINY)).eval()
    oneblock.save(model, tmp_path, format="hf")

    def older(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        old = {re.sub(r"(LayerNorm\.)weight$", r"\1gamma", name): x for name, x in tensors.items()}
        old = {re.sub(r"(LayerNorm\.)bias$", r"\1beta", name): x for name, x in old.items()}
        return old | {
            "cls.predictions.decoder.weight": tensors["bert.embeddings.word_embeddings.weight"].clone(),
            "cls.predictions.decoder.bias": tensors["cls.predictions.bias"].clone(),
            "cls.seq_relationship.weight": torch.ones(2, 16), "cls.seq_relationship.bias": torch.ones(2),
            "bert.pooler.dense.weight": torch.ones(16, 16), "bert.pooler.dense.bias": torch.ones(16),
            "bert.embeddings.position_ids": torch.arange(24)[None],
        }  # fmt: skip

    rewritten(tmp_path, older, architectures=["BertForPreTraining"])
    assert torch.equal(logits(oneblock.load(tmp_path)), logits(model))
    rewritten(tmp_path, lambda tensors: tensors | {"cls.predictions.decoder.bias": torch.ones(40)})
    with pytest.raises(ValueError, match=r"cls\.predictions\.(decoder\.)?bias differs from cls"):
        oneblock.load(tmp_path)


def test_an_untied_head_has_its_bias_beside_its_matrix_and_the_unused_one_is_written_too(tmp_path: Path) -> None:
    model = oneblock.build(named("bert", tied=False, **TINY)).eval()
    oneblock.save(model, tmp_path, format="hf")
    seen: dict[str, Tensor] = {}
    rewritten(tmp_path, lambda tensors: seen.update(tensors) or tensors | {"cls.predictions.bias": torch.ones(40)})
    assert {"cls.predictions.bias", "cls.predictions.decoder.bias", "cls.predictions.decoder.weight"} <= seen.keys()
    assert torch.equal(logits(oneblock.load(tmp_path)), logits(model))


def test_segments_are_counted_from_0_and_given_by_type_ids() -> None:
    model = oneblock.build(named("bert", **TINY)).eval()
    one = torch.zeros(2, 7, dtype=torch.long)
    assert torch.equal(logits(model), logits(model, token_type_ids=one))
    assert not torch.allclose(logits(model), logits(model, token_type_ids=one + 1))


@pytest.mark.parametrize(("family", "moves"), [("bert", True), ("roberta", False), ("distilbert", True)])
def test_padding_on_the_left_moves_positions_where_they_are_indices(family: str, moves: bool) -> None:
    model = oneblock.build(named(family, **TINY)).eval()
    ids = torch.randint(5, 40, (1, 6), generator=torch.Generator().manual_seed(1))
    padded, mask = torch.nn.functional.pad(ids, (3, 0)), torch.tensor([[0] * 3 + [1] * 6])
    far = (model(padded, mask).logits[:, 3:] - model(ids).logits).abs().max()
    assert (far > 1e-2) == moves
    assert far < 1e-5 or moves


def test_positions_begin_behind_the_row_of_padding() -> None:
    spec = named("roberta-base")
    assert (spec.length, spec.embedding.position.length, spec.embedding.position.offset) == (512, 512, 2)
    assert read_config(ROBERTA | {"pad_token_id": 3}, FAMILIES)[2].embedding.position.offset == 4


def test_the_heads_activation_is_the_blocks_in_one_family_and_always_gelu_in_the_other() -> None:
    def head(family: str) -> Head:
        return named(family, activation="relu", **TINY).head

    assert (head("bert").transform.activation, head("roberta").transform.activation) == ("relu", "gelu")


def test_segments_agree_with_the_reference(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="the reference library is not installed")
    model = oneblock.build(named("bert", **TINY)).eval()
    oneblock.save(model, tmp_path, format="hf")
    theirs = transformers.BertForMaskedLM.from_pretrained(tmp_path).eval()
    ids, segments = torch.randint(5, 40, (2, 7)), torch.randint(0, 2, (2, 7))
    with torch.no_grad():
        expected = theirs(ids, token_type_ids=segments).logits
    assert (model(ids, token_type_ids=segments).logits - expected).abs().max() < 1e-5
