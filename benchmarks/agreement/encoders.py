"""Random configs of encoders: hidden words are guessed, texts are labelled."""

from __future__ import annotations

from typing import Any

from benchmarks.agreement.cases import VOCAB, Draw, case

DROPOUT = (0.0, 0.1, 0.25)


def encoder(name: str) -> dict[str, Any]:
    """The classes of an encoder family."""
    return {f"{name}ForMaskedLM": "masked", f"{name}ForSequenceClassification": "classify", f"{name}Model": "base"}


def both_ways(d: Draw) -> dict[str, Any]:
    """The keys of the oldest encoder and its nearest kin."""
    return {
        "vocab_size": VOCAB, "hidden_size": 16, "num_hidden_layers": d.pick("depth", 2, 1, 3),
        "num_attention_heads": d.pick("heads", 4, 2, 1), "intermediate_size": d.pick("wide", 24, 64),
        "hidden_act": d.pick("act", "gelu", "gelu_new", "relu", "silu"),
        "layer_norm_eps": d.pick("eps", 1e-12, 1e-5, 1e-3),
        "hidden_dropout_prob": d.pick("drop", *DROPOUT), "attention_probs_dropout_prob": d.pick("attention", *DROPOUT),
        "classifier_dropout": d.pick("classifier", None, 0.0, 0.3), "max_position_embeddings": d.pick("length", 48, 64),
        "type_vocab_size": d.pick("segments", 2, 1, 3), "tie_word_embeddings": d.pick("tied", True, True, False),
        "eos_token_id": d.pick("eos", 2, None, [2, 3]), "bos_token_id": d.pick("bos", 0, None),
        "num_labels": d.pick("labels", 2, 3, 1),
    }  # fmt: skip


@case("bert", "BertConfig", encoder("Bert"), positions="own")
def bert(d: Draw) -> dict[str, Any]:
    return both_ways(d) | {"pad_token_id": d.pick("pad", 0, 4, None)}


@case("roberta", "RobertaConfig", encoder("Roberta"), positions="own")
def roberta(d: Draw) -> dict[str, Any]:
    return both_ways(d) | {"pad_token_id": d.pick("pad", 1, 0, 3)}


@case("distilbert", "DistilBertConfig", encoder("DistilBert"), positions="own")
def distilbert(d: Draw) -> dict[str, Any]:
    return {
        "vocab_size": VOCAB, "dim": 16, "n_layers": d.pick("depth", 2, 1, 3), "n_heads": d.pick("heads", 4, 2, 1),
        "hidden_dim": d.pick("wide", 24, 64), "activation": d.pick("act", "gelu", "gelu_new", "relu", "silu"),
        "dropout": d.pick("drop", *DROPOUT), "attention_dropout": d.pick("attention", *DROPOUT),
        "seq_classif_dropout": d.pick("classifier", 0.2, 0.0), "qa_dropout": d.pick("qa", 0.1, 0.0),
        "sinusoidal_pos_embds": d.pick("waves", False, True), "max_position_embeddings": d.pick("length", 48, 64),
        "tie_word_embeddings": d.pick("tied", True, True, False), "pad_token_id": d.pick("pad", 0, 4),
        "eos_token_id": d.pick("eos", None, 2, [2, 3]), "bos_token_id": d.pick("bos", None, 1),
        "num_labels": d.pick("labels", 2, 3, 1),
    }  # fmt: skip
