"""Where a module normalises: every variance that one forward pass divides by, fused or written out.

x: any shape; a norm reduces some of its axes, and what it divided by has the size of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from oneblock.check.finding import Where
from oneblock.check.seeing.watch import COPIES, VIEWS, Operation, users

SPREADS = ("var", "std", "var_mean")
STEPS = frozenset(["add", "sqrt", "rsqrt", "pow", "reciprocal", "clamp", "clamp_min", "maximum", "mul", "div"])
LARGEST_EPSILON = 0.1


@dataclass
class NormSite:
    """One norm. `axes` are those it reduces; `outside`: epsilon is added after the root; `correction` 1 = unbiased."""

    where: Where
    x: Tensor
    axes: tuple[int, ...]
    epsilon: float
    outside: bool = False
    correction: int = 0
    source: int | None = None
    steps: list[str] = field(default_factory=list)

    def reduces(self, size: int, rows: int) -> bool:
        """Whether an axis of this size, or of rows flattened to `rows`, is among those reduced."""
        return any(self.x.shape[axis] in (size, rows) for axis in self.axes)


def norm_sites(operations: Sequence[Operation]) -> list[NormSite]:
    """Every norm of one forward pass, in order."""
    used = users(operations)
    found = []
    for one in operations:
        if one.name in ("native_layer_norm", "_fused_rms_norm"):
            found.append(fused(one))
        elif one.name == "native_group_norm" and one.operands[0].ndim > 2:
            x = one.operands[0]
            found.append(
                NormSite(one.where, x, tuple(range(1, x.ndim)), float(one.arguments[-1]), source=one.sources[0])
            )
        elif one.name in SPREADS or (one.name == "mean" and squares(one, operations)):
            site = written(one, operations, used)
            found += [site] if site else []
    return found


def fused(one: Operation) -> NormSite:
    """A norm over the last axes in one operation."""
    x, count = one.operands[0], len(one.arguments[1])
    last = one.arguments[-1]
    epsilon = float(last) if isinstance(last, float) else torch.finfo(x.dtype).eps
    return NormSite(one.where, x, tuple(range(x.ndim - count, x.ndim)), epsilon, source=one.sources[0])


def squares(one: Operation, operations: Sequence[Operation]) -> bool:
    """Whether a mean is taken over squares."""
    source = one.sources[0]
    while source is not None and operations[source].name in COPIES:
        source = operations[source].sources[0]
    if source is None:
        return False
    made = operations[source]
    if made.name == "pow":
        return 2.0 in made.scalars
    return made.name == "square" or (
        made.name == "mul" and len(made.sources) == 2 and made.sources[0] == made.sources[1]
    )


def written(one: Operation, operations: Sequence[Operation], used: dict[int, list[Operation]]) -> NormSite | None:
    """A norm written out: a variance, a root, and a division of something as large as what it was taken of."""
    x = one.operands[0]
    if one.weights and one.weights[0]:
        return None
    steps = down(one, used, x.numel())
    if steps is None:
        return None
    names = [step.name for step in steps]
    rooted = next((n for n, step in enumerate(steps) if root(step)), None)
    added = next((n for n, step in enumerate(steps) if step.name in ("add", "clamp", "clamp_min")), None)
    if one.name != "std" and rooted is None:
        return None
    outside = added is not None and (one.name == "std" or (rooted is not None and added > rooted))
    epsilon = (
        min((s for s in steps[added].scalars if 0 < s < LARGEST_EPSILON), default=0.0) if added is not None else 0.0
    )
    source = one.sources[0]
    if one.name == "mean" and source is not None:
        source = operations[source].sources[0]
    correction = 0 if one.name == "mean" else corrected(one)
    return NormSite(
        one.where, x, axes_of(one), epsilon, outside and steps[added or 0].name == "add", correction, source, names
    )


def root(step: Operation) -> bool:
    """Whether an operation takes a root."""
    return step.name in ("sqrt", "rsqrt") or (step.name == "pow" and any(abs(s) == 0.5 for s in step.scalars))


def corrected(one: Operation) -> int:
    """What a variance takes off the number it divides by: torch takes 1 where it is told nothing."""
    value = one.options.get("correction", None)
    if value is None:
        flags = [x for x in one.arguments if isinstance(x, bool)]
        return int(flags[0]) if flags else 1
    return int(value)


def axes_of(one: Operation) -> tuple[int, ...]:
    """The axes that an operation reduces, counted from the first."""
    x = one.operands[0]
    given = one.options.get("dim", one.arguments[1] if len(one.arguments) > 1 else None)
    if given is None or isinstance(given, bool):
        return tuple(range(x.ndim))
    given = [given] if isinstance(given, int) else list(given)
    return tuple(axis % x.ndim for axis in given) if given else tuple(range(x.ndim))


def down(one: Operation, used: dict[int, list[Operation]], size: int) -> list[Operation] | None:
    """The operations from a variance to the division by it, that one left out; None where nothing is divided."""
    front: list[tuple[Operation, list[Operation]]] = [(one, [])]
    seen = {one.number}
    while front:
        at, steps = front.pop(0)
        for user in used.get(at.number, []):
            if user.number in seen or len(steps) > 6:
                continue
            seen.add(user.number)
            if user.result.numel() == size != at.result.numel() and user.name in ("div", "mul"):
                if user.name == "mul" or user.sources[1:] == [at.number] or at.number in user.sources[1:]:
                    return steps
            elif user.name in VIEWS | COPIES:
                front.append((user, steps))
            elif user.name in STEPS and user.result.numel() <= at.result.numel():
                front.append((user, [*steps, user]))
    return None
