"""What each brick costs besides attention: norms, feed-forward, experts, embedding, head; one registered rule each.

`moved` counts what our bricks read and write when their operations run one after the other, as in eager torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch
from typing import Any

from oneblock.cost.terms import Site, Term
from oneblock.spec import (
    Block,
    Classify,
    Embedding,
    FeedForward,
    Head,
    LayerNorm,
    Learned,
    MoE,
    Pool,
    RMSNorm,
    SigmaNorm,
    Sinusoidal,
    Softmax,
    Transform,
    Whole,
)

RESULT = ("relu", "tanh")
"""Activations whose backward needs what came out of them; the others need what went in."""
ROWS, STREAM = "batch tokens", "batch tokens dim"


@singledispatch
def terms(brick: Any, site: Site, rows: str = ROWS, width: str = "dim") -> Iterator[Term]:  # noqa: ARG001
    """The terms of one brick, those of bricks inside it left out; `rows` vectors of `width` go through it."""
    yield from ()


@terms.register
def _(brick: LayerNorm, site: Site, rows: str = ROWS, width: str = "dim") -> Iterator[Term]:  # noqa: ARG001
    over = f"{rows} {width}"
    yield from site.moves("norm", f"3 {over} bytes")
    if not site.kept:
        yield from site.keeps("input", f"{over} bytes")
    yield from site.keeps("statistics", f"2 {rows} bytes")


@terms.register
def _(brick: RMSNorm, site: Site, rows: str = ROWS, width: str = "dim") -> Iterator[Term]:  # noqa: ARG001
    over = f"{rows} {width}"
    yield from site.moves("norm", f"7 {over} 4")
    if site.job.bytes != 4:  # the input is widened first, so it is this copy that is kept
        yield from site.keeps("input", f"{over} 4")
    elif not site.kept:
        yield from site.keeps("input", f"{over} bytes")
    yield from site.keeps("unit", f"{over} 4")
    yield from site.keeps("statistics", f"{rows} 4 + {width} 4")


@terms.register
def _(brick: SigmaNorm, site: Site, rows: str = ROWS, width: str = "dim") -> Iterator[Term]:  # noqa: ARG001
    over = f"{rows} {width}"
    yield from site.moves("norm", f"10 {over} bytes")
    if not site.kept:
        yield from site.keeps("input", f"{over} bytes")
    yield from site.keeps("unit", f"2 {over} bytes")
    yield from site.keeps("statistics", f"2 {rows} bytes")


@terms.register
def _(brick: Whole, site: Site, rows: str = ROWS, width: str = "dim") -> Iterator[Term]:
    yield from terms(brick.norm, site, rows, width)


@terms.register
def _(brick: FeedForward, site: Site, rows: str = ROWS, width: str = "dim") -> Iterator[Term]:  # noqa: ARG001
    site = site.sized(hidden=brick.hidden)
    for name in ("up", "gate")[: 1 + brick.gated]:
        yield from site.product(name, "batch tokens", "dim", "hidden")
    yield from site.product("down", "batch tokens", "hidden", "dim")
    if not site.kept:
        yield from site.keeps("input", f"{STREAM} bytes")
    yield from bent(brick, site, "batch tokens hidden")
    yield from site.dropped(brick.dropout, "batch tokens hidden")
    if brick.dropout and brick.activation in RESULT and not brick.gated:  # what came out before it was kept, too
        yield from site.keeps("dropped", "batch tokens hidden bytes")


def bent(brick: FeedForward, site: Site, over: str) -> Iterator[Term]:
    """The activation of the hidden features, gated or not: what it moves, and what backward needs of it."""
    yield from site.moves("activation", f"{5 if brick.gated else 2} {over} bytes")
    before = brick.activation not in RESULT
    if brick.gated:
        if before:
            yield from site.keeps("gate", f"{over} bytes")
        yield from site.keeps("activation", f"{over} bytes")
        yield from site.keeps("up", f"{over} bytes")
    elif before:
        yield from site.keeps("up", f"{over} bytes")
    yield from site.keeps("hidden", f"{over} bytes")


@terms.register
def _(brick: MoE, site: Site, rows: str = ROWS, width: str = "dim") -> Iterator[Term]:  # noqa: ARG001
    expert = brick.expert
    touched = min(brick.experts, site.sizes["batch"] * site.sizes["tokens"] * brick.active)
    site = site.sized(experts=brick.experts, active=brick.active, hidden=expert.hidden, touched=touched)
    yield from site.product("router", "batch tokens", "dim", "experts")
    for name in ("up", "gate")[: 1 + expert.gated]:
        yield from site.product(name, "batch tokens active", "dim", "hidden", second="touched dim hidden")
    yield from site.product("down", "batch tokens active", "hidden", "dim", second="touched hidden dim")
    yield from site.moves("gather", "2 batch tokens active dim bytes")
    yield from site.moves("scatter", "5 batch tokens active dim bytes")
    if not site.kept:
        yield from site.keeps("input", f"{STREAM} bytes")
    yield from bent(expert, site, "batch tokens active hidden")
    divided = "" if brick.router == Softmax(renormalise=False) else " + batch tokens 4 + batch tokens active 4"
    indices = "batch tokens active 8 + batch tokens active 8 + batch tokens active 8"
    offsets = f"{2 + expert.gated} experts 4"
    shares = f"batch tokens experts 4 + batch tokens active bytes{divided}"
    yield from site.keeps("routes", f"{shares} + {indices} + {offsets}")
    yield from site.keeps("gathered", "batch tokens active dim bytes")
    yield from site.keeps("answers", "2 batch tokens active dim bytes")


@terms.register
def _(brick: Block, site: Site, rows: str = ROWS, width: str = "dim") -> Iterator[Term]:  # noqa: ARG001
    """The residuals and the dropout before them; the sublayers are lines of their own."""
    count = sum(part is not None for part in (brick.attention, brick.cross, brick.feedforward))
    site = site.sized(sublayers=count)
    passes = 3 + 2 * (brick.skip != 1) + 2 * (brick.branch_scale != 1)
    yield from site.moves("residual", f"{passes} sublayers {STREAM} bytes")
    yield from site.dropped(brick.dropout, f"sublayers {STREAM}")


@terms.register
def _(brick: Embedding, site: Site, rows: str = ROWS, width: str = "dim") -> Iterator[Term]:  # noqa: ARG001
    added = (brick.position is not None) + (brick.segments > 0)
    yield from site.moves("lookup", f"{2 + 2 * (brick.scale is not None) + 3 * added} {STREAM} bytes")
    ids = "batch tokens 8" + " + tokens 8" * (isinstance(brick.position, Learned) + (brick.segments > 0))
    if isinstance(brick.position, Sinusoidal):  # computed in float64, the same for every text
        yield from site.moves("waves", "5 tokens dim 8")
    yield from site.keeps("ids", ids + " + 4" * (brick.scale is not None))
    yield from site.dropped(brick.dropout, STREAM)


@terms.register
def _(brick: Transform, site: Site, rows: str = ROWS, width: str = "dim") -> Iterator[Term]:
    over = f"{rows} {width}"
    yield from site.product("dense", rows, "dim", "dim")
    yield from site.moves("activation", f"2 {over} bytes")
    if not site.kept:
        yield from site.keeps("input", f"{over} bytes")
    yield from site.keeps("hidden" if brick.activation in RESULT else "dense", f"{over} bytes")


@terms.register
def _(brick: Head, site: Site, rows: str = ROWS, width: str = "dim") -> Iterator[Term]:  # noqa: ARG001
    yield from site.product("logits", "batch tokens", "dim", "vocab")
    if brick.softcap is not None:
        yield from site.moves("cap", "6 batch tokens vocab bytes")
    if site.job.loss == "chunked":  # gradients are computed at once, logits and what leads to them are not kept
        yield from site.moves("loss", "4 batch tokens vocab 4" if site.job.training else "0")
        yield from site.keeps("toward", f"{STREAM} bytes + vocab dim 4" + " + vocab 4" * brick.bias)
        return
    if not site.kept:
        yield from site.keeps("input", f"{STREAM} bytes")
    if brick.softcap is not None:
        yield from site.keeps("capped", "batch tokens vocab bytes")
    yield from loss(site, "batch tokens", "vocab")


def loss(site: Site, rows: str, classes: str) -> Iterator[Term]:
    """Cross-entropy in training: the logarithm of the softmax is kept, in float32, and the labels."""
    if site.job.training:
        yield from site.moves("loss", f"4 {rows} {classes} 4")
        yield from site.keeps("loss", f"{rows} {classes} 4 + {rows} 8")


@terms.register
def _(brick: Pool, site: Site, rows: str = ROWS, width: str = "dim") -> Iterator[Term]:  # noqa: ARG001
    yield from pooled(brick, site)


@terms.register
def _(brick: Classify, site: Site, rows: str = ROWS, width: str = "dim") -> Iterator[Term]:  # noqa: ARG001
    yield from pooled(brick, site)
    site = site.sized(labels=brick.labels)
    yield from site.product("labels", "batch", "dim", "labels")
    yield from site.dropped(brick.dropout, "batch dim")
    if not site.kept or brick.dropout:
        yield from site.keeps("input", "batch dim bytes")
    yield from loss(site, "batch", "labels")


def pooled(brick: Pool | Classify, site: Site) -> Iterator[Term]:
    """One vector per text."""
    yield from site.moves("pool", f"{STREAM} bytes + batch dim bytes" if brick.pool == "mean" else "2 batch dim bytes")
    yield from site.keeps("places", "tokens bytes" if brick.pool == "mean" else "batch 8 + batch 8")
