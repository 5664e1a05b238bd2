"""What is made of the stream at the end, as data: logits over a vocabulary, over labels, or one vector per text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from oneblock.spec.choices import Activation, above_zero, one_of, share, whole
from oneblock.spec.norms import LayerNorm, Norm

Pooling = Literal["first", "last", "mean"]
"""Which real tokens speak for a text."""


@dataclass(frozen=True)
class Transform:
    """norm(activation(dense(x))) before the output projection (Devlin et al. 2019, arXiv:1810.04805).

    >>> Transform(activation="gleu")
    Traceback (most recent call last):
    ValueError: Transform.activation: 'gleu' is not one of its words; did you mean gelu?
    """

    activation: Activation = "gelu"
    norm: Norm | None = LayerNorm()

    def __post_init__(self) -> None:
        one_of(Activation, **{"Transform.activation": self.activation})


@dataclass(frozen=True)
class Head:
    """The stream becomes one logit per token of the vocabulary; `tied` shares the matrix with the embedding.

    `scale` multiplies the logits; `softcap` c replaces a logit s by c * tanh(s / c).
    """

    tied: bool = False
    bias: bool = False
    transform: Transform | None = None
    softcap: float | None = None
    scale: float | None = None

    def __post_init__(self) -> None:
        above_zero(Head__softcap=self.softcap)


@dataclass(frozen=True)
class Pool:
    """One vector per text: the stream at its first or last real token, or the mean over them; then `transform`."""

    pool: Pooling = "first"
    transform: Transform | None = None

    def __post_init__(self) -> None:
        one_of(Pooling, **{"Pool.pool": self.pool})


@dataclass(frozen=True)
class Classify:
    """One logit per label for a whole text, from what `Pool` gives, after `dropout`.

    >>> Classify(labels=2, pool="middle")
    Traceback (most recent call last):
    ValueError: Classify.pool: 'middle' is not one of its words; known: first, last, mean
    """

    labels: int
    pool: Pooling = "first"
    transform: Transform | None = None
    bias: bool = True
    dropout: float = 0.0

    def __post_init__(self) -> None:
        whole(1, Classify__labels=self.labels)
        one_of(Pooling, **{"Classify.pool": self.pool})
        share(Classify__dropout=self.dropout)
