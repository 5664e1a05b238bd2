"""How likely a text is: the log-probability of each of its tokens, and the perplexity of the whole.

Shapes: batch = texts, length = tokens, target = target tokens.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from oneblock.bricks import EncoderDecoder, Transformer, shift_right
from oneblock.bricks.loss import IGNORED
from oneblock.generate.kind import causal_or_pair, stream_of
from oneblock.generate.prompts import MaskLike, Prompts, prompts

__all__ = ["perplexity", "score"]

CHUNK = 256
"""Positions whose logits exist together."""


@torch.no_grad()
def score(
    model: Transformer | EncoderDecoder,
    input_ids: Any,
    targets: Tensor | None = None,
    attention_mask: MaskLike = None,
) -> Tensor:
    """The log-probability of each token, given those before it: float32, 0 where there is nothing to score.

    A causal model scores `input_ids` (batch, length) themselves: the first real token of each text, which nothing comes
    before, and padding have 0. An encoder-decoder scores `targets` (batch, target), translations of `input_ids` with
    their end token and -100 behind it. All tokens are scored in one pass; the sum over a row is what a search reports
    as `logprob`. `attention_mask` (batch, length) belongs to `input_ids`; both are those of `generate`, rows of a list
    filled up on the right. The model is used in the mode it is in.

    ValueError: a model that predicts no next token, ids beyond its vocabulary, texts beyond its positions, targets
    where none belong or none where some do.

    >>> from oneblock.bricks import build_model
    >>> from oneblock.zoo import named
    >>> model = build_model(named("vaswani", dim=8, depth=1, heads=2, hidden=16, vocab=9)).eval()
    >>> score(model, torch.tensor([[5, 6, 2]]), torch.tensor([[7, 2, -100]])).shape
    torch.Size([1, 3])
    """
    kind, reader = causal_or_pair(model, "score"), stream_of(model)
    read = _read(model, input_ids, attention_mask)
    read.fits(reader)
    input_ids, attention_mask = read.ids, read.mask
    if kind == "causal":
        if targets is not None:
            raise ValueError("score: a causal model scores input_ids themselves, got targets too; join them")
        x = model(input_ids, attention_mask, logits_to_keep=0).encoder_outputs.x
        found = _logprob(model, x[:, :-1], input_ids[:, 1:])
        if attention_mask is not None:
            found = found.masked_fill(attention_mask[:, 1:] * attention_mask[:, :-1] == 0, 0.0)
        return torch.nn.functional.pad(found, (1, 0))
    if targets is None:
        raise ValueError("score: an encoder-decoder scores targets, got none; pass targets=")
    targets = _answers(targets, len(input_ids), model.spec.decoder.embedding.vocab)
    before = shift_right(targets, model.spec.decoder.tokens)
    memory = model.encode(input_ids, attention_mask)
    found = _logprob(model.decoder, model.features(memory, before)[0], targets.clamp(min=0))
    return found.masked_fill(targets == IGNORED, 0.0)


def perplexity(
    model: Transformer | EncoderDecoder,
    input_ids: Any,
    targets: Tensor | None = None,
    attention_mask: MaskLike = None,
) -> Tensor:
    """exp of the mean surprise of the tokens that `score` scores, (batch,): 1 is certain, vocab is clueless.

    Arguments and errors are those of `score`; NaN where a text has nothing to score.
    """
    logprob = score(model, input_ids, targets, attention_mask)
    if targets is not None:
        count = (targets != IGNORED).sum(1)
    else:
        read = _read(model, input_ids, attention_mask)
        count = (torch.ones_like(read.ids) if read.mask is None else read.mask).sum(1) - 1
    return (-logprob.sum(1) / count).exp()


def _answers(targets: Any, batch: int, vocab: int) -> Tensor:
    """Targets as ids (batch, target). ValueError: of another shape, ids beyond the vocabulary."""
    found = targets if isinstance(targets, Tensor) else torch.as_tensor(targets)
    if found.is_floating_point() or found.ndim != 2 or len(found) != batch:
        raise ValueError(f"targets: expected ids ({batch}, target), got {found.dtype} {tuple(found.shape)}")
    wrong = found[(found != IGNORED) & ((found < 0) | (found >= vocab))]
    if len(wrong):
        raise ValueError(f"targets: expected ids from 0 to {vocab - 1}, or {IGNORED} to leave out, got {int(wrong[0])}")
    return found


def _read(model: Transformer | EncoderDecoder, input_ids: Any, mask: MaskLike) -> Prompts:
    device, vocab = next(model.parameters()).device, stream_of(model).embedding.vocab
    return prompts(input_ids, mask, vocab=vocab, device=device, side=None)


def _logprob(decoder: Transformer, x: Tensor, targets: Tensor) -> Tensor:
    """log softmax of each target (batch, length) from the final stream, a chunk of positions after the other."""
    pieces = [
        decoder.head(part).float().log_softmax(-1).gather(-1, wanted[:, :, None])[:, :, 0]
        for part, wanted in zip(x.split(CHUNK, 1), targets.split(CHUNK, 1), strict=True)
    ]
    return torch.cat(pieces, 1) if pieces else x.new_zeros(targets.shape, dtype=torch.float32)
