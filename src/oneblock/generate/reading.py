"""Read and judge: a vector for a text, words for its gaps, probabilities of its labels.

Shapes: batch = texts, length = tokens of the longest, dim = width of the stream, vocab = tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from oneblock.bricks import Context, EncoderDecoder, Transformer
from oneblock.generate.checks import checked, whole
from oneblock.generate.kind import described, stream_of
from oneblock.generate.mode import evaluating
from oneblock.generate.prompts import MaskLike, Prompts, prompts
from oneblock.spec import Classify, Head, Model, Pool

__all__ = ["Filled", "classify", "embed", "fill"]

Pooling = Literal["mean", "first", "last"]


@dataclass(frozen=True)
class Filled:
    """What may stand in one gap: its `row` and `position` in the input, the best `tokens`, their `probabilities`."""

    row: int
    position: int
    tokens: tuple[int, ...]
    probabilities: tuple[float, ...]


@torch.no_grad()
def embed(
    model: Transformer | EncoderDecoder,
    input_ids: Any,
    attention_mask: MaskLike = None,
    *,
    pooling: Pooling | None = None,
    normalise: bool = True,
) -> Tensor:
    """One vector for each text, (batch, dim) float32: what the stream says about it at the end.

    `pooling` is "mean" over real tokens (Reimers and Gurevych 2019, arXiv:1908.10084), or the "first" or "last" of
    them; None is the model's own way where it has one (a `Pool` head), else the mean. Of an encoder-decoder the encoder
    speaks. With `normalise` vectors have length 1, so that products are cosines. `input_ids` and `attention_mask` are
    those of `generate`. ValueError: an empty text, one that the model has no positions for, an unknown pooling.

    >>> from oneblock.bricks import build_model
    >>> from oneblock.zoo import named
    >>> model = build_model(named("vaswani", dim=8, depth=1, heads=2, hidden=16, vocab=9))
    >>> embed(model, [[5, 6, 2], [7, 2]]).norm(dim=1).round(decimals=3)
    tensor([1., 1.])
    """
    if pooling not in (None, "mean", "first", "last"):
        raise ValueError(f'pooling: expected "mean", "first" or "last", got {pooling!r}')
    spec = _spec(model, "embed")
    read = _read(model, input_ids, attention_mask)
    with evaluating(model):
        if pooling is None and isinstance(spec.head, Pool):
            found = model(read.ids, read.mask).pooled
        else:
            found = _pooled(_stream(model, read), read, pooling or "mean")
    found = found.float()
    return torch.nn.functional.normalize(found, dim=1) if normalise else found


@torch.no_grad()
def fill(
    model: Transformer,
    input_ids: Any,
    mask_token_id: int,
    attention_mask: MaskLike = None,
    *,
    top_k: int = 5,
    vocab: int | None = None,
) -> list[Filled]:
    """The likeliest tokens of every gap, row by row: gaps are where `input_ids` have `mask_token_id`.

    For models that see both sides (Devlin et al. 2019, arXiv:1810.04805). With `vocab`, ids from there on are left out
    before the softmax, so that the probabilities of the others sum to 1: they are rows of a head that no token of the
    tokenizer has. ValueError: no gap at all, another kind of model, a `top_k` or `vocab` below 1.

    >>> from oneblock.bricks import build_model
    >>> from oneblock.spec import Attention, Block, Embedding, FeedForward, Full
    >>> model = build_model(Model(8, Embedding(9), (Block(Attention(2, mask=Full()), FeedForward(16)),)))
    >>> gap = fill(model, [[5, 4, 6]], mask_token_id=4, top_k=3)[0]
    >>> gap.position, len(gap.tokens)
    (1, 3)
    """
    spec = _spec(model, "fill")
    if isinstance(model, EncoderDecoder) or not isinstance(spec.head, Head) or model.causal:
        raise ValueError(f"fill: expected a masked language model, got {described(model)}")
    top_k = whole(1, 2**31)("top_k", top_k)
    vocab = None if vocab is None else checked("vocab", vocab)
    read = _read(model, input_ids, attention_mask)
    gaps = (read.ids == mask_token_id) if read.mask is None else (read.ids == mask_token_id) & read.mask.bool()
    if not bool(gaps.any()):
        raise ValueError(f"fill: expected a gap to fill, the mask token ({mask_token_id}), got none")
    with evaluating(model):
        likely = model.head(_stream(model, read)[gaps])[:, :vocab].float().softmax(-1)  # (gaps, vocab)
    best, tokens = likely.topk(min(top_k, likely.shape[1]))
    columns = zip(gaps.nonzero().tolist(), tokens.tolist(), best.tolist(), strict=True)
    return [Filled(row, at, tuple(names), tuple(shares)) for (row, at), names, shares in columns]


@torch.no_grad()
def classify(model: Transformer, input_ids: Any, attention_mask: MaskLike = None) -> Tensor:
    """The probability of each label, (batch, labels) float32; of a model with one label alone its number as it is.

    `input_ids` and `attention_mask` are those of `generate`. ValueError: a model without labels.
    """
    spec = _spec(model, "classify")
    if not isinstance(spec.head, Classify):
        raise ValueError(f"classify: expected a classifier, got {described(model)}")
    read = _read(model, input_ids, attention_mask)
    with evaluating(model):
        logits: Tensor = model(read.ids, read.mask).logits.float()
    return logits.softmax(-1) if spec.head.labels > 1 else logits


def _spec(model: Any, verb: str) -> Model:
    if not isinstance(model, Transformer | EncoderDecoder):
        raise ValueError(f"{verb}: expected a model made by oneblock.build, got {described(model)}")
    return stream_of(model)


def _read(model: Transformer | EncoderDecoder, input_ids: Any, mask: MaskLike) -> Prompts:
    spec, device = stream_of(model), next(model.parameters()).device
    pad = spec.tokens.pad
    read = prompts(
        input_ids,
        mask,
        pad=0 if pad is None else pad,
        own_pad=pad,
        vocab=spec.embedding.vocab,
        device=device,
        side=None,
    )
    read.fits(spec)
    return read


def _stream(model: Transformer | EncoderDecoder, read: Prompts) -> Tensor:
    """The final stream (batch, length, dim) of the model, or of its encoder."""
    if isinstance(model, EncoderDecoder):
        return model.encode(read.ids, read.mask).x
    ctx = Context(model.places(read.ids, read.mask), bias=model.position_bias)
    return model.stream(read.ids, ctx)[0]


def _pooled(x: Tensor, read: Prompts, pooling: Pooling) -> Tensor:
    real = torch.ones_like(read.ids) if read.mask is None else read.mask
    if pooling == "mean":
        share = real[:, :, None].to(x.dtype)
        return (x * share).sum(1) / share.sum(1)
    at = real.argmax(1) if pooling == "first" else real.shape[1] - 1 - real.flip(1).argmax(1)
    return x[torch.arange(len(x), device=x.device), at]
