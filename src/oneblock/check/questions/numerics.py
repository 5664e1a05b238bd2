"""Questions about range: softmax of large scores, masks that add up to infinity, numbers too large for 16 bits.

Shapes: any; scores and weights (…, queries, keys).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.finding import Fault, Where
from oneblock.check.seeing.attended import Attended, attended, attending, once, padded, pads
from oneblock.check.seeing.sites import Site
from oneblock.check.seeing.strain import strained
from oneblock.check.seeing.watch import COPIES, VIEWS, Operation, watching
from oneblock.check.subject import Subject, fault
from oneblock.hint import first_line

LARGEST = {torch.float16: 65504.0, torch.bfloat16: 3.3895e38}
SAID = {torch.float16: "float16", torch.bfloat16: "bfloat16"}
LARGE = 200.0
"""Scores whose exponential is too large for float32."""
HIDING = ("full", "masked_fill", "where", "fill", "add", "sub", "triu", "tril", "zeros")
"""Operations that masks are made and applied with."""
MASKS = 1e30
"""Numbers from here on are masks."""


@dataclass
class Narrow:
    """A run in 16 bits: its operations as far as it came, and how it failed if it did."""

    operations: list[Operation] = field(default_factory=list)
    finite: bool = True
    said: str = ""
    failed: Where | None = None


def narrow(subject: Subject, dtype: torch.dtype, how: str = "") -> Narrow:
    """The module as it is, in 16 bits, run once."""
    key = ("narrow", dtype, how)
    if key not in subject.memo:
        ask = padded(subject, how) if how else subject.ask()
        twin = subject.copy(dtype, shaken=False)
        with watching(twin) as watch:
            try:
                y = subject.answer(ask, dtype, module=twin).y
                found = Narrow(watch.operations, bool(y.isfinite().all()))
            except Exception as error:
                said = first_line(error)
                found = Narrow(watch.operations, False, said, watch.failed or Where())
        subject.memo[key] = found
    return subject.memo[key]  # type: ignore[no-any-return]


@asks("OB307", "mask-range")
def mask_range(subject: Subject) -> Iterator[Fault]:
    """What hides must fit into 16 bits, and a mask and a score must not add up to infinity in a whole row."""
    attending(subject)
    hows = ["", "left"] if pads(subject) else [""]
    for how in hows:
        run = narrow(subject, torch.float16, how)
        if run.failed and re.search(r"without overflow|out of range|cannot be converted to type", run.said):
            yield fault("mask.constant", "warning", run.failed, said=run.said)
            return
    found: list[Site] = []
    for how in hows:
        base = attended(subject, how, torch.float32)
        if any(sums(site) for site in base.sites):
            for sign in (1, -1):
                large = strained(subject, LARGE, how, torch.float16, sign, shifted=True)
                found += overflowing(large, base) if large else []
    for site, name, places in once([(site, "mask.sum") for site in found]):
        yield fault(name, "warning", site.where, places=places)


def sums(site: Site) -> bool:
    """Whether a finite mask is added to the scores of a site that is written out."""
    parts = [x for one in site.chain if one.name in ("add", "sub", "baddbmm") for x in one.operands]
    return any(bool((x.isfinite() & (x.abs() > 1e4)).any()) for x in parts if x.is_floating_point())


def overflowing(large: Attended, base: Attended) -> list[Site]:
    """Sites whose sums of finite numbers are infinite in 16 bits, and whose weights are then no numbers."""
    found = []
    for site, plain in zip(large.sites, base.sites, strict=False):
        used, right = (x.final if x.final is not None else x.weights for x in (site, plain))
        if used is None or right is None or not bool((used.isnan() & ~right.isnan()).any()):
            continue
        for one in site.chain:
            if one.name in ("add", "sub", "baddbmm") and bool(one.result.isinf().any()):
                finite = all(bool(x.isfinite().all()) for x in one.operands)
                found += [site] if finite else []
                break
    return found


@asks("OB308", "softmax-maximum")
def softmax_maximum(subject: Subject) -> Iterator[Fault]:
    """A softmax by hand must subtract each row's maximum: without, or with one for all rows, large scores give nan."""
    base = attending(subject)
    if not any(site.manual for site in base.sites):
        return
    wrong = []
    for sign in (1, -1):
        large = strained(subject, LARGE, dtype=torch.float32, sign=sign)
        for site, plain in zip(large.sites if large else (), base.sites, strict=False):
            if site.manual and site.weights is not None and plain.weights is not None:
                lost = ~site.weights.isfinite() & plain.weights.isfinite()
                if bool(lost.any()) and site.masked is not None and not bool(site.masked.isnan().any()):
                    wrong.append((site, "softmax.maximum"))
        if wrong:
            break
    for site, name, places in once(wrong[:1] if wrong else []):
        yield fault(name, where=site.where, score=LARGE, places=places)


@asks("OB309", "half")
def half(subject: Subject) -> Iterator[Fault]:
    """In 16 bits every number must stay finite: the first operation that does not, beside the same in float64."""
    wide = attended(subject, shaken=False).operations
    reasons = []
    for dtype in (torch.float16, torch.bfloat16):
        run = narrow(subject, dtype)
        peak = first_above(wide, LARGEST[dtype])
        bad = first_lost(run.operations, wide)
        if bad is not None:
            size = highest(bad[1].result)
            name = "half.overflow" if size > LARGEST[dtype] else "half.lost"
            yield fault(
                name, "warning", bad[0].where, dtype=SAID[dtype], peak=size,
                largest=LARGEST[dtype], operation=bad[0].name,
            )  # fmt: skip
            return
        if run.failed and peak is not None:
            size = highest(peak.result)
            yield fault(
                "half.overflow", "warning", peak.where, dtype=SAID[dtype], peak=size, largest=LARGEST[dtype],
                operation=peak.name,
            )  # fmt: skip
            return
        reasons += [f"in {SAID[dtype]}: {run.said}"] if run.failed else []
    if len(reasons) == 2:
        raise CannotAskError("the module does not run in 16 bits ({})", reasons[0])


def acting(operations: list[Operation]) -> list[Operation]:
    """The operations that compute something."""
    return [
        one
        for one in operations
        if one.name not in VIEWS | COPIES and one.result.is_floating_point() and "empty" not in one.name
    ]


def first_lost(narrow_run: list[Operation], wide: list[Operation]) -> tuple[Operation, Operation] | None:
    """(in 16 bits, in float64) of the first operation that is finite only in float64, its operands being finite."""
    left = acting(wide)
    for one in acting(narrow_run):
        at = next((n for n, x in enumerate(left[:40]) if (x.name, x.path) == (one.name, one.path)), None)
        if at is None:
            continue
        other = left[at]
        left = left[at + 1 :]
        if one.result.shape != other.result.shape:
            continue
        if bool((~one.result.isfinite() & (other.result.abs() < MASKS)).any()):
            return one, other
    return None


def first_above(wide: list[Operation], largest: float) -> Operation | None:
    """The first operation whose finite numbers are larger than this."""
    for one in acting(wide):
        x = one.result
        if one.name not in HIDING and big(x, largest):
            return one
    return None


def highest(x: Tensor) -> float:
    """The largest number that is no mask."""
    x = x.abs()
    return float(torch.where(x < MASKS, x, 0 * x.nan_to_num(0, 0, 0)).max())


def big(x: Tensor, largest: float) -> bool:
    """Whether a number that is no mask is larger."""
    return bool(((x.abs() > largest) & (x.abs() < MASKS)).any())
