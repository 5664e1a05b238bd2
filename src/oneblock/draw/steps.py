"""The rows of what stands inside a stream: embedding, block, attention, feed-forward, head, and the steps in them.

Shapes are of what comes out: (batch, length, dim) for a stream, (batch, heads, length, head_dim) inside attention.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from oneblock.draw.describe import (
    capped,
    details,
    everything,
    formula,
    kind,
    masks,
    number,
    residual,
    scores,
    without_bias,
)
from oneblock.draw.tree import Row, Size, View, row, rows_of
from oneblock.spec import SLOTS, Attention, Block, Embedding, FeedForward, Head, Rope, Transform, Whole, dims
from oneblock.words import label, say


@rows_of.register
def _(brick: Embedding, view: View) -> Iterator[Row]:
    yield row(view, "Embedding", details(brick, view.dim, view.lang), formula(brick, view.dim))
    if view.level >= view.depth:
        return
    if brick.position is not None:
        yield from rows_of(brick.position, view.inner("position"))
    if brick.segments:
        yield row(view.inner("segment"), "Embedding.segment", (label("segments", view.lang, brick.segments),))
    if brick.norm is not None:
        yield from rows_of(brick.norm, view.inner("norm"))


@rows_of.register
def _(brick: Block, view: View) -> Iterator[Row]:
    yield row(view, "Block", (say(f"wiring.{brick.wiring}", view.lang).name,), formula(brick, view.dim))
    if view.level >= view.depth:
        return
    parallel = brick.wiring.startswith("parallel")
    for name in ("attention", "cross", "feedforward"):
        sublayer = getattr(brick, name)
        if sublayer is None:
            continue
        slots = () if brick.wiring == "parallel-shared" and name == "feedforward" else SLOTS[brick.wiring]
        if "pre" in slots:
            yield from rows_of(brick.norm, view.inner(f"norms.{name}_pre"))
        inner = view.inner(name)
        yield from attention_rows(sublayer, inner, cross=True) if name == "cross" else rows_of(sublayer, inner)
        if "branch" in slots:
            yield from rows_of(brick.norm, view.inner(f"norms.{name}_branch"))
        if brick.skip and not (parallel and name == "attention"):
            yield row(view.inner(f"{name}_residual"), "residual", written=_sum(brick))
        if "post" in slots:
            yield from rows_of(brick.norm, view.inner(f"norms.{name}_post"))


def _sum(brick: Block) -> str:
    """The addition after a sublayer; side by side there are two sublayers to add."""
    said = residual(brick)
    return said.replace("f(x)", "f₁(x) + f₂(x)") if brick.wiring.startswith("parallel") else said


@rows_of.register
def _(brick: Attention, view: View) -> Iterator[Row]:
    yield from attention_rows(brick, view)


def attention_rows(brick: Attention, view: View, cross: bool = False) -> Iterator[Row]:
    """The rows of an attention; with `cross` its keys and values come from the memory."""
    yield row(view, kind(brick, cross), details(brick, view.dim, view.lang), formula(brick, view.dim, cross))
    if view.level >= view.depth:
        return
    kv_heads, head_dim, value_dim = dims(brick, view.dim)
    batch, here, there = label("batch", view.lang), view.queries, view.keys if cross else view.queries
    projections: tuple[tuple[str, str, int, Size, int], ...] = (
        ("q", "step.query", brick.heads, here, head_dim),
        ("k", "step.key", kv_heads, there, head_dim),
        ("v", "step.value", kv_heads, there, value_dim),
    )
    for name, words, heads, length, width in projections:
        written = say(words).formula if brick.bias else without_bias(say(words).formula)
        written = written.replace("x W", "memory W") if cross and name != "q" else written
        yield row(view.inner(name), words, written=written, shape=(batch, heads, length, width))
        if brick.qk_norm is not None and name != "v":
            inner, each = view.inner(f"{name}_norm", dim=head_dim), (batch, heads, length, width)
            yield from (replace(one, shape=each) for one in rows_of(brick.qk_norm, inner))
    if brick.position is not None:
        last = head_dim if isinstance(brick.position, Rope) else there
        said, shape = details(brick.position, head_dim, view.lang), (batch, brick.heads, here, last)
        yield row(view.inner("position"), type(brick.position).__name__, said, shape=shape)
        if isinstance(brick.position, Rope) and brick.position.scaling is not None:
            scaling = brick.position.scaling
            said = details(scaling, head_dim, view.lang)
            yield row(view.inner("position.scaling"), type(scaling).__name__, said, shape=shape)
    square = (batch, brick.heads, here, there)
    yield row(view.inner("scores"), "step.scores", written=f"s = {scores(brick, view.dim)}", shape=square)
    masked = say("step.pattern").formula.replace(" + mask", "") if everything(brick) else ""
    yield row(view.inner("pattern"), "step.pattern", masks(brick, view.lang), masked, shape=square)
    yield row(view.inner("z"), "step.z", shape=(batch, brick.heads, here, value_dim))
    out = say("step.out").formula
    biased = brick.bias if brick.out_bias is None else brick.out_bias
    yield row(view.inner("out"), "step.out", written=out if biased else without_bias(out))


@rows_of.register
def _(brick: Whole, view: View) -> Iterator[Row]:
    """One row: its norm is the only part, and works on all heads of a token as one vector."""
    yield row(view, "Whole", (say(kind(brick.norm), view.lang).name, *details(brick.norm, view.dim, view.lang)))


@rows_of.register
def _(brick: FeedForward, view: View) -> Iterator[Row]:
    yield row(view, kind(brick), details(brick, view.dim, view.lang), formula(brick, view.dim))
    if view.level >= view.depth:
        return
    bend = say(brick.activation).symbol
    for name in ("up", "gate", "hidden", "down"):
        if name == "gate" and not brick.gated:
            continue
        words = f"step.{name}.gated" if name == "hidden" and brick.gated else f"step.{name}"
        written = say(words).formula.replace("σ", bend)
        shape = view.stream(view.dim if name == "down" else brick.hidden)
        yield row(view.inner(name), words, written=written if brick.bias else without_bias(written), shape=shape)


@rows_of.register
def _(brick: Transform, view: View) -> Iterator[Row]:
    yield row(view, "Transform", details(brick, view.dim, view.lang), formula(brick, view.dim))


@rows_of.register
def _(brick: Head, view: View) -> Iterator[Row]:
    vocab = view.vocab
    sizes = (f"{number(view.dim)} → {number(vocab)}",)
    yield row(view, kind(brick), sizes, formula(brick, view.dim), shape=view.stream(vocab))
    if view.level >= view.depth or brick.transform is None:
        return
    yield from rows_of(brick.transform, view.inner("transform"))
    written = say("step.logits").formula if brick.bias else without_bias(say("step.logits").formula)
    yield row(view.inner("out"), "step.logits", written=capped(written, brick.softcap), shape=view.stream(vocab))
