"""Runs that several questions share: where a module attended, with which weights, and whom each query may see.

Shapes: weights and scores (batch, heads, queries, keys); hidden likewise, True = a key that must not be seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from oneblock.check.asked import CannotAskError
from oneblock.check.calling.adapter import Answer, Ask
from oneblock.check.seeing.padding import filled, first_row, shown
from oneblock.check.seeing.sites import Site, dots, sites
from oneblock.check.seeing.watch import Operation
from oneblock.check.subject import Subject


@dataclass(frozen=True)
class Attended:
    """One run: the question, the answer, its operations, and where it attended."""

    ask: Ask
    answer: Answer
    operations: list[Operation]
    sites: list[Site]
    dtype: torch.dtype = torch.float64


def attended(
    subject: Subject,
    how: str = "",
    dtype: torch.dtype = torch.float64,
    *,
    shaken: bool = True,
    train: bool = False,
) -> Attended:
    """A run, made once: `how` is "" (all tokens real), or the side on which the first text is padded."""
    key = ("attended", how, dtype, shaken, train)
    if key not in subject.memo:
        ask = padded(subject, how) if how else subject.ask()
        try:
            answer, operations = subject.watched(ask, dtype, shaken=shaken, train=train)
        except RuntimeError:  # kernels that know no float64
            dtype = torch.float32
            answer, operations = subject.watched(ask, dtype, shaken=shaken, train=train)
        subject.memo[key] = Attended(ask, answer, operations, sites(operations), dtype)
    return subject.memo[key]  # type: ignore[no-any-return]


def attending(subject: Subject, how: str = "", shaken: bool = True) -> Attended:
    """The same. CannotAskError: the module attends nowhere that can be seen."""
    found = attended(subject, how, shaken=shaken)
    if not found.sites:
        raise CannotAskError("no softmax over products of queries and keys was seen")
    return found


def pads(subject: Subject) -> bool:
    """Whether the module takes a padding mask."""
    return bool({"real", "source_real"} & subject.adapter.takes)


def padded(subject: Subject, side: str = "right") -> Ask:
    """A question whose first text, and source, is padded. CannotAskError: the module takes no padding mask."""
    if not pads(subject):
        raise CannotAskError("the module takes no padding mask")
    ask, takes = subject.ask(), subject.adapter.takes
    batch = len(ask.tokens)
    if "real" in takes:
        real = shown(ask.length, side)
        ask = ask.but(tokens=filled(subject, ask.tokens, real), real=first_row(real, batch))
    if "source_real" in takes and ask.source is not None:
        real = shown(ask.source.shape[1], side)
        ask = ask.but(source=filled(subject, ask.source, real), source_real=first_row(real, batch))
    return ask


def both(subject: Subject) -> Iterator[Attended]:
    """The run with all tokens real, and the padded one where the module takes a padding mask."""
    yield attending(subject)
    if pads(subject):
        yield attended(subject, "right")


def grid(x: Tensor, batch: int) -> Tensor:
    """Weights or scores as (batch, heads, queries, keys)."""
    return x.reshape(batch, -1, *x.shape[-2:]) if x[..., 0, 0].numel() % batch == 0 else x.reshape(1, -1, *x.shape[-2:])


def future(subject: Subject, site: Site, ask: Ask) -> Tensor | None:
    """(queries, keys), True = later, where this is attention of a decoder to its own text; else None."""
    if not subject.causal or not site.queries == site.keys == ask.length:
        return None
    return torch.ones(ask.length, ask.length, dtype=torch.bool).triu(1)


def padding(site: Site, ask: Ask) -> Tensor | None:
    """(batch, 1, 1, keys), True = padding, where keys are tokens that are padded; else None."""
    for real in (ask.real, ask.source_real):
        if real is not None and real.shape[1] == site.keys and not bool(real.all()):
            return ~real[:, None, None, :]
    return None


def hidden(subject: Subject, site: Site, ask: Ask) -> Tensor | None:
    """Whom a query must not see, (batch or 1, 1, queries or 1, keys); None where everyone may be seen."""
    found = [x for x in (future(subject, site, ask), padding(site, ask)) if x is not None]
    if not found:
        return None
    return found[0][(None,) * (4 - found[0].ndim)] | found[-1][(None,) * (4 - found[-1].ndim)]


def scores_of(site: Site, batch: int) -> Tensor:
    """What the softmax reads, mask included."""
    if not site.fused:
        assert site.masked is not None
        return grid(site.masked.reshape(site.masked.shape), batch)
    scores = raw(site)
    if site.causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
    if site.mask is not None and site.mask.dtype == torch.bool:
        scores = scores.masked_fill(~site.mask, float("-inf"))
    elif site.mask is not None:
        scores = scores + site.mask
    return grid(scores, batch)


def weights_of(site: Site, batch: int) -> Tensor:
    """The weights that values are multiplied with."""
    if site.fused:
        return scores_of(site, batch).softmax(-1)
    found = site.final if site.final is not None else site.weights
    assert found is not None
    return grid(found, batch)


def once(found: Sequence[tuple[Site, str]]) -> Iterator[tuple[Site, str, int]]:
    """(first site, name, number of sites) of each line of source where the same is wrong."""
    groups: dict[object, list[Site]] = {}
    for site, name in found:
        groups.setdefault((name, site.where.file, site.where.line), []).append(site)
    for (name, *_), same in groups.items():  # type: ignore[misc]
        yield same[0], name, len(same)


def raw(site: Site) -> Tensor:
    """The scores as far as only q·k and its scale make them."""
    return dots(site) * (1.0 if site.kernel is None else site.kernel)
