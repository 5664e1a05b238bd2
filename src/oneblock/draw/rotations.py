"""What is said of rotary positions: how fast they turn, how much of a head, and how they are stretched."""

from __future__ import annotations

from oneblock.draw.describe import details, number
from oneblock.spec import DynamicBase, Interpolate, LongRope, Rope, Smooth, Yarn
from oneblock.words import label, say


@details.register
def _(brick: Rope, dim: int, lang: str) -> tuple[str, ...]:
    said = [f"θ = {number(brick.theta)}"]
    if brick.fraction != 1:
        said.append(label("turned", lang, number(brick.fraction)))
    if brick.layout == "interleaved":
        said.append(label("neighbours paired", lang))
    if brick.scaling is not None:
        said += [say(type(brick.scaling), lang).name, *details(brick.scaling, dim, lang)]
    return tuple(said)


@details.register
def _(brick: Interpolate, _dim: int, _lang: str) -> tuple[str, ...]:
    return (f"s = {number(brick.factor)}",)


@details.register(DynamicBase)
@details.register(Yarn)
@details.register(Smooth)
def _(brick: DynamicBase | Yarn | Smooth, _dim: int, lang: str) -> tuple[str, ...]:
    return f"s = {number(brick.factor)}", label("trained", lang, number(brick.length))


@details.register
def _(brick: LongRope, _dim: int, lang: str) -> tuple[str, ...]:
    return (label("trained", lang, number(brick.length)),)
