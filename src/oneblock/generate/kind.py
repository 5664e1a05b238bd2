"""Which models can do which job: the check that every verb makes before it begins."""

from __future__ import annotations

from typing import Literal

from torch import nn

from oneblock.spec import Classify, Head, Model, Pool, Seq2Seq

__all__ = ["causal_or_pair", "described", "stream_of", "writer_of"]

Kind = Literal["causal", "pair"]


def causal_or_pair(model: nn.Module, verb: str) -> Kind:
    """What kind of model that predicts a next token this is. ValueError: none, with what it is and what it can do."""
    spec = getattr(model, "spec", None)
    if isinstance(spec, Seq2Seq) and isinstance(spec.decoder.head, Head):
        return "pair"
    if isinstance(spec, Model) and isinstance(spec.head, Head) and getattr(model, "causal", False):
        return "causal"
    raise ValueError(f"{verb}: expected a model that predicts the next token, got {described(model)}")


def described(model: nn.Module) -> str:
    """What a model is, and what can be done with it."""
    spec = getattr(model, "spec", None)
    if isinstance(spec, Seq2Seq):
        head = spec.decoder.head
        if isinstance(head, Classify):
            return f"an encoder-decoder that is a classifier of {head.labels} labels; call the model itself"
        return "an encoder-decoder; use generate or score"
    if not isinstance(spec, Model):
        return f"{type(model).__name__}, which has no spec; make it by oneblock.build or load it"
    if isinstance(spec.head, Classify):
        return f"a classifier of {spec.head.labels} labels; use classify"
    if isinstance(spec.head, Pool) or spec.head is None:
        return "a model without a head for tokens; use embed"
    if getattr(model, "causal", False):
        return "a causal language model; use generate or score"
    return "an encoder that sees both sides (a masked language model); use fill or embed"


def stream_of(model: nn.Module) -> Model:
    """The spec of what reads `input_ids`: the model itself, or its encoder."""
    spec = model.spec
    return spec.encoder if isinstance(spec, Seq2Seq) else spec


def writer_of(model: nn.Module) -> Model:
    """The spec of what gives the next token: the model itself, or its decoder."""
    spec = model.spec
    return spec.decoder if isinstance(spec, Seq2Seq) else spec
