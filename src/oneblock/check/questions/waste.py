"""Notes on wasted work: weights that nobody reads, masks built anew in every layer, attention that no kernel can fuse.

Shapes: weights (batch, heads, queries, keys), masks (length, length).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.calling.reply import parts
from oneblock.check.finding import Fault
from oneblock.check.seeing.attended import Attended, attending, once
from oneblock.check.seeing.sites import Site
from oneblock.check.seeing.watch import COPIES, VIEWS, Operation
from oneblock.check.subject import Subject, fault

FUSES = frozenset(
    ["bmm", "baddbmm", "matmul", "mm", "mul", "div", "masked_fill", "add", "sub", "where", *VIEWS, *COPIES]
)
"""What a fused kernel does too, between q·k and the softmax."""
MAKES = frozenset(["triu", "tril"])


def returned(run: Attended) -> list[Tensor]:
    """The tensors in an answer."""
    raw = run.answer.raw
    values = [value for _, value in parts(raw)] if raw is not None else [run.answer.y]
    return [x for x in tree_flatten(values)[0] if isinstance(x, Tensor)]


@asks("OB901", "weights-unused")
def weights_unused(subject: Subject) -> Iterator[Fault]:
    """`nn.MultiheadAttention` must not be asked for weights that nobody reads: its fused kernel gives none."""
    run = attending(subject)
    layers = {name: part for name, part in subject.module.named_modules() if isinstance(part, nn.MultiheadAttention)}
    if not layers:
        raise CannotAskError("the module holds no nn.MultiheadAttention")
    sources = {n for one in run.operations for n in one.sources}
    kept = returned(run)
    wrong = []
    for site in run.sites:
        if site.where.module not in layers or site.fused or site.softmax is None:
            continue
        means = [
            one
            for one in run.operations
            if one.path == site.where.module and one.name == "mean" and one.number > site.softmax.number
        ]
        if means and not any(used(one, sources, run.operations, kept) for one in means[:1]):
            wrong.append((site, "attention.weights_unused"))
    for site, name, places in once(wrong):
        yield fault(name, "note", site.where, places=places)


def used(one: Operation, sources: set[int | None], operations: list[Operation], kept: list[Tensor]) -> bool:
    """Whether a result is read by a later operation, or returned."""
    if one.number in sources:
        users = [x for x in operations if one.number in x.sources]
        if any(x.name not in VIEWS | COPIES or used(x, sources, operations, kept) for x in users):
            return True
    return any(x.shape == one.result.shape and torch.equal(x.to(one.result), one.result) for x in kept)


@asks("OB902", "masks-rebuilt")
def masks_rebuilt(subject: Subject) -> Iterator[Fault]:
    """The same triangle must not be built in every layer: once per forward, or once for all, is enough."""
    run = attending(subject)
    built: dict[tuple[object, ...], list[Operation]] = {}
    torchs = {(site.where.file, site.where.line) for site in run.sites if in_torch(site)}
    for one in run.operations:
        x = one.result
        if (
            (one.file, one.line) not in torchs
            and one.name in MAKES
            and x.ndim >= 2
            and x.shape[-1] == run.ask.length == x.shape[-2]
            and varies(x)
        ):
            built.setdefault((one.name, one.file, one.line), []).append(one)
    for same in built.values():
        places = {one.path for one in same}
        if len(places) > 1 and all(torch.equal(one.result, same[0].result) for one in same):
            yield fault("mask.rebuilt", "note", same[0].where, places=len(places))
            return


def in_torch(site: Site) -> bool:
    """Whether torch itself wrote its fused kernel out."""
    return site.softmax is not None and site.softmax.name == "_safe_softmax"


def varies(x: Tensor) -> bool:
    """Whether a square holds a triangle."""
    square = x.reshape(-1, *x.shape[-2:])[0] != 0
    lower = torch.ones_like(square).tril()
    shapes = (lower, lower.tril(-1), ~lower, ~lower.tril(-1))
    return any(torch.equal(square, one) for one in shapes)


@asks("OB903", "fused-kernel")
def fused_kernel(subject: Subject) -> Iterator[Fault]:
    """Attention that only scales, hides and drops, and whose weights nobody reads, can run as one fused kernel."""
    run = attending(subject)
    kept = returned(run)
    plain = []
    for site in run.sites:
        if plainly_written(site) and not isinstance(
            subject.module.get_submodule(site.where.module), nn.MultiheadAttention
        ):
            weights = site.weights
            if weights is not None and not any(x.shape[-2:] == weights.shape[-2:] and x.ndim >= 3 for x in kept):
                plain.append((site, "attention.unfused"))
    for site, name, places in once(plain):
        yield fault(name, "note", site.where, places=places)


def plainly_written(site: Site) -> bool:
    """Whether a site written out does nothing that a fused kernel does not do."""
    if site.fused or site.factor is None or site.out is None or site.summed is None or in_torch(site):
        return False
    if not bool(((site.summed - 1).abs() < 1e-4).all()) or not all(one.name in FUSES for one in site.chain):
        return False
    return all(one.name in ("nan_to_num", "dropout") for one in site.after)
