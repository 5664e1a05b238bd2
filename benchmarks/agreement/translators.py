"""Random configs of encoder-decoders: text in, text out."""

from __future__ import annotations

from typing import Any

import torch
from benchmarks.agreement.cases import VOCAB, Draw, case
from torch import nn

DROPOUT = (0.0, 0.1, 0.25)
TEXT = {"T5ForConditionalGeneration": "seq2seq", "T5EncoderModel": "encoder"}


def apart(model: Any, d: Draw) -> None:  # noqa: ARG001
    """Version 1.1: the head is a matrix of its own, which a config cannot say any more."""
    if not model.config.scale_decoder_outputs and hasattr(model, "lm_head"):
        model.lm_head.weight = nn.Parameter(torch.empty_like(model.lm_head.weight))
        model.all_tied_weights_keys.pop("lm_head.weight")


@case("t5", "T5Config", TEXT, positions="own", after=apart)
def t5(d: Draw) -> dict[str, Any]:
    return {
        "vocab_size": VOCAB, "d_model": 16, "d_kv": d.pick("head", 4, 6), "d_ff": d.pick("wide", 24, 64),
        "num_layers": d.pick("depth", 2, 1, 3), "num_decoder_layers": d.pick("decoder", None, 2, 1),
        "num_heads": d.pick("heads", 4, 2), "relative_attention_num_buckets": d.pick("buckets", 8, 32),
        "relative_attention_max_distance": d.pick("distance", 128, 20), "dropout_rate": d.pick("drop", *DROPOUT),
        "layer_norm_epsilon": d.pick("eps", 1e-6, 1e-3),
        "feed_forward_proj": d.pick("wide", "relu", "gated-gelu", "gated-silu", "gelu", "gated-relu"),
        "tie_word_embeddings": d.pick("tied", True, False), "pad_token_id": d.pick("pad", 0, 3),
        "decoder_start_token_id": d.pick("start", 0, 4, 3), "eos_token_id": d.pick("eos", 1, [1, 2]),
        "classifier_dropout": d.pick("classifier", 0.0, 0.1), "n_positions": d.pick("length", 512, 64),
    }  # fmt: skip


def pair(d: Draw) -> dict[str, Any]:
    """The keys of a post-norm encoder-decoder."""
    return {
        "d_model": 16, "encoder_layers": d.pick("depth", 2, 1, 3), "decoder_layers": d.pick("decoder", 2, 1),
        "encoder_attention_heads": d.pick("heads", 4, 2), "decoder_attention_heads": d.pick("decoding", 2, 4, 1),
        "encoder_ffn_dim": d.pick("wide", 24, 64), "decoder_ffn_dim": d.pick("decoder", 24, 64, 32),
        "activation_function": d.pick("act", "gelu", "swish", "relu", "gelu_new"),
        "scale_embedding": d.pick("scale", True, False),
        "dropout": d.pick("drop", *DROPOUT), "attention_dropout": d.pick("attention", *DROPOUT),
        "activation_dropout": d.pick("hidden", *DROPOUT), "max_position_embeddings": d.pick("length", 64, 80),
        "classifier_dropout": d.pick("classifier", 0.0, 0.1), "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0,
        "bos_token_id": d.pick("bos", 0, None), "forced_eos_token_id": None,
    }  # fmt: skip


def bias(model: Any, d: Draw) -> None:
    """The bias of the logits is no parameter, and 0 in a new model."""
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias.normal_(generator=torch.Generator().manual_seed(d.index))


BART = {
    "BartForConditionalGeneration": "seq2seq", "BartForSequenceClassification": "classify", "BartModel": "decoded",
}  # fmt: skip


@case("bart", "BartConfig", BART, positions="own", after=bias)
def bart(d: Draw) -> dict[str, Any]:
    return pair(d) | {
        "vocab_size": VOCAB, "pad_token_id": d.pick("pad", 1, 4), "eos_token_id": d.pick("eos", 2, 3),
        "decoder_start_token_id": d.pick("start", 2, 0), "num_labels": d.pick("labels", 3, 4, 1),
    }  # fmt: skip


@case("marian", "MarianConfig", {"MarianMTModel": "seq2seq"}, positions="own", after=bias)
def marian(d: Draw) -> dict[str, Any]:
    share = d.pick("share", True, True, False)
    return pair(d) | {
        "vocab_size": VOCAB + 1, "decoder_vocab_size": None if share else d.pick("target", VOCAB + 1, VOCAB + 9),
        "share_encoder_decoder_embeddings": share, "pad_token_id": VOCAB, "eos_token_id": d.pick("eos", 0, [0, 3]),
        "decoder_start_token_id": d.pick("start", VOCAB, 3),
    }  # fmt: skip
