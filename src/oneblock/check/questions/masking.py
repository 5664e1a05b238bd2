"""Questions about how keys are hidden: before the softmax, by a number that nothing outscores, and the right ones.

Shapes: weights and scores (batch, heads, queries, keys), hidden likewise, True = must not be seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.calling.adapter import Ask
from oneblock.check.calling.masks import FORMS
from oneblock.check.finding import Fault, Severity
from oneblock.check.seeing.attended import (
    Attended,
    attending,
    both,
    future,
    grid,
    hidden,
    once,
    pads,
    scores_of,
    weights_of,
)  # fmt: skip
from oneblock.check.seeing.sites import Site
from oneblock.check.seeing.strain import strained
from oneblock.check.subject import Subject, fault

REALISTIC, EXTREME = 100.0, 3e4
"""Sizes of scores: what trained models reach, and what the wildest reported reach."""
FLOATS = frozenset(["float", "additive"])
"""Words in the names of forms that are added to scores: those have no true and false."""


def asked_with_masks(subject: Subject) -> list[Attended]:
    """The runs in which someone must be hidden. CannotAskError: nobody ever is."""
    if not subject.causal and not pads(subject):
        raise CannotAskError("nobody is hidden: an encoder without a padding mask")
    return list(both(subject))


@asks("OB302", "mask-order")
def mask_order(subject: Subject) -> Iterator[Fault]:
    """Keys must be hidden before the softmax: hidden after it, they still take part in the sum that divides."""
    wrong: list[tuple[Site, str]] = []
    lost = 0.0
    for run in asked_with_masks(subject):
        for site in run.sites:
            share = zeroed(subject, site, run)
            if share is not None and site.summed is not None:
                low = float((1 - site.summed).max())
                lost = max(lost, low)
                wrong.append((site, "mask.after" if low > 1e-4 else "mask.after_renormalised"))
    for site, name, places in once(wrong):
        severity: Severity = "error" if name == "mask.after" else "warning"
        yield fault(name, severity, site.where, lost=lost, places=places)


def zeroed(subject: Subject, site: Site, run: Attended) -> float | None:
    """The largest weight that the softmax gave to someone hidden and that was taken away afterwards, if any was."""
    hides = hidden(subject, site, run.ask)
    if site.fused or hides is None or site.final is None or site.weights is None:
        return None
    batch = len(run.ask.tokens)
    given, kept = grid(site.weights, batch), grid(site.final, batch)
    gone = (given > 1e-9) & (kept == 0)
    if not bool(gone.any()) or bool((gone & ~hides).any()):
        return None
    return float(given[gone].max())


@asks("OB303", "softmax-axis")
def softmax_axis(subject: Subject) -> Iterator[Fault]:
    """Weights that values are summed with must sum to 1 over keys, not over queries, heads or texts."""
    wrong = []
    for site in attending(subject).sites:
        if site.fused or site.summed is None or site.weights is None or site.softmax is None:
            continue
        if near_one(site.summed) or near_one(site.weights.sum(-1)):
            continue
        axis = next((n for n in range(site.weights.ndim - 1) if near_one(site.weights.sum(n))), None)
        if axis is not None:
            wrong.append((site, axis))
    for site, name, places in once([(site, "softmax.axis") for site, _ in wrong]):
        axis = next(n for other, n in wrong if other is site)
        assert site.weights is not None
        yield fault(name, "error", site.where, axis=axis - site.weights.ndim, places=places)


def near_one(x: Tensor) -> bool:
    """Whether all sums are 1."""
    return bool(((x - 1).abs() < 1e-4).all())


@asks("OB304", "mask-polarity")
def mask_polarity(subject: Subject) -> Iterator[Fault]:
    """A mask must hide what it should and not the rest: the past is seen, an argument keeps its name's promise."""
    for name, form in subject.adapter.polarity:
        promised = promise(name)
        if (
            promised is not None
            and form in FORMS
            and FLOATS.isdisjoint(form.split())
            and FORMS[form].hides_where_true != promised
        ):
            run = attending(subject)
            said = "True = hidden" if promised else "1 = a real token"
            yield fault("mask.promise", where=run.sites[0].where, argument=name, found=FORMS[form].said, promised=said)
    if subject.causal:
        run = attending(subject)
        wrong = [(site, "mask.inverted") for site in run.sites if only_future(subject, site, run)]
        for site, name, places in once(wrong):
            yield fault(name, where=site.where, places=places)


def promise(name: str) -> bool | None:
    """Whether True hides in an argument of this name; None: its name promises nothing."""
    if name.endswith(("key_padding_mask", "encoder_padding_mask")):
        return True
    return False if name in ("attention_mask", "decoder_attention_mask", "encoder_attention_mask") else None


def only_future(subject: Subject, site: Site, run: Attended) -> bool:
    """Whether later keys are seen and earlier ones are not."""
    later = future(subject, site, run.ask)
    if later is None:
        return False
    weights = weights_of(site, len(run.ask.tokens)).nan_to_num().amax((0, 1))[:-1]
    earlier = torch.ones_like(later).tril(-1)[:-1]
    return float(weights[earlier].max()) < 1e-9 < 1e-3 < float(weights[later[:-1]].min())


@asks("OB305", "mask-numbers")
def mask_numbers(subject: Subject) -> Iterator[Fault]:
    """A mask of 0 and 1 must not be added to scores: 1 shifts a weight a little and hides nobody."""
    wrong = []
    for run in asked_with_masks(subject):
        for site in run.sites:
            if any(zero_one(x, site, run.ask) for x in added(site)):
                wrong.append((site, "mask.numbers"))
    for site, name, places in once(wrong):
        yield fault(name, where=site.where, places=places)


def added(site: Site) -> Iterator[Tensor]:
    """What is added to the scores of a site, or taken from them."""
    if site.fused and site.mask is not None and site.mask.is_floating_point():
        yield site.mask
    for one in site.chain:
        if one.name in ("add", "sub"):
            yield from one.operands
        elif one.name == "baddbmm":
            yield one.operands[0]


def zero_one(x: Tensor, site: Site, ask: Ask) -> bool:
    """Whether these are only zeros and (minus) ones, as a mask over the keys of this site has them."""
    if x.ndim < 2 or x.shape[-1] != site.keys or x.numel() < 2 or site.keys < 2:
        return False
    values = set(x.double().flatten().tolist()) if x.numel() <= 1_000_000 else set()
    if values not in ({0.0, 1.0}, {-1.0, 0.0}):
        return False
    rows = x.reshape(-1, site.keys) if x.shape[-2] != site.queries else x.reshape(-1, site.queries, site.keys)[:1]
    ones = (rows != 0).bool()
    if ones.ndim == 3:
        square = ones[0]
        triangles = [torch.ones_like(square).triu(1), torch.ones_like(square).tril()]
        if any(torch.equal(square, y) for one in triangles for y in (one, ~one)):
            return True
        rows = ones[:, 0]
    else:
        rows = ones
    reals = [real for real in (ask.real, ask.source_real) if real is not None and real.shape[1] == site.keys]
    return any(torch.equal(rows[0], y) for real in reals for y in (real[0], ~real[0]))


@asks("OB306", "mask-fill")
def mask_fill(subject: Subject) -> Iterator[Fault]:
    """A hidden key must stay hidden whatever the scores: queries and keys are enlarged until they outscore it."""
    found: dict[str, tuple[Site, float, float]] = {}
    for how, run in zip(("", "right"), asked_with_masks(subject), strict=False):
        weak = {n: fill for n, site in enumerate(run.sites) if (fill := weak_fill(subject, site, run)) is not None}
        for size, name in ((REALISTIC, "mask.outscored"), (EXTREME, "mask.outscored_extreme")):
            for shifted, sign in product((False, True), (1, -1)) if weak else ():
                large = None if found else strained(subject, size, how, sign=sign, shifted=shifted)
                if large is None or len(large.sites) != len(run.sites):
                    continue
                weights = {n: leaked(subject, large.sites[n], large) for n in weak}
                worst = max(weights, key=lambda n: weights[n])
                if weights[worst] > 1e-3:
                    first = next(n for n in weak if line_of(run.sites[n]) == line_of(run.sites[worst]))
                    found[name] = (run.sites[first], weak[first], weights[worst])
    for name, (site, fill, weight) in found.items():
        severity: Severity = "error" if name == "mask.outscored" else "warning"
        size = REALISTIC if severity == "error" else EXTREME
        yield fault(name, severity, site.where, fill=fill, weight=weight, score=size)


def line_of(site: Site) -> tuple[str | None, int | None]:
    """The line of source that attended."""
    return site.where.file, site.where.line


def weak_fill(subject: Subject, site: Site, run: Attended) -> float | None:
    """The score of hidden keys where it is a number that could be reached, else None."""
    hides = hidden(subject, site, run.ask)
    if hides is None:
        return None
    scores = scores_of(site, len(run.ask.tokens))
    hides = hides.expand_as(scores)
    weights = weights_of(site, len(run.ask.tokens))
    held = scores[hides & (weights < 1e-3)]
    top = float(held.max()) if held.numel() > hides.sum() // 2 else float("-inf")
    return top if -1e6 < top < -5 else None


def leaked(subject: Subject, site: Site, run: Attended) -> float:
    """The largest weight of a hidden key in a row that may see someone."""
    hides = hidden(subject, site, run.ask)
    if hides is None:
        return 0.0
    weights = weights_of(site, len(run.ask.tokens)).nan_to_num()
    rows = (~hides).any(-1, keepdim=True)
    return float(torch.where(hides & rows, weights, 0 * weights).max())
