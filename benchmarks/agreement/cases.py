"""What one comparison is: a family, a class of the reference library, and random small configs of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

VOCAB = 53
BOUNDS = {"loss": 1e-4, "gradients": 1e-4, "bfloat16 ratio": 2.0}
"""What each figure may be at most; logits and the rest are held to LOGITS."""
LOGITS = 1e-5


class Draw:
    """Random choices for the config number `index`: over as many configs as there are options, each comes up."""

    def __init__(self, index: int, family: str) -> None:
        self.index = index
        self.random = random.Random(f"{family}/{index}")

    def pick(self, name: str, *options: Any) -> Any:
        """One of the options, the next one in the next config; `name` shifts where the cycle starts."""
        return options[(self.index + sum(map(ord, name))) % len(options)]


@dataclass(frozen=True)
class Case:
    """A family: its config class, its model classes with what they are, and the arguments of a random config.

    positions: how the reference is told positions under padding on the left: "given" (position_ids are passed),
    "own" (it counts them from the ids or the index by itself), "none" (padding on the left is not compared).
    after: what is done to a new model of the reference that its config cannot say.
    """

    family: str
    config: str
    classes: dict[str, Literal["causal", "masked", "classify", "base", "seq2seq", "decoded", "encoder"]]
    draw: Callable[[Draw], dict[str, Any]]
    positions: Literal["given", "own", "none"] = "given"
    after: Callable[[Any, Draw], None] | None = None


CASES: dict[str, Case] = {}
"""Every family, by name; the files beside this one fill it."""


def case(
    family: str, config: str, classes: dict[str, Any], **how: Any
) -> Callable[..., Callable[[Draw], dict[str, Any]]]:
    """Register the function that draws a family's configs."""

    def register(draw: Callable[[Draw], dict[str, Any]]) -> Callable[[Draw], dict[str, Any]]:
        CASES[family] = Case(family, config, classes, draw, **how)
        return draw

    return register


def passed(found: dict[str, float]) -> dict[str, float]:
    """The figures that are beyond their bound, or no number."""
    return {check: far for check, far in found.items() if not far <= BOUNDS.get(check, LOGITS)}
