"""Questions about heads: which keys and values each one reads, and where dropout meets the weights.

Shapes: q (batch, heads, queries, head_dim), k and v (batch, heads, keys, head_dim).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.finding import Fault, Number, Severity
from oneblock.check.seeing.attended import attended, attending, once
from oneblock.check.seeing.made import above
from oneblock.check.seeing.sites import Site
from oneblock.check.seeing.watch import Operation
from oneblock.check.subject import Subject, fault

SAID = ("num_key_value_heads", "kv_heads", "n_kv_heads", "num_kv_heads", "n_kv_head", "num_kv_head", "kv_head")


@asks("OB311", "grouped-heads")
def grouped_heads(subject: Subject) -> Iterator[Fault]:
    """Where heads share keys and values, head h must read the keys and the values of group h // (heads per group)."""
    found = attending(subject)
    orders = [(site, order_of(site, found.ask.tokens.shape[0])) for site in found.sites]
    shared = [(site, order) for site, order in orders if order is not None]
    if not shared and not any(site.fused and site.k.shape[1] != site.q.shape[1] for site in found.sites):
        raise CannotAskError("no two heads share keys")
    wrong = []
    for site, (keys, values) in shared:
        if keys != values and sorted(keys) == sorted(values):
            wrong.append((site, "heads.apart"))
        elif keys != sorted(keys):
            wrong.append((site, "heads.tiled"))
    said = any(getattr(x, name, None) for x in (subject.config, *subject.module.modules()) for name in SAID)
    for site, name, places in once(wrong):
        keys = next(order[0] for other, order in shared if other is site)
        severity: Severity = "error" if said or name == "heads.apart" else "warning"
        evidence: dict[str, Number] = {
            "heads": len(keys),
            "groups": len(set(keys)),
            "places": places,
            "order": " ".join(map(str, keys)),
        }
        yield fault(name, severity, site.where, **evidence)


def order_of(site: Site, batch: int) -> tuple[list[int], list[int]] | None:
    """(group whose keys each head reads, group whose values), None where no two heads read the same."""
    if site.v is None or (site.weights is None and not site.fused):
        return None
    shape = site.q.shape if site.fused else site.weights.shape  # type: ignore[union-attr]
    if len(shape) < 3 or shape[:-2].numel() % batch:
        return None
    heads = shape[:-2].numel() // batch
    found = []
    for x in (site.k, site.v):
        if x.numel() % (batch * heads * site.keys) or x.shape[-2] != site.keys:
            return None
        found.append(groups(x.reshape(batch, heads, site.keys, -1)))
    keys, values = found
    return (keys, values) if 1 < len(set(keys)) < heads else None


def groups(x: Tensor) -> list[int]:
    """For each head the number of the group that it reads: heads with the same numbers are one group."""
    known: list[int] = []
    order = []
    for head in range(x.shape[1]):
        same = next((n for n, other in enumerate(known) if torch.equal(x[:, other], x[:, head])), None)
        if same is None:
            same = len(known)
            known.append(head)
        order.append(same)
    return order


@asks("OB312", "attention-dropout")
def attention_dropout(subject: Subject) -> Iterator[Fault]:
    """Dropout belongs on the weights, after the softmax and last: not on scores, and not before a renormalisation."""
    attending(subject)
    found = attended(subject, train=True)
    wrong = []
    for site in found.sites:
        if site.fused or site.weights is None:
            continue
        if any(random(step, found.operations) for step in site.chain):
            wrong.append((site, "dropout.scores"))
        elif site.summed is not None and any(random(step, found.operations) for step in site.after):
            dropped = site.final is not None and bool(((site.final == 0) & (site.weights > 1e-9)).any())
            if dropped and bool((((site.summed - 1).abs() < 1e-6) | (site.summed == 0)).all()):
                wrong.append((site, "dropout.renormalised"))
    for site, name, places in once(wrong):
        yield fault(name, "error" if name == "dropout.scores" else "warning", site.where, places=places)


def random(one: Operation, operations: list[Operation]) -> bool:
    """Whether an operation multiplies with what was drawn."""
    if one.name == "native_dropout":
        return True
    if one.name != "mul":
        return False
    drawn = [x for n in one.sources if n is not None for x in above(n, operations, 3)]
    return any(x.name in ("bernoulli", "native_dropout") for x in drawn[:8] if x.result.numel() == one.result.numel())
