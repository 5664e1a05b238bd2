"""What may be traced: a model with ids, or a pipeline or translator with texts; and what its tokens are called.

ids: (batch, length).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from oneblock.bricks import EncoderDecoder, Transformer, shift_right
from oneblock.generate import Pipeline, Translator
from oneblock.generate.kind import stream_of, writer_of
from oneblock.generate.prompts import prompts, within
from oneblock.spec import Classify, Head, Model

Traced = Transformer | EncoderDecoder | Pipeline | Translator
Inputs = str | Tensor | Sequence[int] | Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Asked:
    """A model, the call to make, and how the tokens of each stack read (first text): "" | "encoder." | "decoder."."""

    model: nn.Module
    call: dict[str, Any]
    tokens: dict[str, tuple[str, ...]]


def asked(model: Traced, inputs: Inputs, target: str | Tensor | Sequence[int] | None) -> Asked:
    """The call that is meant. ValueError: a text without a tokenizer, no target where one is needed."""
    holder = model if isinstance(model, Pipeline | Translator) else None
    inner: Any = model if holder is None else holder.model
    if not isinstance(inner, Transformer | EncoderDecoder):
        raise ValueError(f"trace: expected a model, a pipeline or a translator of ours, got {type(model).__name__}")
    if isinstance(inputs, Mapping):
        call = dict(inputs) | read(stream_of(inner), inputs.get("input_ids"), inputs.get("attention_mask"), inner)
    else:
        call = read(stream_of(inner), encoded(holder, inputs) if isinstance(inputs, str) else inputs, None, inner)
    if isinstance(inner, EncoderDecoder) and "decoder_input_ids" not in call:
        call |= answered(inner, holder, inputs, call, target)
    elif target is not None and not isinstance(inner, EncoderDecoder):
        call["labels"] = labels_of(inner, call["input_ids"], target)
    return Asked(inner, call, named(inner, holder, call))


def read(spec: Model, ids: Any, mask: Any, model: nn.Module) -> dict[str, Tensor]:
    """Ids (batch, length) and, where some are padding, a mask, checked against vocabulary and positions."""
    device = next(model.parameters()).device
    found = prompts(ids, mask, vocab=spec.embedding.vocab, device=device, side=None)
    found.fits(spec)
    return {"input_ids": found.ids} | ({} if found.mask is None else {"attention_mask": found.mask})


def encoded(holder: Pipeline | Translator | None, text: str) -> list[int]:
    """Ids of a text, as the model that holds the tokenizer reads it."""
    if holder is None:
        raise ValueError("trace: a text needs a tokenizer; give a Pipeline or a Translator, or token ids")
    if isinstance(holder, Pipeline):
        return holder.encode(text)
    if not text.strip():
        raise ValueError("trace: expected a text, got an empty one")
    return Pipeline(holder.model, holder.tokenizer).encode(text)


def answered(model: Any, holder: Any, inputs: Any, call: dict[str, Any], target: Any) -> dict[str, Any]:
    """What the decoder reads and should answer: the target, by default what the model itself writes."""
    if isinstance(model.spec.decoder.head, Classify):
        return {"decoder_input_ids": shift_right(call["input_ids"], model.spec.decoder.tokens)}
    if isinstance(target, str):
        if holder is None:
            raise ValueError("trace: a target text needs a tokenizer; give a Translator, or token ids")
        ids = holder.tokenizer.encode(target)
        labels = torch.tensor([ids], device=call["input_ids"].device)
    elif target is not None:
        labels = read(writer_of(model), target, None, model)["input_ids"]
    elif isinstance(inputs, str):
        pipeline = holder if isinstance(holder, Pipeline) else Pipeline(holder.model, holder.tokenizer)
        best = pipeline.generate(inputs, max_new_tokens=2 * call["input_ids"].shape[1] + 10)[0][0]
        labels = torch.tensor([best.tokens], device=call["input_ids"].device)
    else:
        raise ValueError("trace: an encoder-decoder needs a target beside its input; give target=")
    within(labels.shape[1], writer_of(model))
    return {"labels": labels, "decoder_input_ids": shift_right(labels, model.spec.decoder.tokens)}


def labels_of(model: Any, ids: Tensor, target: Any) -> Tensor:
    """Labels as the head takes them: ids of the same length for tokens, one number per text for labels."""
    labels = target if isinstance(target, Tensor) else torch.tensor(target if not isinstance(target, str) else [])
    spec: Model = model.spec
    if isinstance(spec.head, Head) and labels.ndim == 1 and len(ids) == 1:
        labels = labels[None]
    if isinstance(target, str) or (isinstance(spec.head, Head) and labels.shape != ids.shape):
        raise ValueError(f"target: expected ids of shape {tuple(ids.shape)}, as the input's, got {target!r:.60}")
    known = spec.embedding.vocab if isinstance(spec.head, Head) else getattr(spec.head, "labels", None)
    if known is not None and (wrong := [x for x in labels.flatten().tolist() if x != -100 and not 0 <= x < known]):
        raise ValueError(f"target: expected 0 to {known - 1} (-100: no answer there), got {wrong[0]}")
    return labels.to(ids.device)


def named(model: Any, holder: Any, call: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """How the tokens of the first text of each stack read."""
    pair = isinstance(model, EncoderDecoder)
    sides = {"encoder.": "input_ids", "decoder.": "decoder_input_ids"} if pair else {"": "input_ids"}
    return {stack: tuple(spelt(holder, token) for token in call[name][0].tolist()) for stack, name in sides.items()}


def spelt(holder: Any, token: int) -> str:
    """A token as it is written in its vocabulary, else its number."""
    tokenizer = getattr(holder, "tokenizer", None)
    word = None if tokenizer is None else tokenizer.token(token)
    return str(token) if not word else str(word)
