"""The first Transformer, an encoder-decoder for translation (Vaswani et al. 2017, arXiv:1706.03762), and Table 3."""

from __future__ import annotations

from typing import Any

from oneblock.spec import (
    Attention,
    Block,
    Embedding,
    FeedForward,
    Full,
    Head,
    LayerNorm,
    Learned,
    Model,
    Seq2Seq,
    Sinusoidal,
    Tokens,
    Wiring,
)
from oneblock.zoo.family import Family


def vaswani(
    dim: int = 512,
    depth: int = 6,
    heads: int = 8,
    hidden: int = 2048,
    vocab: int = 37_000,
    dropout: float = 0.1,
    bias: bool = True,
    head_dim: int | None = None,
    value_dim: int | None = None,
    position: Sinusoidal | Learned = Sinusoidal(),
    wiring: Wiring = "post",
    activation: Any = "relu",
    decoder_depth: int | None = None,
    length: int | None = None,
    tokens: Tokens = Tokens(pad=0, bos=1, eos=2, start=1),
) -> Seq2Seq:
    """Post-norm blocks, ReLU, sinusoids on embeddings times sqrt(dim), one matrix for both embeddings and the head.

    `bias` is about the attention projections: none in the authors' own code, present in most later ones. Dropout acts
    where section 5.4 puts it: on every sublayer's output and on the embeddings. With `wiring` "pre", as the authors'
    code had it soon after, each stack ends in a norm of its own.

    >>> vaswani().decoder.layers[0].attention.heads
    8
    """
    everyone = Attention(heads, head_dim=head_dim, value_dim=value_dim, mask=Full(), bias=bias)
    earlier = Attention(heads, head_dim=head_dim, value_dim=value_dim, bias=bias)
    ffn = FeedForward(hidden, activation, bias=True)
    embedding = Embedding(vocab, position, scale="sqrt_dim", dropout=dropout)
    encode = Block(everyone, ffn, wiring=wiring, dropout=dropout)
    decode = Block(earlier, ffn, cross=everyone, wiring=wiring, dropout=dropout)
    last = LayerNorm() if wiring == "pre" else None
    return Seq2Seq(
        encoder=Model(dim, embedding, (encode,) * depth, last, None, length, tokens),
        decoder=Model(dim, embedding, (decode,) * (decoder_depth or depth), last, Head(tied=True), length, tokens),
    )


TABLE_3: dict[str, dict[str, Any]] = {
    "base": {},
    "big": {"dim": 1024, "hidden": 4096, "heads": 16, "dropout": 0.3},
    "A-1-head": {"heads": 1},
    "A-4-heads": {"heads": 4},
    "A-16-heads": {"heads": 16},
    "A-32-heads": {"heads": 32},
    "B-key-16": {"head_dim": 16, "value_dim": 64},
    "B-key-32": {"head_dim": 32, "value_dim": 64},
    "C-2-layers": {"depth": 2},
    "C-4-layers": {"depth": 4},
    "C-8-layers": {"depth": 8},
    "C-dim-256": {"dim": 256, "head_dim": 32},
    "C-dim-1024": {"dim": 1024, "head_dim": 128},
    "C-hidden-1024": {"hidden": 1024},
    "C-hidden-4096": {"hidden": 4096},
    "D-dropout-0.0": {"dropout": 0.0},
    "D-dropout-0.2": {"dropout": 0.2},
    "D-smoothing-0.0": {},
    "D-smoothing-0.2": {},
    "E-learned": {"position": Learned(length=1024)},
}
"""Rows of Table 3. Label smoothing (rows D) belongs to training, not to the architecture: those two equal base."""

VASWANI = Family(vaswani, {f"vaswani-{row}": arguments for row, arguments in TABLE_3.items()})
