"""A mixture of experts as rows: the router, what it chooses, one expert of many, and the sum.

Shapes are of what comes out: (batch, length, experts) for the router, (routed, hidden) inside an expert, which sees
only the tokens that are sent to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from oneblock.draw.describe import details, formula, kind
from oneblock.draw.tree import Row, View, row, rows_of
from oneblock.spec import MoE
from oneblock.words import label, say


@details.register
def _(brick: MoE, dim: int, lang: str) -> tuple[str, ...]:
    return label("chosen of", lang, brick.active, brick.experts), *details(brick.expert, dim, lang)


@rows_of.register
def _(brick: MoE, view: View) -> Iterator[Row]:
    yield row(view, "MoE", details(brick, view.dim, view.lang), formula(brick, view.dim))
    if view.level >= view.depth:
        return
    routed = label("chosen of", view.lang, brick.active, brick.experts)
    yield row(view.inner("router"), "step.router", shape=view.stream(brick.experts))
    weighed = (say(kind(brick.router), view.lang).name, routed)
    written = say(kind(brick.router)).formula.replace("top", f"top {brick.active}")
    yield row(view.inner("weights"), "step.weights", weighed, written, view.stream(brick.active))
    for one in rows_of(brick.expert, view.inner("experts")):
        shape = (label("routed", view.lang), one.shape[-1])
        times = brick.experts if one.path.endswith("experts") else 1
        yield replace(one, shape=shape, times=times, parameters=one.parameters // brick.experts)
    yield row(view.inner("mix"), "step.mix")
