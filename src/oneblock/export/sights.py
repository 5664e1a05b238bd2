"""Masks as how far each token sees, and what a stack does where its layers see differently far."""

from __future__ import annotations

import re
from typing import Any

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


def sights(model: Model) -> list[Sight]:
    """How far each layer sees; one without attention as far as its neighbour."""
    own = [None if block.attention is None else sight(block.attention.mask) for block in model.layers]
    first = next((one for one in own if one is not None), None)
    found: list[Sight] = []
    for one in own:
        if first is not None:
            found.append(one or (found[-1] if found else first))
    return found


def masks(file: File, stacks: list[Model]) -> None:
    """The function that says who sees whom, for all masks of a model that hide more than padding."""
    full = (None, None)
    found = [one for model in stacks for one in set(sights(model)) if set(sights(model)) != {full}]
    distinct = sorted(set(found), key=repr)
    uses = [{"ahead": ahead, "window": window} for window, ahead in distinct]
    docs = {"visible": "Who sees whom: (batch, 1, query, key), True where a query may look at a key, never at padding."}
    calls = file.brick("visible", uses, {"window": "WINDOW", "ahead": "AHEAD"}, docs=docs)
    file.made |= {one: Code(call.replace("(", "(real, ")) for one, call in zip(distinct, calls, strict=True)}
    file.made |= {one: Code("visible(real)") for one, call in zip(distinct, calls, strict=True) if call == "visible()"}
    file.made.setdefault(full, Code("real[:, None, None, :]"))


def seen(file: File, model: Model, prefix: str) -> dict[str, Any]:
    """What a stack's forward pass needs to know of its masks."""
    found = sights(model)
    if not found or len(set(found)) == 1:
        if found and found[0] == (None, None):
            return {"sight": Code("real[:, None, None, :]"), "windows": None}
        return {"sight": file.made[found[0]] if found else None, "windows": None}
    differ = re.findall(r"(\w+)=", file.made[found[0]])
    single = differ == ["window"]
    values = tuple(one[0] if single else one[:: -1 if differ == ["ahead", "window"] else 1] for one in found)
    if differ == ["ahead"]:
        values = tuple(one[1] for one in found)
    name = f"{prefix}{'WINDOWS' if single else 'SIGHTS'}"
    return {"sight": None, "windows": Code(file.constants.use(name, values)), "differ": differ}
