"""Named terms of a cost, each with its closed formula, and the place in a model where they are said.

Columns: forward and backward (FLOPs, 2 per multiply-add, of matrix products only), moved (bytes read and written, where
operations run one after the other), and bytes held: weights, activations, gradients, optimiser, cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

from oneblock.cost.form import Form
from oneblock.cost.job import Job
from oneblock.spec import Relative

Column = Literal["forward", "backward", "moved", "weights", "activations", "gradients", "optimiser", "cache"]
COLUMNS: tuple[Column, ...] = get_args(Column)
HELD: tuple[Column, ...] = ("weights", "activations", "gradients", "optimiser", "cache")
"""Columns of bytes that lie in memory at the same time."""


@dataclass(frozen=True)
class Term:
    """One amount of a brick: `name` has its sentence in the dictionary as "cost.<name>"."""

    column: Column
    name: str
    form: Form
    sizes: dict[str, int]

    @property
    def value(self) -> int:
        """The formula with its sizes filled in."""
        return self.form.value(self.sizes)


@dataclass(frozen=True)
class Site:
    """Where in a model we are: the job, the named sizes there, whether the stream was kept for backward already."""

    job: Job
    sizes: Mapping[str, int]
    path: str = ""
    kept: bool = False
    bias: Relative | None = None

    def at(self, name: str = "", **changes: Any) -> Site:
        """The site of a part called `name`."""
        return replace(self, path=f"{self.path}.{name}".strip("."), **changes)

    def sized(self, **sizes: int) -> Site:
        """The same with more sizes known."""
        return replace(self, sizes={**self.sizes, **sizes})

    def term(self, column: Column, name: str, written: str) -> Term:
        """One term with the sizes that it speaks of."""
        form = Form(" ".join(written.split()))
        return Term(column, name, form, {size: self.sizes[size] for size in sorted(form.names)})

    def product(
        self,
        name: str,
        rows: str,
        inner: str,
        columns: str,
        each: str = "",
        second: str = "",
        again: int = 2,
        moved: str = "bytes",
    ) -> Iterator[Term]:
        """The terms of (rows, inner) times (inner, columns), `each` times; backward makes `again` such products.

        `second` is what the second factor has where that is not each * inner * columns; without `moved`, nothing is
        said of what is read and written.
        """
        yield self.term("forward", name, f"2 {each} {rows} {inner} {columns}")
        if self.job.training:
            yield self.term("backward", name, f"{2 * again} {each} {rows} {inner} {columns}")
        if moved:
            times = 1 + again if self.job.training else 1
            factors = (f"{each} {rows} {inner}", second or f"{each} {inner} {columns}", f"{each} {rows} {columns}")
            yield self.term("moved", name, " + ".join(f"{times} {factor} {moved}" for factor in factors))

    def moves(self, name: str, written: str) -> Iterator[Term]:
        """What an operation that is no product reads and writes; backward about twice as much again."""
        times = "3 " if self.job.training else ""
        yield self.term("moved", name, " + ".join(f"{times}{summand}" for summand in written.split(" + ")))

    def keeps(self, name: str, written: str) -> Iterator[Term]:
        """What backward will need again, in training."""
        if self.job.training:
            yield self.term("activations", f"kept.{name}", written)

    def dropped(self, rate: float, written: str) -> Iterator[Term]:
        """Dropout: in training a mask as large as what it acts on, in numbers of the same type."""
        if rate and self.job.training:
            yield from self.moves("dropout", f"8 {written} bytes")
            yield from self.keeps("dropout", f"{written} bytes")


@dataclass(frozen=True)
class Line:
    """One brick of a model, `times` alike in `layers`: its terms, those of the bricks inside it left out."""

    path: str
    brick: Any
    times: int
    layers: tuple[int, ...]
    terms: tuple[Term, ...]
    parameters: int = 0

    def total(self, column: Column) -> int:
        """What all of them cost together."""
        return self.times * self.sums[column]

    @cached_property
    def sums(self) -> dict[Column, int]:
        """What one of them costs, column by column."""
        found = dict.fromkeys(COLUMNS, 0)
        for term in self.terms:
            found[term.column] += term.value
        return found
