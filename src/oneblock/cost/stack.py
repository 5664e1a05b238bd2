"""The bricks of a model one after the other, each a line with its terms; equal layers are one line.

Whoever needs a tensor again first keeps it: `kept` says that someone before has done so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from oneblock.cost.attend import attention, chosen, seen_by
from oneblock.cost.bricks import RESULT, ROWS, STREAM, terms
from oneblock.cost.cache import backward, reach
from oneblock.cost.count import distinct
from oneblock.cost.terms import Line, Site, Term
from oneblock.spec import SLOTS, Alibi, Attention, Block, Head, Model, Relative, Rope, Whole, dims


def stack(model: Model, site: Site, memory: bool = False) -> Iterator[Line]:
    """The lines of a model that stands alone or reads a source; `memory`: what it gives is what another reads."""
    site = replace(site.sized(dim=model.dim, vocab=model.embedding.vocab), bias=model.position_bias)
    yield line(model, site, shared(model, site, memory))
    yield line(model.embedding, site.at("embedding"))
    yield from normed(model.embedding.norm, site.at("embedding.norm"))
    if model.position_bias is not None:
        yield line(model.position_bias, site.at("position_bias"), bias(model, site))
    for block, layers in indices(model).items():
        for one in layer(block, site.at(f"layers.{layers[0]}")):
            yield replace(one, times=len(layers), layers=layers)
    yield from normed(model.norm, site.at("norm"))
    yield from head(model.head, site.at("head"))


def indices(model: Model) -> dict[Block, tuple[int, ...]]:
    """The distinct layers of a stack, each with its places.

    >>> a, b = Block(None, None), Block(None, None, wiring="post")
    >>> from oneblock.spec import Embedding
    >>> list(indices(Model(8, Embedding(9), (a, b, b, a))).values())
    [(0, 3), (1, 2)]
    """
    found: dict[Block, list[int]] = {block: [] for block in distinct(model.layers)}
    by_object = {key: found[block] for key, block in {id(block): block for block in model.layers}.items()}
    for index, block in enumerate(model.layers):
        by_object[id(block)].append(index)
    return {block: tuple(places) for block, places in found.items()}


def line(brick: Any, site: Site, made: Iterable[Term] | None = None) -> Line:
    """The line of one brick."""
    return Line(site.path, brick, 1, (), tuple(terms(brick, site) if made is None else made))


def normed(brick: Any, site: Site, rows: str = ROWS, width: str = "dim") -> Iterator[Line]:
    """The line of a norm, none where there is none."""
    if brick is not None:
        yield line(brick, site, terms(brick, site, rows, width))


def shared(model: Model, site: Site, memory: bool) -> Iterator[Term]:
    """What all layers of a stack use together: angles of rotations, and the source that a decoder reads."""
    turned = {
        2 * round(dims(one, model.dim)[1] * one.position.fraction / 2): one.position
        for block in distinct(model.layers)
        if (one := block.attention) is not None and isinstance(one.position, Rope)
    }
    for features in turned:
        yield from site.sized(turned=features).keeps("angles", "tokens turned 4")
    yield from site.dropped(model.dropout, STREAM)
    if memory:
        yield from site.keeps("memory", f"{STREAM} bytes")


def bias(model: Model, site: Site) -> Iterator[Term]:
    """The table of score biases: a number per head, query and key, made once for all layers that see alike."""
    users = [block.attention for block in distinct(model.layers) if block.attention is not None]
    users = [one for one in users if not isinstance(one.position, Relative | Alibi)]
    for mask in {one.mask: None for one in users}:
        group = [one for one in users if one.mask == mask]
        at = site.sized(heads=group[0].heads, keys=looked(group[0], site))
        yield from at.moves("bias", "2 tokens keys 8 + 2 heads tokens keys 4")
        ways = [_chosen(one, at, model) for one in group]
        if not all(chunked for _, chunked in ways):
            yield from at.keeps("buckets", "tokens keys 8")
        if ("kernel", False) in ways:
            yield from at.keeps("mask", f"{seen_by(group[0])} keys")


def _chosen(one: Attention, site: Site, model: Model) -> tuple[str, bool]:
    _, head_dim, value_dim = dims(one, model.dim)
    return chosen(one, site.sized(head_dim=head_dim, value_dim=value_dim), model.position_bias)


def layer(block: Block, site: Site) -> Iterator[Line]:
    """A block: its residuals, then each sublayer with its norms."""
    yield line(block, site)
    for name in ("attention", "cross", "feedforward"):
        brick = getattr(block, name)
        if brick is None:
            continue
        second = block.wiring.startswith("parallel") and name == "feedforward"
        reads = second and block.wiring == "parallel-shared"
        slots = () if reads else SLOTS[block.wiring]
        if "pre" in slots:
            yield line(block.norm, site.at(f"norms.{name}_pre", kept=second))
        if isinstance(brick, Attention):
            yield from attending(brick, site.at(name), name == "cross")
        else:
            yield line(brick, site.at(name, kept=reads))  # attention has kept the same normed stream
        for slot in slots:
            if slot != "pre":
                yield from normed(block.norm, site.at(f"norms.{name}_{slot}"))


def attending(brick: Attention, site: Site, cross: bool) -> Iterator[Line]:
    """Attention, and what norms its queries and keys."""
    site = site.sized(keys=site.job.read if cross else looked(brick, site))
    yield line(brick, site, [*attention(brick, site, cross), *remembered(brick, site, cross)])
    kv_heads, head_dim, _ = dims(brick, site.sizes["dim"])
    site = site.sized(heads=brick.heads, kv_heads=kv_heads, head_dim=head_dim)
    for name, rows, heads in (("q_norm", ROWS, "heads"), ("k_norm", "batch keys" if cross else ROWS, "kv_heads")):
        if name == "k_norm" and cross and site.job.phase == "decode":
            continue  # its keys are in the cache
        whole = isinstance(brick.qk_norm, Whole)
        over = (rows, f"{heads} head_dim") if whole else (f"{rows} {heads}", "head_dim")
        yield from normed(brick.qk_norm, site.at(name), *over)


def looked(brick: Attention, site: Site) -> int:
    """How many keys a query is compared with; after a cache with a window, those kept and its own."""
    if site.job.phase != "decode":
        return site.sizes["tokens"]
    return min(site.job.length, reach(brick) or site.job.length) + 1


def remembered(brick: Attention, site: Site, cross: bool) -> Iterator[Term]:
    """Keys and values in the cache: of the text so far as far back as a window reaches, or of the source."""
    kv_heads, head_dim, value_dim = dims(brick, site.sizes["dim"])
    past = site.sizes["keys"] if cross else min(site.job.length, reach(brick) or site.job.length)
    site = site.sized(kv_heads=kv_heads, head_dim=head_dim, value_dim=value_dim, past=past)
    if not site.job.training and (cross or backward(brick)):
        yield site.term("cache", "cache", "batch past kv_heads head_dim bytes + batch past kv_heads value_dim bytes")


def head(brick: Any, site: Site) -> Iterator[Line]:
    """The head and what is before its projection; it keeps its own input unless an activation has."""
    rows, transform = ROWS if isinstance(brick, Head) else "batch", getattr(brick, "transform", None)
    if brick is None:
        return
    if transform is not None:
        at, bent = site.at("transform"), transform.activation in RESULT
        lines = [line(transform, at, terms(transform, at, rows))]
        lines += normed(transform.norm, at.at("norm", kept=bent), rows)
        at_once = isinstance(brick, Head) and site.job.loss == "chunked"
        yield from map(unkept, lines) if at_once else lines
        site = replace(site, kept=bent and transform.norm is None)
    yield line(brick, site)


def unkept(line: Line) -> Line:
    """A line whose gradient is computed at once, so that nothing is kept for it."""
    return replace(line, terms=tuple(term for term in line.terms if term.column != "activations"))
