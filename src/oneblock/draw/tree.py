"""A spec as a list of its bricks, outer before inner: what each is, its formula, what comes out of it, what it learns.

Shapes are of what comes out: (batch, length, dim) for a stream, (batch, heads, length, head_dim) inside attention.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

from oneblock.cost import parts
from oneblock.draw.describe import details, formula, kind
from oneblock.draw.fold import Run, fold
from oneblock.spec import Classify, Model, Pool, Seq2Seq, Spec
from oneblock.words import label, say

Size = int | str


@dataclass(frozen=True)
class Row:
    """One brick: `parameters` is what one of its `times` copies learns; `shared` names the matrix it borrows."""

    level: int
    path: str
    name: str
    details: str
    formula: str
    shape: tuple[Size, ...]
    times: int
    parameters: int
    shared: str = ""

    @property
    def total(self) -> int:
        """Parameters of all copies."""
        return self.times * self.parameters


@dataclass(frozen=True)
class View:
    """Where in the tree we stand, and how we want it shown."""

    lang: str
    depth: int
    counts: dict[str, int]
    shared: dict[str, str]
    queries: Size
    keys: Size
    path: str = ""
    level: int = 0
    dim: int = 0
    vocab: int = 0

    def inner(self, name: str = "", level: int = 1, **changes: Any) -> View:
        """The view of a part called `name`."""
        path = f"{self.path}.{name}".strip(".")
        return replace(self, path=path, level=self.level + level, **changes)

    def count(self) -> int:
        """Parameters of everything under this path."""
        at = f"{self.path}." if self.path else ""
        return sum(count for name, count in self.counts.items() if name.startswith(at))

    def stream(self, width: Size | None = None) -> tuple[Size, ...]:
        """The shape of the stream here."""
        return label("batch", self.lang), self.queries, self.dim if width is None else width


def rows(spec: Spec, lang: str = "en", depth: int = 2, length: int | None = None) -> tuple[Row, ...]:
    """Every brick of a spec down to `depth`: 0 the whole, 1 its streams' parts, 2 sublayers, 3 the steps inside them.

    `length` is the number of tokens in the shapes, by default the word. Runs of equal layers are one row.

    >>> from oneblock.zoo import named
    >>> [(row.name, row.total) for row in rows(named("vaswani"), depth=0)]
    [('Encoder-decoder', 63082496), ('Encoder', 37858304), ('Decoder', 25224192)]
    """
    if depth < 0:
        raise ValueError(f"depth: expected 0 or more, got {depth}")
    if length is not None and length < 1:
        raise ValueError(f"length: expected 1 or more, got {length}")
    counts = {name: count for part in parts(spec) for name, count in part.counts.items()}
    shared = {f"{part.path}.{name}": other for part in parts(spec) for name, other in part.shared.items()}
    here = length or label("length", lang)
    return tuple(rows_of(spec, View(lang, depth, counts, shared, here, here)))


@singledispatch
def rows_of(brick: Any, view: View) -> Iterator[Row]:
    """The rows of one brick; a new type of brick with parts inside registers its own."""
    yield row(view, kind(brick), details(brick, view.dim, view.lang), formula(brick, view.dim))


def row(
    view: View,
    words: str,
    said: tuple[str, ...] = (),
    written: str = "",
    shape: tuple[Size, ...] | None = None,
    parameters: int | None = None,
    whole: bool = False,
) -> Row:
    """A row for the brick at `view`, with a stream coming out unless `shape` says otherwise.

    `whole` is a row for many bricks, which borrows nothing even if one of them does.
    """
    name, at = say(words, view.lang).name, f"{view.path}."
    borrowed = "" if whole else next((other for name, other in view.shared.items() if name.startswith(at)), "")
    count = view.count() if parameters is None else parameters
    written, shape = written or say(words).formula, shape or view.stream()
    return Row(view.level, view.path, name, " · ".join(said), written, shape, 1, count, borrowed)


@rows_of.register
def _(spec: Seq2Seq, view: View) -> Iterator[Row]:
    word = label("length", view.lang)
    source, target = (view.queries if view.queries != word else label(name, view.lang) for name in ("source", "target"))
    view = replace(view, dim=spec.decoder.dim, queries=target, keys=source)
    yield row(view, "Seq2Seq", shape=_out(spec.decoder, view), whole=True)
    for name, model, queries in (("encoder", spec.encoder, source), ("decoder", spec.decoder, target)):
        inner = view.inner(name, dim=model.dim, queries=queries)
        yield row(inner, name, shape=_out(model, inner), whole=True)
        yield from _stream(model, replace(inner, depth=view.depth + 1))


@rows_of.register
def _(model: Model, view: View) -> Iterator[Row]:
    view = replace(view, dim=model.dim)
    yield row(view, "Model", shape=_out(model, view), whole=True)
    yield from _stream(model, view)


def _out(model: Model, view: View) -> tuple[Size, ...]:
    """The shape of what a model gives: per token, or per text."""
    if isinstance(model.head, Pool | Classify):
        return label("batch", view.lang), model.dim if isinstance(model.head, Pool) else model.head.labels
    return view.stream(model.dim if model.head is None else model.embedding.vocab)


def _stream(model: Model, view: View) -> Iterator[Row]:
    if view.level >= view.depth:
        return
    view = replace(view, vocab=model.embedding.vocab)
    yield from rows_of(model.embedding, view.inner("embedding"))
    if model.position_bias is not None:
        heads = next((block.attention.heads for block in model.layers if block.attention), 0)
        shape = (heads, view.queries, view.queries)
        yield row(view.inner("position_bias"), "Relative", shape=shape)
    for run in fold(model.layers):
        yield from _run(run, view)
    if model.norm is not None:
        yield from rows_of(model.norm, view.inner("norm"))
    if model.head is not None:
        yield from rows_of(model.head, view.inner("head"))


def _run(run: Run, view: View) -> Iterator[Row]:
    inner = view.inner(f"layers.{run.start}")
    if len(run.blocks) == 1:
        folded = tuple(rows_of(run.blocks[0], inner))
        yield replace(folded[0], times=run.times, path=_covering(folded[0], inner, run))
        yield from (replace(one, path=_covering(one, inner, run)) for one in folded[1:])
        return
    counted = sum(view.inner(f"layers.{run.start + index}").count() for index in range(len(run.blocks)))
    pattern = (f"{len(run.blocks)} × {say('Block', view.lang).name}",)
    many = row(view.inner(f"layers.{run.layers}"), "Block", pattern, " ", parameters=counted, whole=True)
    yield replace(many, times=run.times)
    for part in fold(run.blocks, run.start):
        yield from _run(part, replace(view, depth=view.depth + 1, level=view.level + 1))


def _covering(one: Row, first: View, run: Run) -> str:
    """The path of a row of a run's first layer, made to name every layer of the run."""
    return f"{first.path.removesuffix(str(run.start))}{run.layers}{one.path.removeprefix(first.path)}"
