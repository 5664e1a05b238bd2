"""Translators in the pattern of 2017, one per pair of languages: sinusoids in halves, SiLU, a bias on the logits."""

from __future__ import annotations

from typing import Any

from oneblock.spec import Head, Seq2Seq, Sinusoidal, Tokens
from oneblock.zoo.bart import CONFIG as BART_CONFIG
from oneblock.zoo.bart import FIXED, SHARED, STACKS, WRITE, bart
from oneblock.zoo.family import Config, Family, Key, Kind, Rows
from oneblock.zoo.hub import tokens
from oneblock.zoo.like import changed, like

SIZE: dict[str, Any] = {
    "dim": 512, "depth": 6, "decoder_depth": 6, "heads": 8, "decoder_heads": 8, "hidden": 2048, "decoder_hidden": 2048,
    "activation": "silu", "scaled": True, "attention_dropout": 0.0, "hidden_dropout": 0.0, "length": 512,
}  # fmt: skip


@like(bart, **SIZE, vocab=58_101, tokens=Tokens(pad=58_100, bos=0, eos=0, start=58_100))
def marian(spec: Seq2Seq, decoder_vocab: int | None = None, share: bool = True) -> Seq2Seq:
    """Junczys-Dowmunt et al. 2018 (arXiv:1804.00344); Tiedemann and Thottingal 2020 trained the opus-mt models.

    The decoder starts from the padding, the last id. Without `share` each language has a vocabulary of its own. The
    reference never trains the vector of the padding, nor the bias.
    """
    both = {"embedding.position": Sinusoidal("half"), "embedding.norm": None}
    spec = changed(spec, {f"{stack}.{path}": new for stack in ("encoder", "decoder") for path, new in both.items()})
    own = {"decoder.embedding.vocab": decoder_vocab or spec.decoder.embedding.vocab, "share": share}
    return changed(spec, {"decoder.head": Head(tied=True, bias=True)} | own)


def rows(spec: Seq2Seq) -> Rows:
    """A vocabulary for both languages is `shared`; two have each their own name."""
    return STACKS if spec.share else {**STACKS, "encoder.embedding.token": "encoder.embed_tokens"}


def decoder_vocab(value: int | None, config: Config) -> int | None:
    """The decoder's vocabulary where it is not the encoder's."""
    return None if value == config["vocab_size"] else value


CONFIG = (
    BART_CONFIG
    | tokens("encoder.tokens", pad=58_100, eos=0, start=58_100)
    | {
        "vocab_size": Key("vocab", "encoder.embedding.vocab", 58_101),
        "decoder_vocab_size": Key("decoder_vocab", "decoder.embedding.vocab", None, decoder_vocab),
        "share_encoder_decoder_embeddings": Key("share", "share", True),
    }
)

MARIAN = Family(
    marian,
    {"opus-mt-en-de": {}},
    "marian", CONFIG, FIXED | {"normalize_embedding": False, "static_position_embeddings": True}, rows,
    {"MarianMTModel": Kind(WRITE, prefix="model.")},
    ("encoder.embed_positions.weight", "decoder.embed_positions.weight"),
    lambda spec: SHARED if spec.share else {},
)  # fmt: skip
