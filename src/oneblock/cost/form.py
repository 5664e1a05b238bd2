"""A closed formula as data: a sum of products of named sizes, which can be read and computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from oneblock.hint import nearest


@dataclass(frozen=True)
class Form:
    """Written "2 batch tokens dim + 4 dim": names and whole numbers side by side are multiplied.

    >>> form = Form("2 batch tokens dim + 4 dim")
    >>> form.text, form.value({"batch": 3, "tokens": 5, "dim": 8})
    ('2 · batch · tokens · dim + 4 · dim', 272)
    """

    written: str

    @cached_property
    def products(self) -> list[list[str]]:
        """The factors of each summand."""
        return [summand.split() for summand in self.written.split(" + ")]

    @property
    def text(self) -> str:
        """As people read it."""
        return " + ".join(" · ".join(factors) for factors in self.products)

    def filled(self, sizes: Mapping[str, int]) -> str:
        """With the numbers in the place of the names.

        >>> Form("2 tokens dim").filled({"tokens": 1024, "dim": 768})
        '2 · 1,024 · 768'
        """
        shown = [[f if f.isdigit() else f"{sizes[f]:,}" for f in factors] for factors in self.products]
        return " + ".join(" · ".join(factors) for factors in shown)

    @property
    def latex(self) -> str:
        r"""As papers write it.

        >>> print(Form("2 tokens head_dim").latex)
        2 \cdot \mathrm{tokens} \cdot \mathrm{head\_dim}
        """
        shown = [[_latex(factor) for factor in factors] for factors in self.products]
        return " + ".join(r" \cdot ".join(factors) for factors in shown)

    @property
    def names(self) -> frozenset[str]:
        """The sizes that it speaks of."""
        return frozenset(factor for factors in self.products for factor in factors if not factor.isdigit())

    def value(self, sizes: Mapping[str, int]) -> int:
        """The number that it gives. ValueError for a name that `sizes` does not hold."""
        if missing := self.names - sizes.keys():
            name = min(missing)
            raise ValueError(f"formula {self.text!r}: no size {name!r}; {nearest(name, sizes)}")
        return sum(prod(int(f) if f.isdigit() else sizes[f] for f in factors) for factors in self.products)


def _latex(factor: str) -> str:
    return factor if factor.isdigit() else rf"\mathrm{{{factor.replace('_', chr(92) + '_')}}}"
