"""The rows of what comes out for a whole text: pooled to one vector, perhaps transformed, perhaps scored per label.

Shapes are (batch, dim) for a vector per text, (batch, labels) for scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from oneblock.draw.describe import details, formula, number, without_bias
from oneblock.draw.tree import Row, Size, View, row, rows_of
from oneblock.spec import Classify, Pool
from oneblock.words import label, say


@details.register
def _(brick: Pool, _dim: int, lang: str) -> tuple[str, ...]:
    return (say(f"pool.{brick.pool}", lang).name,)


@details.register
def _(brick: Classify, dim: int, lang: str) -> tuple[str, ...]:
    return f"{number(dim)} → {number(brick.labels)}", say(f"pool.{brick.pool}", lang).name


@rows_of.register
def _(brick: Pool, view: View) -> Iterator[Row]:
    shape = (label("batch", view.lang), view.dim)
    yield row(view, "Pool", details(brick, view.dim, view.lang), formula(brick, view.dim), shape)
    if view.level < view.depth:
        yield from _pooled(brick, view, shape)


@rows_of.register
def _(brick: Classify, view: View) -> Iterator[Row]:
    batch = label("batch", view.lang)
    shape = (batch, brick.labels)
    yield row(view, "Classify", details(brick, view.dim, view.lang), formula(brick, view.dim), shape)
    if view.level >= view.depth:
        return
    yield from _pooled(brick, view, (batch, view.dim))
    written = say("step.labels").formula
    yield row(view.inner("out"), "step.labels", (), written if brick.bias else without_bias(written), shape)


def _pooled(brick: Pool | Classify, view: View, shape: tuple[Size, ...]) -> Iterator[Row]:
    yield row(view.inner("pool"), f"pool.{brick.pool}", shape=shape)
    if brick.transform is not None:
        yield from (replace(one, shape=shape) for one in rows_of(brick.transform, view.inner("transform")))
