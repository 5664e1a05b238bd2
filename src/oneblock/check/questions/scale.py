"""Questions about the size of scores: what q·k is multiplied with, and whether attention starts saturated or flat.

Shapes: q (…, queries, head_dim), k (…, keys, head_dim), scores and weights (…, queries, keys).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.finding import Fault, Severity
from oneblock.check.seeing.attended import Attended, attending, hidden, once, weights_of
from oneblock.check.seeing.made import projection
from oneblock.check.seeing.sites import Site
from oneblock.check.subject import Subject, fault

NEAR = 2e-3
"""Two factors are the same within this part."""
SAID = ("query_pre_attn_scalar", "attention_multiplier", "attn_scale", "attention_scale", "softmax_scale")
STRETCHED = ("rope_scaling", "rope_parameters")


@asks("OB301", "scale")
def scale(subject: Subject) -> Iterator[Fault]:
    """Scores are q·k / sqrt(head_dim): the factor is measured from scores, and what was multiplied before is traced."""
    found = attending(subject)
    judged = [(site, number) for site in found.sites if not site.normed and (number := measured(site)) is not None]
    if not judged:
        raise CannotAskError("what scores are multiplied with is learned, or queries and keys are normalised")
    free = unscaled_on_purpose(subject, found)
    wrong = []
    for index, (site, number) in enumerate(judged):
        right = site.head_dim**-0.5
        same = abs(number / right - 1) < NEAR or (abs(number - 1) < NEAR and free)
        if not same and not configured(subject, number, site, index):
            wrong.append((site, named(number, site, subject.adapter.dim or 0, len(found.ask.tokens))))
    factors = {id(site): number for site, number in judged}
    for site, name, places in once(wrong):
        severity: Severity = "warning" if name == "scale.other" else "error"
        right = site.head_dim**-0.5
        yield fault(
            name, severity, site.where, factor=factors[id(site)], right=right, head_dim=site.head_dim, places=places
        )  # fmt: skip


def measured(site: Site) -> float | None:
    """The number that q·k is multiplied with: fitted to the scores where nothing else happens to them, else traced."""
    if site.factor is None or site.fused or site.masked is None:
        return site.factor
    raw = site.q @ site.k.transpose(-1, -2)
    if raw.shape != site.masked.shape or site.before is None:
        return site.factor
    scores = site.masked
    kept = scores.isfinite() & (scores > -1e3)
    count = kept.sum(-1, keepdim=True).clamp_min(1)
    x, y = (
        torch.where(kept, z - torch.where(kept, z, 0 * z).sum(-1, keepdim=True) / count, 0 * z) for z in (raw, scores)
    )
    x, y = x.nan_to_num(), y.nan_to_num()
    if not float(x.square().sum()) or not float(y.square().sum()):
        return site.factor
    slope = float((x * y).sum() / x.square().sum())
    rest = float((y - slope * x).norm() / y.norm())
    return slope * site.before if rest < 1e-3 else site.factor


def named(number: float, site: Site, width: int, batch: int) -> str:
    """Which mistake a factor is."""
    heads = site.q.shape[:-2].numel() // batch
    dims = {dim for dim in (width, heads * site.head_dim) if dim > site.head_dim}
    kinds = [
        ("scale.missing", [1.0]),
        ("scale.width", [dim**-0.5 for dim in dims]),
        ("scale.twice", [1 / site.head_dim]),
        ("scale.multiplied", [site.head_dim**0.5, *(dim**0.5 for dim in dims)]),
    ]
    for name, factors in kinds:
        if any(abs(number / factor - 1) < NEAR for factor in factors):
            return name
    return "scale.other"


def configured(subject: Subject, number: float, site: Site, index: int) -> bool:
    """Whether the configuration asks for this factor."""
    config = subject.config
    values = [getattr(config, name, None) for name in SAID]
    values += [value for part in subject.module.modules() if (value := getattr(part, SAID[0], None)) is not None]
    inner = getattr(config, "attn_config", None)
    values.append(getattr(inner, "softmax_scale", None))
    right = site.head_dim**-0.5
    wanted = [x for value in values if isinstance(value, int | float) and value for x in (value, value**-0.5)]
    if getattr(config, "scale_attn_by_inverse_layer_idx", False):
        wanted += [right / (layer + 1) for layer in range(index + 1)]
    if getattr(config, "scale_attn_weights", True) is False:
        wanted.append(1.0)
    if any("mup" in name.lower() for holder in (config, subject.module) for name in vars(holder or object) or ()):
        wanted.append(1 / site.head_dim)
    stretched = [getattr(config, name, None) for name in STRETCHED]
    if any(isinstance(x, dict) and x.get("factor") for x in stretched) and right < number < 4 * right:
        return True
    return any(abs(number / factor - 1) < NEAR for factor in wanted)


def unscaled_on_purpose(subject: Subject, found: Attended) -> bool:
    """Whether no scale is meant: learned relative positions are added, or query weights start that much smaller."""
    return any(biased(site, found) or folded(subject, site, found) for site in found.sites)


def biased(site: Site, found: Attended) -> bool:
    """Whether a learned bias, per head and distance, is added to the scores."""
    from_fused = [site.softmax.sources[3]] if site.fused and site.softmax and len(site.softmax.sources) > 3 else []
    added = [n for one in site.chain if one.name in ("add", "baddbmm") for n in one.sources]
    front = [n for n in (*from_fused, *added) if n is not None]
    seen: set[int] = set()
    while front and len(seen) < 60:
        at = front.pop()
        if at in seen:
            continue
        seen.add(at)
        one = found.operations[at]
        if one.name == "embedding" or (one.name in ("index", "index_select") and any(one.learned)):
            return True
        if one.name not in ("mm", "addmm", "bmm", "baddbmm"):
            front += [n for n in one.sources if n is not None]
    return False


def folded(subject: Subject, site: Site, found: Attended) -> bool:
    """Whether weights of queries start smaller than those of keys by 1/sqrt(head_dim)."""
    q, k = (projection(number, found.operations) for number in (site.q_made, site.k_made))
    if q is None or k is None or q.number == k.number:
        return False
    at = {x.data_ptr(): name for name, x in subject.copy().named_parameters()}
    weights = dict(subject.copy(shaken=False).named_parameters())
    stds = []
    for one in (q, k):
        name = next((at[x.data_ptr()] for x in one.operands if x.ndim == 2 and x.data_ptr() in at), None)
        if name is None:
            return False
        stds.append(float(weights[name].detach().std()))
    return bool(abs(stds[0] / max(stds[1], 1e-12) * site.head_dim**0.5 - 1) < 0.25)


@asks("OB310", "saturation")
def saturation(subject: Subject) -> Iterator[Fault]:
    """Attention must not start nearly one-hot, and must be able to become something else than the plain mean."""
    start, moved = attending(subject, shaken=False), attending(subject)
    sharp = [(site, peak) for site in start.sites if (peak := sharpness(subject, site, start)) is not None]
    mean = sum(peak for _, peak in sharp) / len(sharp) if sharp else 0.0
    if mean > 0.95:
        site = max(sharp, key=lambda one: one[1])[0] if sharp[0][1] < 0.9 else sharp[0][0]
        yield fault("attention.sharp", "warning", site.where, weight=mean, places=len(sharp))
    flat = [(site, "attention.flat") for site in moved.sites if level(subject, site, moved)]
    for site, name, places in once(flat):
        yield fault(name, "warning", site.where, places=places)


def seen(subject: Subject, site: Site, run: Attended) -> tuple[Tensor, Tensor]:
    """(weights, whether each key may be seen) of the queries that may see at least four keys."""
    weights = weights_of(site, len(run.ask.tokens))
    hides = hidden(subject, site, run.ask)
    free = torch.ones_like(weights, dtype=torch.bool) if hides is None else (~hides).expand_as(weights)
    rows = free.sum(-1) >= 4
    return weights[rows], free[rows]


def sharpness(subject: Subject, site: Site, run: Attended) -> float | None:
    """The mean of the largest weight in a row."""
    weights, _ = seen(subject, site, run)
    return float(weights.amax(-1).mean()) if weights.numel() else None


def level(subject: Subject, site: Site, run: Attended) -> bool:
    """Whether all weights of each row are equal."""
    weights, free = seen(subject, site, run)
    if not weights.numel() or site.keys < 4:
        return False
    kept = torch.where(free, weights, weights.amax(-1, keepdim=True))
    return float((kept.amax(-1) - kept.amin(-1)).max()) < 1e-9
