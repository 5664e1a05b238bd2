"""What is to be priced: how many texts, how long, training or inference, in which numbers, with which attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from oneblock.cost.cache import backward
from oneblock.cost.count import distinct
from oneblock.hint import nearest
from oneblock.spec import Model, Seq2Seq, Spec
from oneblock.spec.choices import whole

Phase = Literal["train", "prefill", "decode"]
Way = Literal["fused", "plain", "recomputed"]
Loss = Literal["whole", "chunked"]

FLOATS = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes of a number of each type that a model computes in."""
USUAL = 1024
"""Tokens of a text where nobody says how many, if the model has as many positions."""


@dataclass(frozen=True)
class Job:
    """`batch` texts of `length` tokens in one phase.

    phase: "train" forward and backward of `length` tokens and a step of AdamW; "prefill" forward of `length` tokens;
    "decode" forward of one new token after `length` in the cache. dtype: of weights, gradients and activations; the
    optimiser's two moments are float32. source: tokens of the source of an encoder-decoder, by default `length`.
    attention: "fused" (scores never exist whole), "plain" (written out), "recomputed" (none of them is kept, backward
    computes them again); None is what our bricks do. loss: "whole" holds all logits, "chunked" never does.

    >>> Job(length=0)
    Traceback (most recent call last):
    ValueError: length: expected a whole number of at least 1, got 0
    """

    batch: int = 1
    length: int = USUAL
    phase: Phase = "prefill"
    dtype: str = "bfloat16"
    source: int | None = None
    attention: Way | None = None
    loss: Loss = "whole"

    def __post_init__(self) -> None:
        whole(1, batch=self.batch, length=self.length, source=1 if self.source is None else self.source)
        known = {"phase": get_args(Phase), "dtype": tuple(FLOATS), "loss": get_args(Loss)}
        if self.attention is not None:
            known["attention"] = get_args(Way)
        for name, words in known.items():
            if getattr(self, name) not in words:
                said = nearest(getattr(self, name), words)
                raise ValueError(f"{name}: {getattr(self, name)!r} is not one of its words; {said}")

    @property
    def training(self) -> bool:
        """Whether backward follows, so that activations are kept."""
        return self.phase == "train"

    @property
    def tokens(self) -> int:
        """New tokens of each text."""
        return 1 if self.phase == "decode" else self.length

    @property
    def read(self) -> int:
        """Tokens of each source."""
        return self.source or self.length

    @property
    def bytes(self) -> int:
        """Bytes of a number."""
        return FLOATS[self.dtype]


def fit(spec: Spec, job: Job) -> None:
    """Refuse a job that a model cannot do, in one line."""
    if isinstance(spec, Seq2Seq):
        if job.phase != "decode":
            _within(spec.encoder, job.read, "source" if job.source else "length")
        spec = spec.decoder
    if job.phase == "decode" and not writes(spec):
        raise ValueError(
            "phase: expected train or prefill, got decode: this model looks ahead, so it has no next token to write"
        )
    _within(spec, job.length + (job.phase == "decode"), "length", int(job.phase == "decode"))


def _within(model: Model, tokens: int, name: str, new: int = 0) -> None:
    room = positions(model)
    if room is not None and tokens > room:
        raise ValueError(f"{name}: expected at most {room - new}, the model has {room} positions; got {tokens - new}")


def positions(model: Model) -> int | None:
    """How many positions a model has a vector for; None where it has no table of them."""
    length: int | None = getattr(model.embedding.position, "length", None)
    return length


def usual(spec: Spec, phase: Phase = "prefill") -> int:
    """A length that fits: 1,024 tokens, or the model's positions if it has fewer.

    >>> from oneblock.spec import Block, Embedding, Learned
    >>> usual(Model(8, Embedding(10, Learned(512)), ()))
    512
    """
    stacks = (spec.encoder, spec.decoder) if isinstance(spec, Seq2Seq) else (spec,)
    rooms = [room for room in map(positions, stacks) if room is not None]
    return max(1, min([USUAL, *(room - (phase == "decode") for room in rooms)]))


def writes(model: Model) -> bool:
    """Whether no query sees anything ahead, so that a text can be written on."""
    attentions = [block.attention for block in distinct(model.layers) if block.attention is not None]
    return bool(attentions) and all(backward(attention) for attention in attentions)
