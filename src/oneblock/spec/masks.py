"""Who may look at whom, as data: a mask is a rule, never a matrix."""

from __future__ import annotations

from dataclasses import dataclass

from oneblock.spec.choices import whole


class Mask:
    """A rule that says which query may look at which key. `a & b` allows what both allow.

    >>> Causal() & Window(back=3) == Window(back=3) & Causal()
    True
    """

    def __and__(self, other: Mask) -> Mask:
        return Every.of(self, other)


@dataclass(frozen=True)
class Full(Mask):
    """Every query sees every key: an encoder, or cross-attention."""


@dataclass(frozen=True)
class Causal(Mask):
    """A query sees itself and what stands before it (Vaswani et al. 2017, arXiv:1706.03762, section 3.2.3)."""


@dataclass(frozen=True)
class Window(Mask):
    """A query sees at most `back` keys up to and including itself, and at most `ahead` keys after itself.

    `ahead=None` does not limit what comes after (Beltagy et al. 2020, arXiv:2004.05150).

    >>> Window(back=0)
    Traceback (most recent call last):
    ValueError: Window.back: expected a whole number of at least 1, got 0
    """

    back: int
    ahead: int | None = None

    def __post_init__(self) -> None:
        whole(1, Window__back=self.back)
        if self.ahead is not None:
            whole(0, Window__ahead=self.ahead)


@dataclass(frozen=True)
class Every(Mask):
    """What every one of `rules` allows; made by `&`, flat, without order or repeats."""

    rules: frozenset[Mask]

    @staticmethod
    def of(*masks: Mask) -> Mask:
        """The conjunction of masks in its one canonical form: `Full()` vanishes, a single rule stands alone."""
        rules = frozenset(rule for mask in masks for rule in atoms(mask)) - {Full()}
        return next(iter(rules), Full()) if len(rules) < 2 else Every(rules)


def atoms(mask: Mask) -> frozenset[Mask]:
    """The single rules a mask is made of.

    >>> sorted(type(rule).__name__ for rule in atoms(Causal() & Window(back=2)))
    ['Causal', 'Window']
    """
    return mask.rules if isinstance(mask, Every) else frozenset({mask})
