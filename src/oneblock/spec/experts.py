"""Feed-forward layers as data: one for all tokens, or many experts of which a router picks a few for each token."""

from __future__ import annotations

from dataclasses import dataclass

from oneblock.spec.choices import Activation, one_of, share, whole


@dataclass(frozen=True)
class FeedForward:
    """down(activation(up(x))), or down(activation(gate(x)) * up(x)) when `gated` (Shazeer 2020, arXiv:2002.05202).

    Acts on each token on its own. `dropout` acts on the hidden features.
    """

    hidden: int
    activation: Activation = "gelu"
    gated: bool = False
    bias: bool = False
    dropout: float = 0.0

    def __post_init__(self) -> None:
        whole(1, FeedForward__hidden=self.hidden)
        one_of(Activation, **{"FeedForward.activation": self.activation})
        share(FeedForward__dropout=self.dropout)


@dataclass(frozen=True)
class Softmax:
    """Weights are the softmax over all experts at the chosen ones; `renormalise` makes them sum to 1."""

    renormalise: bool = True


@dataclass(frozen=True)
class TopSoftmax:
    """Weights are the softmax over the chosen experts' scores alone: the same as a renormalised softmax over all."""


@dataclass(frozen=True)
class MoE:
    """`experts` feed-forwards, of which each token uses the `active` ones that a linear router scores highest.

    The output is the sum of theirs, weighted as `router` says (Shazeer et al. 2017, arXiv:1701.06538; Jiang et al.
    2024, arXiv:2401.04088).

    >>> MoE(FeedForward(64), experts=4, active=5)
    Traceback (most recent call last):
    ValueError: MoE.active: expected at most experts=4, got 5
    """

    expert: FeedForward
    experts: int
    active: int = 2
    router: Softmax | TopSoftmax = Softmax()

    def __post_init__(self) -> None:
        whole(1, MoE__experts=self.experts, MoE__active=self.active)
        if self.active > self.experts:
            raise ValueError(f"MoE.active: expected at most experts={self.experts}, got {self.active}")
        if self.expert.bias or self.expert.dropout:
            raise ValueError("MoE.expert: expected no bias and no dropout: the experts' matrices are stacked")
