"""What attention costs: its projections, its scores, and what becomes of the scores on the way to the values.

Scores: (batch, heads, tokens, keys); `keys` are what the queries are compared with, hidden ones too.
"""

from __future__ import annotations

from collections.abc import Iterator

from oneblock.cost.job import Job
from oneblock.cost.terms import Site, Term
from oneblock.spec import Alibi, Attention, Causal, Full, LayerNorm, Relative, Rope, atoms, dims

LARGE = 1 << 20
"""Scores of one head beyond which our attention does not hold them whole."""
SCORES = "batch heads tokens keys"


def attention(brick: Attention, site: Site, cross: bool = False) -> Iterator[Term]:
    """The terms of an attention; `site` knows dim, tokens and keys, and the bias that all scores of a stack share."""
    kv_heads, head_dim, value_dim = dims(brick, site.sizes["dim"])
    site = site.sized(heads=brick.heads, kv_heads=kv_heads, head_dim=head_dim, value_dim=value_dim)
    bias = brick.position if isinstance(brick.position, Relative | Alibi) else None if cross else site.bias
    way, chunked = chosen(brick, site, bias)
    yield from _projections(site, cross)
    if isinstance(brick.position, Rope):
        site = site.sized(turned=2 * round(head_dim * brick.position.fraction / 2))
        yield from site.moves("rotate", "11 batch tokens heads turned bytes + 11 batch tokens kv_heads turned bytes")
    yield from _products(site, way, chunked)
    yield from _inputs(site, written=way == "kernel" and not chunked)
    if way == "fused":
        if not chunked:
            yield from _fused(brick, site)
    else:
        yield from _written(brick, site, bias, way, chunked)


def chosen(brick: Attention, site: Site, bias: Relative | Alibi | None) -> tuple[str, bool]:
    """(how the scores are computed, whether in chunks that backward computes again), as the job says or our bricks do.

    "fused" is torch's kernel; "kernel" the same where it writes the scores out itself: a bias is trained with them, or
    values are wider or narrower than keys. "plain" is the written-out softmax, which a cap on scores and dropout in
    training need. Chunks come where more than 2^20 scores of a head would lie in memory.
    """
    job: Job = site.job
    if job.attention is not None:
        return "fused" if job.attention == "fused" else "plain", job.attention == "recomputed"
    alike = site.sizes["head_dim"] == site.sizes["value_dim"]
    kernel = brick.softcap is None and not (brick.dropout and job.training)
    whole = kernel and alike and bias is None and atoms(brick.mask) <= {Full(), Causal()}
    chunked = site.sizes["tokens"] * site.sizes["keys"] > LARGE and not whole
    if not kernel:
        return "plain", chunked
    return "fused" if alike and not isinstance(bias, Relative) else "kernel", chunked


def _projections(site: Site, cross: bool) -> Iterator[Term]:
    """q, k, v and out; of a source whose keys and values are in the cache already, no k and v."""
    there = "batch keys" if cross else "batch tokens"
    yield from site.product("q", "batch tokens", "dim", "heads head_dim")
    if not (cross and site.job.phase == "decode"):
        yield from site.product("k", there, "dim", "kv_heads head_dim")
        yield from site.product("v", there, "dim", "kv_heads value_dim")
    yield from site.product("out", "batch tokens", "heads value_dim", "dim")


def _products(site: Site, way: str, chunked: bool) -> Iterator[Term]:
    """Queries times keys, and weights times values; what is not kept is computed again by backward."""
    again = {"plain": (2, 2), "kernel": (2, 2), "fused": (3, 2)}[way]
    if chunked:
        again = (again[0] + 1, again[1] + (way == "fused"))
    moved = "" if way == "fused" else "bytes"
    key, value = "batch kv_heads head_dim keys", "batch kv_heads keys value_dim"
    yield from site.product("scores", "tokens", "head_dim", "keys", "batch heads", key, again[0], moved)
    yield from site.product("mix", "tokens", "keys", "value_dim", "batch heads", value, again[1], moved)
    if way == "fused":
        inputs = f"batch heads tokens head_dim bytes + {key} bytes + {value} bytes"
        yield from site.moves("attend", f"{inputs} + batch heads tokens value_dim bytes")


def _inputs(site: Site, written: bool) -> Iterator[Term]:
    """What is kept in every way; a kernel that writes scores out does so in float32, with keys and values per head."""
    there, size = ("heads", "4") if written else ("kv_heads", "bytes")
    if not site.kept:
        yield from site.keeps("input", "batch tokens dim bytes")
    yield from site.keeps("q", f"batch heads tokens head_dim {size}")
    yield from site.keeps("k", f"batch {there} keys head_dim {size}")
    yield from site.keeps("v", f"batch {there} keys value_dim {size}")
    yield from site.keeps("z", "batch heads tokens value_dim bytes")


def _fused(brick: Attention, site: Site) -> Iterator[Term]:
    """A number per query, and the mask where the kernel needs one.

    The kernel lays its output out as the queries are; those that were turned lie head by head, so that putting the
    heads side by side is a copy, which the output projection keeps.
    """
    yield from site.keeps("log_sum", "batch heads tokens 4")
    if brick.heads > 1 and (isinstance(brick.position, Rope) or isinstance(brick.qk_norm, LayerNorm)):
        yield from site.keeps("joined", "batch heads tokens value_dim bytes")
    if isinstance(brick.position, Alibi):
        yield from site.keeps("bias", "heads tokens keys 4")
    elif not atoms(brick.mask) <= {Full(), Causal()}:
        yield from site.keeps("mask", "tokens keys bytes")


def _written(brick: Attention, site: Site, bias: object, way: str, chunked: bool) -> Iterator[Term]:
    """Scores written out: every step reads and writes all of them."""
    passes = 2 + 6 * (way == "plain") + 6 * (brick.softcap is not None) + 3 * (bias is not None)
    yield from site.moves("softmax", f"{passes} {SCORES} bytes")
    if chunked:
        return
    if isinstance(brick.position, Relative):
        yield from site.keeps("buckets", "tokens keys 8")
    rows = seen_by(brick)
    if way == "kernel":
        yield from site.keeps("pattern", f"{SCORES} 4")
        if isinstance(brick.position, Relative):
            yield from site.keeps("mask", f"{rows} keys")
        return
    if brick.softcap is not None:
        yield from site.keeps("capped", f"{SCORES} bytes")
    yield from site.keeps("mask", f"2 {rows} keys")
    yield from site.keeps("softmax", f"{SCORES} bytes")
    yield from site.dropped(brick.dropout, SCORES)
    yield from site.keeps("pattern", f"{SCORES} bytes")


def seen_by(brick: Attention) -> str:
    """The rows of a mask that is written out: one for all queries where nothing is hidden."""
    return "" if atoms(brick.mask) == {Full()} else "tokens"
