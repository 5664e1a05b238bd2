"""Masks as how far each token sees, and what a stack does where its layers see differently far."""

from __future__ import annotations

import re
from dataclasses import dataclass

from oneblock.export.file import File
from oneblock.export.values import Code
from oneblock.spec import (
    Causal,
    Full,
    Mask,
    Model,
    Window,
    atoms,
)

Sight = tuple[int | None, int | None]
"""How many tokens behind (itself among them) and ahead a token sees; None: all."""
FULL: Sight = (None, None)


@dataclass(frozen=True)
class Written:
    """How the masks of a sublayer are written: by which function of what, and the names of its numbers and items."""

    function: str
    given: str
    prefix: str
    words: tuple[str, str]


WRITTEN = {
    "attention": Written("visible", "real", "", ("window", "sight")),
    "cross": Written("reachable", "memory_real, ids.shape[1]", "CROSS_", ("span", "span")),
}
"""Sublayer -> how its masks are written."""


def sight(mask: Mask) -> Sight:
    """A mask as how far one sees.

    >>> sight(Causal() & Window(back=3))
    (3, 0)
    """
    back: list[int] = []
    ahead: list[int] = []
    for rule in atoms(mask):
        if isinstance(rule, Causal):
            ahead.append(0)
        elif isinstance(rule, Window):
            back.append(rule.back)
            ahead += [] if rule.ahead is None else [rule.ahead]
        elif not isinstance(rule, Full):
            raise ValueError(f"mask: {type(rule).__name__} is not written; known: Full, Causal, Window")
    return min(back, default=None), min(ahead, default=None)


def sights(model: Model, sublayer: str = "attention") -> list[Sight]:
    """How far each layer sees in its own text, or for "cross" in the memory; one that does not look: as its neighbour.

    >>> from oneblock.zoo import named
    >>> decoder = named("vaswani", depth=1).decoder
    >>> sights(decoder), sights(decoder, "cross")
    ([(None, 0)], [(None, None)])
    """
    asks = [getattr(block, sublayer) for block in model.layers]
    own = [None if one is None else sight(one.mask) for one in asks]
    first = next((one for one in own if one is not None), None)
    found: list[Sight] = []
    for one in own:
        if first is not None:
            found.append(one or (found[-1] if found else first))
    return found


def masks(file: File, stacks: list[Model]) -> None:
    """The functions that say who sees whom, in a text and in the memory, for all masks that hide more than padding."""
    for sublayer, how in WRITTEN.items():
        each = [set(sights(model, sublayer)) for model in stacks]
        distinct = sorted({one for found in each if found != {FULL} for one in found}, key=repr)
        uses = [{"ahead": ahead, "window": window} for window, ahead in distinct]
        names = {word: f"{how.prefix}{word.upper()}" for word in ("window", "ahead")}
        for one, call in zip(distinct, file.brick(how.function, uses, names), strict=True):
            differ = call.partition("(")[2]
            file.made[sublayer, one] = Code(f"{how.function}({how.given}{', ' * (differ != ')')}{differ}")
        file.made.setdefault((sublayer, FULL), Code(f"{how.given.partition(',')[0]}[:, None, None, :]"))


@dataclass(frozen=True)
class Seen:
    """What a stack does about the masks of one sublayer.

    alike: how the mask of all layers is made. table: else the name of a tuple, with how far each layer sees. word: what
    a loop calls one of its items. spread: the arguments that such an item is.
    """

    alike: Code | None = None
    table: Code | None = None
    word: str = ""
    spread: Code = Code("")


def seen(file: File, model: Model, prefix: str, sublayer: str = "attention") -> Seen:
    """What a stack does about the masks of its attention, or of its attention to the memory."""
    found, how = sights(model, sublayer), WRITTEN[sublayer]
    if len(set(found)) < 2:
        return Seen(file.made[sublayer, found[0]] if found else None)
    differ = re.findall(r"(\w+)=", file.made[sublayer, found[0]])
    values = [tuple({"window": window, "ahead": ahead}[word] for word in differ) for window, ahead in found]
    single = len(differ) == 1
    table = file.constants.use(
        f"{prefix}{how.prefix}{'WINDOWS' if differ == ['window'] else 'SIGHTS'}",
        tuple(one[0] if single else one for one in values),
    )
    word = how.words[differ != ["window"]]
    return Seen(None, Code(table), word, Code(word if single else f"*{word}"))


__all__ = ["Seen", "masks", "seen", "sight", "sights"]
