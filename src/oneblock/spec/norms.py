"""Norms as data: how a vector is brought back to unit scale before or after a sublayer."""

from __future__ import annotations

from dataclasses import dataclass

from oneblock.spec.choices import at_least


@dataclass(frozen=True)
class LayerNorm:
    """(x - mean) / sqrt(variance + eps) * weight + bias, per token over features (Ba et al. 2016, arXiv:1607.06450).

    The variance is the biased one (divided by dim). `eps` differs between families (1e-12 ... 1e-5).
    """

    eps: float = 1e-5
    bias: bool = True

    def __post_init__(self) -> None:
        at_least(0, LayerNorm__eps=self.eps)


@dataclass(frozen=True)
class SigmaNorm:
    """(x - mean) / (sigma + eps) * weight + bias: the variant of some notes and tutorials, kept to reproduce them.

    `unbiased` divides the variance by dim - 1, as `torch.Tensor.std` does by default. At sigma 1e-3 and eps 1e-5 it is
    3.3 times what LayerNorm gives with the same eps.
    """

    eps: float = 1e-6
    bias: bool = True
    unbiased: bool = False

    def __post_init__(self) -> None:
        at_least(0, SigmaNorm__eps=self.eps)


@dataclass(frozen=True)
class RMSNorm:
    """x / sqrt(mean(x^2) + eps) * weight: no mean, no bias (Zhang and Sennrich 2019, arXiv:1910.07467).

    `centred` stores the weight around zero and multiplies by 1 + weight.
    """

    eps: float = 1e-5
    centred: bool = False

    def __post_init__(self) -> None:
        at_least(0, RMSNorm__eps=self.eps)


Norm = LayerNorm | SigmaNorm | RMSNorm


@dataclass(frozen=True)
class Whole:
    """A norm over all heads of a token's queries or keys together, not head by head (arXiv:2501.00656)."""

    norm: Norm
