"""What may be wrong with where tokens stand: positions that are turned or counted otherwise, masks that hide others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from oneblock.explain.guess import Guess, Guesses, Makes, Parting, about, everywhere
from oneblock.mask.meaning import rule
from oneblock.spec import Causal, Full, Learned, Mask, Rope, Sinusoidal, Window, atoms, get

BASES = (10_000.0, 100_000.0, 500_000.0, 1_000_000.0)
SHIFTS = (1, 2, -1, -2)
"""By how many places positions may be off."""


@dataclass(frozen=True)
class Opposite(Mask):
    """A mask read the wrong way round: what `inner` hides is seen, and what it shows is hidden."""

    inner: Mask


@rule.register
def _(mask: Opposite, q: Tensor, k: Tensor) -> Tensor:
    return ~rule(mask.inner, q, k)


@about("query", "key", "position")
def positions(parting: Parting) -> Guesses:
    """Another layout, base, share of features; positions that begin elsewhere."""
    at = f"{parting.stack}embedding.position" if parting.last == "position" else f"{parting.parent}.position"
    spec = get(parting.mine.spec, at) if parting.last == "position" or parting.value("rope") else None
    if isinstance(spec, Rope | Sinusoidal):
        name = "rope" if isinstance(spec, Rope) else "spec"
        other = "half" if spec.layout == "interleaved" else "interleaved"
        kind = "rotary layout" if isinstance(spec, Rope) else "sinusoid layout"
        yield turned(kind, at, name, spec, "layout", other)
        for base in BASES:
            yield turned("base", at, name, spec, "theta", base)
    if isinstance(spec, Rope):
        for share in (0.25, 0.5, 1.0):
            yield turned("fraction", at, "rope", spec, "fraction", share)
    if spec is None:
        return
    for shift in SHIFTS:
        place = parting.value("position")
        yield Guess("position offset", "0", f"{shift:+d}", moved(parting, at, spec, shift), {"position": place + shift})


def turned(kind: str, at: str, name: str, spec: Any, field: str, new: Any) -> Guess:
    """One field of a position spec changed."""
    change = everywhere(at, lambda old: replace(old, **{field: new}))
    return Guess(kind, str(getattr(spec, field)), str(new), change, {name: replace(spec, **{field: new})})


def moved(parting: Parting, at: str, spec: Any, shift: int) -> Makes:
    """Positions that begin at `shift`: as a change of the spec where it has one, else of what the model is told."""
    if isinstance(spec, Learned):
        rows = spec.length + spec.offset  # of the table: as many as before
        first = spec.offset + shift
        return ((at, lambda v: v.with_spec(at, replace(spec, length=rows - first, offset=first))),)
    if isinstance(spec, Sinusoidal):
        return ((at, lambda v: v.with_spec(at, replace(spec, start=spec.start + shift))),)
    place = parting.value("position") + shift
    return (("position_ids", lambda v: replace(v, call=dict(v.call) | {"position_ids": place})),)


@about("masked", "pattern")
def mask(parting: Parting) -> Guesses:
    """A mask read the wrong way round, none, that of a decoder, a window one wider or narrower; another cap."""
    at = f"{parting.parent}.mask"
    now: Mask = get(parting.mine.spec, at)
    yield Guess(
        "mask polarity",
        masked(now),
        "opposite",
        everywhere(at, lambda old: Opposite(old)),
        hiding(parting, Opposite(now)),
    )
    others: list[Mask] = [Full(), Causal(), *windows(now)]
    for new in others:
        if new != now:
            yield Guess("mask", masked(now), masked(new), everywhere(at, new), hiding(parting, new))
    if parting.last == "masked":
        for cap in (None, 30.0, 50.0):
            if cap != parting.value("softcap"):
                change = everywhere(f"{parting.parent}.softcap", cap)
                yield Guess("softcap", str(parting.value("softcap")), str(cap), change, {"softcap": cap})


def windows(now: Mask) -> list[Mask]:
    """The mask with its window one wider, one narrower, or left out."""
    found: list[Mask] = []
    for one in atoms(now):
        if isinstance(one, Window):
            rest: Mask = Full()
            for other in atoms(now) - {one}:
                rest = rest & other
            found += [rest & replace(one, back=back) for back in (one.back + 1, one.back - 1) if back > 0] + [rest]
    return found


def hiding(parting: Parting, new: Mask) -> dict[str, Tensor] | None:
    """The operand of a mask that hides what `new` hides, and padding."""
    now = parting.value("hidden")
    if now is None:
        return None
    query, key = (torch.arange(size, device=now.device) for size in now.shape[1:])
    see = rule(new, query[None, :, None], key[None, None]).expand(now.shape)
    return {"hidden": torch.where(now == 3, now, (~see).to(now.dtype))}


def masked(mask: Mask) -> str:
    """A mask in a few letters."""
    said = [f"window {one.back}" if isinstance(one, Window) else type(one).__name__.lower() for one in atoms(mask)]
    return " & ".join(sorted(said))
