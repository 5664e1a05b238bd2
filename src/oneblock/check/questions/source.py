"""Questions about what a decoder knows of its source: whether it reads it, and the right way round."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.calling.adapter import Ask
from oneblock.check.finding import Fault, Where
from oneblock.check.seeing.attended import weights_of
from oneblock.check.seeing.sites import Site, sites
from oneblock.check.subject import Subject, fault, gap


@dataclass(frozen=True)
class Known:
    """What queries, keys and values of one place depend on: "s" the source, "t" the target, both or neither."""

    site: Site
    q: frozenset[str]
    k: frozenset[str]
    v: frozenset[str]

    @property
    def pattern(self) -> str:
        """The path without its numbers: the same part of every layer."""
        return re.sub(r"\d+", "#", self.site.where.module)

    @property
    def cross(self) -> bool:
        """Queries of the target, keys and values of the source alone."""
        return "t" in self.q and self.k == self.v == frozenset("s")

    @property
    def own(self) -> bool:
        """Queries, keys and values all know the target."""
        return all("t" in one for one in (self.q, self.k, self.v))


def needs_source(subject: Subject) -> Ask:
    """A question with a source; skips what takes none."""
    subject.needs("source")
    return subject.ask()


def other_source(subject: Subject, ask: Ask) -> Ask:
    """The same with every token of the source changed."""
    assert ask.source is not None
    return ask.but(source=subject.others(ask.source))


def known(subject: Subject, ask: Ask, name: str = "whole") -> list[Known]:
    """What every place of attention depends on, by three runs."""
    key = ("known", name)
    if key not in subject.memo:
        target = ask.but(tokens=subject.others(ask.tokens))
        runs = [sites(subject.watched(one)[1]) for one in (ask, other_source(subject, ask), target)]
        floor = subject.floor()

        def on(plain: torch.Tensor | None, others: Sequence[torch.Tensor | None]) -> frozenset[str]:
            pairs = zip("st", others, strict=True)
            return frozenset(
                name
                for name, x in pairs
                if plain is not None and x is not None and (x.shape != plain.shape or gap(x, plain) > floor)
            )

        subject.memo[key] = [
            Known(a, on(a.q, (b.q, c.q)), on(a.k, (b.k, c.k)), on(a.v, (b.v, c.v)))
            for a, b, c in zip(*runs, strict=False)
        ]
    return subject.memo[key]  # type: ignore[no-any-return]


@asks("OB105", "source")
def source(subject: Subject) -> Iterator[Fault]:
    """The decoder's queries read keys and values of the source, in every layer."""
    ask = needs_source(subject)
    moved = gap(subject.answer(other_source(subject, ask)).y, subject.answer(ask).y)
    found = known(subject, ask)
    for one in found:
        if "t" in one.k and "s" in one.q and "t" not in one.q:
            yield fault("source.swapped", where=one.site.where)
            return
        if one.site.v is not None and ("t" in one.k) != ("t" in one.v):
            which = ("K", "V") if "t" in one.v else ("V", "K")
            yield fault("source.mixed", where=one.site.where, source=which[0], target=which[1])
            return
    blind = blind_place(found)
    if moved <= subject.floor():
        unused = next((one.site.where for one in found if one.cross), None)
        yield fault("source.ignored", where=blind or unused)
    elif blind is not None and any(one.cross for one in found):
        yield fault("source.ignored_once", where=blind)
    elif subject.adapter.even:
        yield fault("source.length")


def blind_place(found: Sequence[Known]) -> Where | None:
    """The first place that ought to read the source and reads the target: its twins in other layers read the source, or
    it is the second of two kinds of place in the decoder."""
    crossing = {one.pattern for one in found if one.cross}
    for one in found:
        if one.own and one.pattern in crossing:
            return one.site.where
    if crossing:
        return None
    decoder = [one for one in found if one.own]
    kinds = list(dict.fromkeys(one.pattern for one in decoder))
    return next((one.site.where for one in decoder if len(kinds) > 1 and one.pattern == kinds[1]), None)


@asks("OB107", "source-order")
def source_order(subject: Subject) -> Iterator[Fault]:
    """Another order of the source's tokens is another source."""
    ask = needs_source(subject)
    assert ask.source is not None
    if ask.source.is_floating_point():
        raise CannotAskError("vectors of a source may know their places already")
    if gap(subject.answer(other_source(subject, ask)).y, subject.answer(ask).y) <= subject.floor():
        raise CannotAskError("the source is ignored already (OB105)")
    turned = ask.but(source=ask.source.flip(1))
    if gap(subject.answer(turned).y, subject.answer(ask).y) <= subject.floor():
        yield fault("source.order", severity="warning")


@asks("OB108", "source-whole")
def source_whole(subject: Subject) -> Iterator[Fault]:
    """Every query may read every token of the source: none is cut off, none hidden by the target's mask."""
    ask = needs_source(subject)
    assert ask.source is not None
    found = [one for one in known(subject, ask) if one.cross]
    shorter = [one.site.keys for one in known_shorter(subject)]
    for one, keys in zip(found, shorter, strict=False):
        site = one.site
        if site.keys != keys:
            yield fault("source.cut", where=site.where, keys=site.keys, of=ask.source.shape[1], length=ask.length)
            return
        blind = (weights_of(site, len(ask.tokens)).amax((0, 1)) == 0).nonzero()
        if len(blind):
            query, token = (int(n) for n in blind[0])
            yield fault(
                "source.partly", severity="warning", where=site.where, token=token, position=query, of=site.keys
            )
            return


def known_shorter(subject: Subject) -> list[Known]:
    """The places of cross-attention for a target that is two tokens shorter."""
    whole = subject.ask()
    return [one for one in known(subject, whole.but(tokens=whole.tokens[:, :-2]), "shorter") if one.cross]
