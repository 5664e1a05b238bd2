"""What a Transformer is, as data: sublayers, blocks, streams, and the model they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from oneblock.spec.choices import Wiring, above_zero, at_least, one_of, share, typed, whole
from oneblock.spec.experts import FeedForward, MoE
from oneblock.spec.heads import Classify, Head, Pool
from oneblock.spec.masks import Causal, Mask
from oneblock.spec.norms import LayerNorm, Norm, Whole
from oneblock.spec.positions import Alibi, Learned, Relative, Rope, Sinusoidal


@dataclass(frozen=True)
class Attention:
    """softmax(scale * q k^T + bias, under mask) v, per head, then the output projection.

    None means the usual value: `kv_heads` = heads (fewer: grouped queries, Ainslie et al. 2023, arXiv:2305.13245),
    `head_dim` = dim / heads, `value_dim` = head_dim, `out_bias` = bias, `scale` = 1 / sqrt(head_dim).
    `softcap` c replaces a score s by c * tanh(s / c). `qk_norm` norms queries and keys head by head before they are
    turned, `Whole(norm)` all heads of a token together. `dropout` acts on the attention weights.

    >>> Attention(heads=8, kv_heads=3)
    Traceback (most recent call last):
    ValueError: Attention.heads: expected a multiple of kv_heads=3, got 8
    """

    heads: int
    kv_heads: int | None = None
    head_dim: int | None = None
    value_dim: int | None = None
    mask: Mask = Causal()
    position: Rope | Alibi | Relative | None = None
    qk_norm: Norm | Whole | None = None
    bias: bool = False
    out_bias: bool | None = None
    scale: float | None = None
    softcap: float | None = None
    dropout: float = 0.0

    def __post_init__(self) -> None:
        whole(1, Attention__heads=self.heads)
        for name in ("kv_heads", "head_dim", "value_dim"):
            if getattr(self, name) is not None:
                whole(1, **{f"Attention__{name}": getattr(self, name)})
        if self.heads % (self.kv_heads or self.heads):
            raise ValueError(f"Attention.heads: expected a multiple of kv_heads={self.kv_heads}, got {self.heads}")
        share(Attention__dropout=self.dropout)
        above_zero(Attention__softcap=self.softcap)


@dataclass(frozen=True)
class Block:
    """x <- post(skip * x + branch(f(pre(x)))) for f = attention, then cross-attention if any, then feed-forward.

    `wiring` says which of the three norms are there; a sublayer that is None is left out. `skip` scales the stream
    (0: no residual), `branch_scale` scales what a sublayer adds. `dropout` acts on each sublayer's output before it is
    added (Vaswani et al. 2017, section 5.4).
    """

    attention: Attention | None
    feedforward: FeedForward | MoE | None
    cross: Attention | None = None
    norm: Norm = LayerNorm()
    wiring: Wiring = "pre"
    skip: float = 1.0
    branch_scale: float = 1.0
    dropout: float = 0.0

    def __post_init__(self) -> None:
        one_of(Wiring, **{"Block.wiring": self.wiring})
        share(Block__dropout=self.dropout)
        if self.wiring.startswith("parallel") and (self.cross or None in (self.attention, self.feedforward)):
            raise ValueError(
                f"Block.wiring: {self.wiring!r} runs attention and feed-forward side by side: "
                "expected both and no cross-attention; use a serial wiring such as 'pre'"
            )


@dataclass(frozen=True)
class Embedding:
    """One vector per token id, plus position and segment, normed if `norm`, then `dropout`.

    `scale`: "sqrt_dim" multiplies token vectors by sqrt(dim) before positions are added (Vaswani et al. 2017, 3.4).
    """

    vocab: int
    position: Learned | Sinusoidal | None = None
    segments: int = 0
    norm: Norm | None = None
    scale: Literal["sqrt_dim"] | None = None
    dropout: float = 0.0

    def __post_init__(self) -> None:
        whole(1, Embedding__vocab=self.vocab)
        typed(self)
        whole(0, Embedding__segments=self.segments)
        one_of(Literal["sqrt_dim", None], **{"Embedding.scale": self.scale})
        share(Embedding__dropout=self.dropout)


@dataclass(frozen=True)
class Tokens:
    """The ids with a meaning of their own: padding, begin, end of text, what a decoder starts from, other ends."""

    pad: int | None = None
    bos: int | None = None
    eos: int | None = None
    start: int | None = None
    stop: tuple[int, ...] = ()


@dataclass(frozen=True)
class Model:
    """A stream of width `dim`: embedding, blocks, final norm, head. `length` is the context it was trained for.

    `position_bias` is one table of score biases that all self-attentions share. `dropout` acts after the final norm.
    `counted` says which tokens positions count when none are given: the real ones, or all, padding too. `balance` is
    the weight in the loss of how unevenly experts are used (Fedus et al. 2021, arXiv:2101.03961).

    >>> block = Block(Attention(heads=4), FeedForward(hidden=64))
    >>> Model(dim=16, embedding=Embedding(vocab=100), layers=(block,) * 2).layers[1].attention.heads
    4
    """

    dim: int
    embedding: Embedding
    layers: tuple[Block, ...]
    norm: Norm | None = None
    head: Head | Classify | Pool | None = Head()
    length: int | None = None
    tokens: Tokens = Tokens()
    position_bias: Relative | None = None
    dropout: float = 0.0
    counted: Literal["real", "all"] = "real"
    balance: float = 0.0

    def __post_init__(self) -> None:
        whole(1, Model__dim=self.dim)
        if not isinstance(self.layers, tuple):
            raise ValueError(f"Model.layers: expected a tuple of blocks, got {type(self.layers).__name__}")
        typed(self)
        if self.length is not None:
            whole(1, Model__length=self.length)


@dataclass(frozen=True)
class Seq2Seq:
    """An encoder whose output a decoder attends to; `share` uses one token matrix for both embeddings."""

    encoder: Model
    decoder: Model
    share: bool = True


Spec = Model | Seq2Seq
"""A whole architecture."""


def dims(attention: Attention, dim: int) -> tuple[int, int, int]:
    """(kv_heads, head_dim, value_dim) of an attention in a stream of width `dim`, with every None filled in.

    >>> dims(Attention(heads=8), 512)
    (8, 64, 64)
    """
    head_dim = attention.head_dim or dim // attention.heads
    return attention.kv_heads or attention.heads, head_dim, attention.value_dim or head_dim


def scale(attention: Attention, dim: int) -> float:
    """What scores are multiplied by: `attention.scale`, by default 1 / sqrt(head_dim)."""
    at_least(0, Attention__scale=attention.scale or 0.0)
    return float(dims(attention, dim)[1] ** -0.5) if attention.scale is None else attention.scale


def validate(spec: Spec) -> None:
    """Raise ValueError where parts of a spec do not fit each other: heads and dim, encoder and decoder.

    >>> validate(Model(10, Embedding(100), (Block(Attention(heads=4), FeedForward(64)),)))
    Traceback (most recent call last):
    ValueError: layers.0.attention.heads: expected a divisor of dim=10, got 4; choose another number or set head_dim
    """
    if isinstance(spec, Seq2Seq):
        encoder, decoder = spec.encoder, spec.decoder
        if encoder.dim != decoder.dim:
            raise ValueError(f"decoder.dim: expected the encoder's {encoder.dim}, got {decoder.dim}")
        if spec.share and encoder.embedding.vocab != decoder.embedding.vocab:
            raise ValueError(
                f"decoder.embedding.vocab: expected the encoder's {encoder.embedding.vocab}, got "
                f"{decoder.embedding.vocab}; use one vocabulary or share=False"
            )
        if encoder.head is not None:
            raise ValueError("encoder.head: expected None, an encoder's output goes to the decoder; got a head")
        validate(encoder)
        validate(decoder)
        return
    heads = sorted({block.attention.heads for block in spec.layers if block.attention is not None})
    if spec.position_bias is not None and len(heads) > 1:
        raise ValueError(f"position_bias: one table for all layers: expected as many heads in each, got {heads}")
    for index, block in enumerate(spec.layers):
        if block.cross is not None and isinstance(block.cross.position, Rope):
            raise ValueError(
                f"layers.{index}.cross.position: expected no Rope, source and target positions are not comparable; "
                "leave it out"
            )
        for name in ("attention", "cross"):
            attention = getattr(block, name)
            if attention is not None and attention.head_dim is None and spec.dim % attention.heads:
                raise ValueError(
                    f"layers.{index}.{name}.heads: expected a divisor of dim={spec.dim}, got {attention.heads}; "
                    "choose another number or set head_dim"
                )
