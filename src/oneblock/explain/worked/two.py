"""Two texts side by side: at which steps the model treats them differently, place by place and token by token.

x: (batch, length, dim).
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from oneblock.explain.step import Step, difference
from oneblock.explain.trace import Trace
from oneblock.explain.worked.build import stack_of
from oneblock.explain.worked.form import Exercise

SAME = 1e-5
"""Relative difference below which two tensors are equal up to rounding."""
Pairs = list[tuple[int, int]]


@dataclass(frozen=True)
class Twin:
    """A step of both texts. `place` is the largest difference of the tensors as they lie (None: other shapes), `token`
    of the same token's numbers, wherever it stands (None: no token of one is in the other)."""

    number: int
    path: str
    kind: str
    dims: tuple[str, ...]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    norms: tuple[float, float]
    place: float | None
    token: float | None


@dataclass(frozen=True)
class Stack:
    """What is compared of a stack: the tokens that both have, whether those are all, and where they first differ."""

    stack: str
    shared: tuple[str, ...]
    bag: bool
    first_place: int | None
    first_token: int | None


@dataclass(frozen=True)
class Beside:
    """Two exercises of one model. `positions`: whether positions were left in."""

    left: Exercise
    right: Exercise
    stacks: tuple[Stack, ...]
    steps: tuple[Twin, ...]
    positions: bool = field(default=True)

    def step(self, number: int) -> Twin:
        """The step of a number."""
        return next(twin for twin in self.steps if twin.number == number)


def beside(traces: tuple[Trace, Trace], made: tuple[Exercise, Exercise], positions: bool = True) -> Beside:
    """Every shown step of the first text beside the same step of the second."""
    left, right = traces
    matched = {stack: match(left.tokens[stack], right.tokens[stack]) for stack in left.tokens}
    numbers = {step.path: step.number for section in made[0].sections for step in section.steps}
    there = {step.path for section in made[1].sections for step in section.steps}
    steps = tuple(
        twin(left[path], right[path], number, matched) for path, number in numbers.items() if path in there
    )  # fmt: skip
    stacks = tuple(
        told(stack, pairs, (left.tokens[stack], right.tokens[stack]), steps) for stack, pairs in matched.items()
    )
    return Beside(made[0], made[1], stacks, steps, positions)


def match(left: Sequence[str], right: Sequence[str]) -> Pairs:
    """The places of each token that both have, in the order of the first.

    >>> match(["a", "b", "a"], ["b", "a"])
    [(0, 1), (1, 0)]
    """
    free: dict[str, deque[int]] = defaultdict(deque)
    for at, token in enumerate(right):
        free[token].append(at)
    return [(at, free[token].popleft()) for at, token in enumerate(left) if free[token]]


def twin(left: Step, right: Step, number: int, matched: Mapping[str, Pairs]) -> Twin:
    """One step of both."""
    batched = left.dims[:1] == ("B",)
    place = difference(left.tensor, right.tensor) if left.shape == right.shape else None
    shapes = (left.shape[batched:], right.shape[batched:])
    norms = (left.statistics.norm, right.statistics.norm)
    moved = by_token(left, right, matched)
    return Twin(number, left.path, left.kind, left.dims[batched:], shapes, norms, place, moved)


def by_token(left: Step, right: Step, matched: Mapping[str, Pairs]) -> float | None:
    """The largest difference of the same token's numbers; of the same pair's where a step is about pairs."""
    a, b, moved = left.tensor, right.tensor, False
    for axis, dim in enumerate(left.dims):
        stack = stack_of(left.path)
        if dim == "L_k" or (dim == "L" and left.path.endswith((".cross.k", ".cross.v"))):
            stack = "encoder." if ".cross." in left.path else stack
        elif dim not in ("L", "L_q", "B·L"):
            continue
        if not matched[stack]:
            return None
        a, b = (chosen(x, axis, [pair[side] for pair in matched[stack]]) for side, x in enumerate((a, b)))
        moved = True
    return difference(a, b) if moved and a.shape == b.shape else None


def chosen(x: Tensor, axis: int, places: list[int]) -> Tensor:
    """The entries at these places of an axis."""
    return x.index_select(axis, torch.tensor(places, device=x.device))


def told(stack: str, pairs: Pairs, tokens: tuple[Sequence[str], Sequence[str]], steps: Sequence[Twin]) -> Stack:
    """Which tokens are compared, and the first steps that differ."""
    own = [one for one in steps if stack_of(one.path) == stack and one.kind != "step.loss"]
    first = next((one.number for one in own if one.place is None or apart(one.place)), None)
    moved = next((one.number for one in own if one.token is not None and apart(one.token)), None)
    bag = len(pairs) == len(tokens[0]) == len(tokens[1])
    return Stack(stack, tuple(tokens[0][at] for at, _ in pairs), bag, first, moved)


def apart(x: float) -> bool:
    """Whether a difference is more than rounding."""
    return not math.isfinite(x) or x > SAME
