"""How long a brick takes at least on a machine, and whether its products or its memory decide that.

A brick cannot be faster than its FLOPs at the rate of the machine's matrix products, nor than the bytes that it moves
at the rate of its memory (the roofline of Williams et al. 2009). Between bricks nothing overlaps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from oneblock.cost.machines import Machine
from oneblock.cost.terms import Line

Limit = Literal["compute", "memory"]


@dataclass(frozen=True)
class Bound:
    """`seconds` at least; `limit`: what decides most of them; `intensity`: FLOPs per byte moved."""

    seconds: float
    limit: Limit
    intensity: float


def bound(lines: Iterable[Line], machine: Machine, dtype: str) -> Bound:
    """The bound of some bricks that run one after the other, forward and, in training, backward.

    >>> from oneblock.cost import cost
    >>> from oneblock.cost.machines import MACHINES
    >>> from oneblock.zoo import named
    >>> found = bound(cost(named("vaswani"), phase="decode").lines, MACHINES["nvidia-h100"], "bfloat16")
    >>> found.limit, round(found.intensity, 1)
    ('memory', 1.0)
    """
    rate, flops, moved = machine.rate(dtype), 0, 0
    seconds: dict[Limit, float] = {"compute": 0.0, "memory": 0.0}
    for line in lines:
        work, bytes_ = line.total("forward") + line.total("backward"), line.total("moved")
        computing, moving = work / rate, bytes_ / machine.bandwidth
        seconds["compute" if computing > moving else "memory"] += max(computing, moving)
        flops, moved = flops + work, moved + bytes_
    limit: Limit = "compute" if seconds["compute"] > seconds["memory"] else "memory"
    return Bound(sum(seconds.values()), limit, flops / moved if moved else 0.0)
