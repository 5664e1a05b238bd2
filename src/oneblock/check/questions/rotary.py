"""Questions about how positions are computed: in enough digits, on queries and keys alike, never on values.

Shapes: q, k, v (batch, heads, length, head_dim); scores (batch, heads, length, length); tables (length, dim).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.finding import Fault
from oneblock.check.seeing.made import projection
from oneblock.check.seeing.monotone import monotone, rows_differ, uniform
from oneblock.check.seeing.sites import Site, dots
from oneblock.check.seeing.watch import Operation
from oneblock.check.subject import Subject, fault, gap

FAR = 320
"""Tokens in the text that low precision is judged by: bfloat16 counts no further than 256 one by one."""


@asks("OB604", "position-precision")
def precision(subject: Subject) -> Iterator[Fault]:
    """In bfloat16 late positions must be as exact as early ones."""
    length = min(FAR, subject.adapter.longest or FAR)
    if length < FAR:
        raise CannotAskError("the longest text has {} tokens, too few for positions to collapse", length)
    try:
        _, _, rough = monotone(subject, torch.bfloat16, length)
    except CannotAskError:
        raise
    except Exception as error:
        raise CannotAskError("the module does not run in bfloat16 on this machine") from error
    _, _, exact = monotone(subject, torch.float32, length)
    if not rough or not exact or rough[0].q.shape != exact[0].q.shape:
        raise CannotAskError("no attention over the text was seen")
    for name in ("q", "k"):
        a, b = getattr(rough[0], name).double(), getattr(exact[0], name).double()
        if rows_differ(b) <= 1e-6:
            continue
        apart = (a - b).abs().amax(dim=(*range(a.ndim - 2), -1)) / b.abs().max()
        early, late = float(apart[:32].max()), float(apart[256:].max())
        if late > 0.05 and late > 5 * early:
            own = next(subject.module.parameters()).dtype == torch.bfloat16
            yield fault("positions.precision", "error" if own else "warning", rough[0].where, early=early, late=late)
            return


@asks("OB605", "rotary-values")
def rotary_values(subject: Subject) -> Iterator[Fault]:
    """Values are mixed, not compared: turning them by their position mixes places into what they say."""
    if getattr(subject.config, "rotary_value", False) is True:
        raise CannotAskError("the configuration wants values to be turned")
    for site, seen, length in rotary(subject):
        made = projection(site.v_made, seen)
        if site.v is not None and uniform(made, length) and rows_differ(site.v) > subject.floor():
            yield fault("rotary.values", "warning", site.where)
            return


@asks("OB606", "rotary-pairs")
def rotary_pairs(subject: Subject) -> Iterator[Fault]:
    """Queries and keys must be turned alike: their product may depend on the distance of two places only."""
    for site, seen, length in rotary(subject):
        made = (projection(number, seen) for number in (site.q_made, site.k_made))
        if not all(uniform(one, length) for one in made):
            continue
        table = dots(site)
        apart = gap(table[..., 1:, 1:], table[..., :-1, :-1])
        if apart > max(subject.floor(), 1e-5):
            yield fault("rotary.pairs", where=site.where, moved=apart)
            return


def rotary(subject: Subject) -> Iterator[tuple[Site, list[Operation], int]]:
    """Sites whose queries or keys depend on their place though the vectors they were made of do not."""
    ask, seen, own = monotone(subject, shaken=False)  # noise would be on tables of angles too
    if not own:
        raise CannotAskError("no attention over the text was seen")
    turned = False
    for site in own:
        if max(rows_differ(site.q), rows_differ(site.k)) <= subject.floor():
            continue
        if uniform(projection(site.q_made, seen), ask.length):
            turned = True
            yield site, seen, ask.length
    if not turned:
        raise CannotAskError("queries and keys are not turned by their positions")


@asks("OB608", "sinusoids")
def sinusoids(subject: Subject) -> Iterator[Fault]:
    """Every sine must have its cosine: then the product of two places depends on their distance only."""
    ask, seen, _ = monotone(subject)
    table = next((found for one in seen if (found := sinusoid(one, ask.length)) is not None), None)
    if table is None:
        raise CannotAskError("no sines and cosines are added to the tokens")
    operation, x = table
    product = x @ x.T
    apart = gap(product[1:, 1:], product[:-1, :-1])
    if apart > 1e-3:
        yield fault("sinusoids.unpaired", "warning", operation.where, moved=apart)


def sinusoid(one: Operation, length: int) -> tuple[Operation, Tensor] | None:
    """A table of sines and cosines that this operation adds: its first place is all 0 and 1, none is beyond 1."""
    if one.name != "add":
        return None
    for x, weight in zip(one.operands, one.weights, strict=True):
        if weight or not x.is_floating_point() or x.ndim < 2 or x.shape[-2] != length or x.shape[:-2].numel() != 1:
            continue
        x = x.reshape(length, -1).double()
        start = x[0].abs()
        whole = bool(((start < 1e-6) | ((start - 1).abs() < 1e-6)).all()) and bool((x[0] > 0.5).any())
        if whole and float(x.abs().max()) <= 1 + 1e-6 and rows_differ(x) > 0.5:
            return one, x
    return None
