"""Two models on the same input: the first brick where they part, and what may be the cause, tried before it is said.

ids: (batch, length). All numbers are those of float64.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from oneblock.explain import causes_in_weights, causes_of_place  # noqa: F401 - they register what may be wrong
from oneblock.explain.causes_of_difference import guesses
from oneblock.explain.comparison import Cause, Comparison, Difference
from oneblock.explain.guess import Guess, Parting
from oneblock.explain.inputs import Inputs, Traced, asked
from oneblock.explain.record import Event, record
from oneblock.explain.step import Step
from oneblock.explain.trace import trace
from oneblock.explain.variant import FEW, Variant, differs, gap
from oneblock.generate import Pipeline, Translator
from oneblock.spec import apply, diff
from oneblock.weights.fill import empty, unique
from oneblock.words import ENTRIES

MOST = 4
"""So many differences are followed, one after the other."""


def compare(a: Traced, b: Traced, inputs: Inputs, target: str | Tensor | Sequence[int] | None = None) -> Comparison:
    """Run two models on the same input, line up their steps, name the first brick that differs, and look for the cause.

    Both run in float64, so that rounding hides nothing. Tensors that differ by no more than the rounding of the dtypes
    they are stored in are taken as equal first. A cause is a change of one model's spec or weights; it is tried, and
    named only if the step then agrees, and all steps behind it (`agrees`) or the ones up to the next difference.

    Args:
        a: a model of ours, or a pipeline or translator, which read a text.
        b: another one of the same shape.
        inputs: as for `trace`; a text is read by the tokenizer of `a`.
        target: of an encoder-decoder what it should write, by default what `a` writes.

    Raises:
        ValueError: models that cannot be lined up, with the first difference of their specs; else as `trace`.

    >>> from dataclasses import replace
    >>> from oneblock import build, named
    >>> a, b = (build(named("gpt2", dim=8, depth=2, heads=2, vocab=9)).eval() for _ in range(2))
    >>> _ = b.load_state_dict(a.state_dict())
    >>> b.layers[1].attention.scale = 1.0
    >>> found = compare(a, b, [1, 2, 3]).first
    >>> found.step, found.cause.kind, found.cause.after
    ('layers.1.attention.scores', 'scale', '1')
    """
    what = asked(a, inputs, target)
    call = {name: x for name, x in what.call.items() if name != "labels"}
    mine, theirs = inner(a), inner(b)
    fitting(mine, theirs)
    wide, other, rounded, apart = widened(mine, theirs)
    one, two = Side("A", wide, call), Side("B", other, call)
    lined_up(one, two)
    first = parted(one.events, two.events)
    known = Comparison(len(one.events), gap(one.events[-1].tensor, two.events[-1].tensor), rounded, apart)
    if first is None:
        return known
    found = followed(one, two, first) or followed(two, one, first)
    if not found:
        found = [located(one, two, one.events, first, step_of(one.variant, first), None)]
    return replace(known, differences=tuple(found))


class Side:
    """One of two models: run once, and again from what its spec and weights say."""

    def __init__(self, name: str, model: nn.Module, call: dict[str, Any]) -> None:
        self.name, self.model = name, model
        self.events: list[Event] = record(model, call)[0]
        self.variant = Variant.of(model, call)

    @cached_property
    def honest(self) -> bool:
        """Whether the model computes what its spec and weights say, so that a change of those tells something."""
        try:
            return parted(self.events, self.variant.run()) is None
        except ValueError:
            return False


def inner(model: Traced) -> Any:
    """The model in whatever reads texts for it."""
    return model.model if isinstance(model, Pipeline | Translator) else model


def fitting(a: Any, b: Any) -> None:
    """Refuse models whose weights have other shapes or whose steps have other names."""
    if getattr(b, "spec", None) is None:
        raise ValueError(
            f"compare: expected a model of ours, got {type(b).__name__}; `adopt` makes one of some modules"
        )
    one, other = ({name: tuple(x.shape) for name, x in model.state_dict().items()} for model in (a, b))
    names = {name for name in one.keys() ^ other.keys() if not name.endswith("bias")}
    if type(a) is not type(b) or names or any(one[name] != other[name] for name in one.keys() & other.keys()):
        raise ValueError(f"compare: the models cannot be lined up: {structural(a.spec, b.spec)}")


def structural(a: Any, b: Any) -> str:
    """The first difference of two specs that changes the names or shapes of weights, else the first one."""
    if type(a) is not type(b):
        return f"{type(a).__name__} in A, {type(b).__name__} in B; expected two of one kind"
    changes = diff(a, b)
    shapes = {name: x.shape for name, x in empty(a).state_dict().items()}
    for change in changes:
        try:
            if {name: x.shape for name, x in empty(apply(a, (change,))).state_dict().items()} == shapes:
                continue
        except ValueError:
            pass
        return f"{change.path} is {change.before!r:.60} in A, {change.after!r:.60} in B; expected the same"
    return "their weights have other names or shapes than their specs say; load them anew"


def widened(a: nn.Module, b: nn.Module) -> tuple[nn.Module, nn.Module, int, int]:
    """(both in float64, how many tensors differ by their rounding alone, how many by more).

    What differs by rounding alone is made equal.
    """
    wide, other = (copy.deepcopy(model).double().eval().requires_grad_(False) for model in (a, b))
    one, two = unique(wide), dict(other.named_parameters())
    stored = [dict(model.named_parameters()) for model in (a, b)]
    rounded = apart = 0
    for name, x in one.items():
        y = two.get(name)
        if y is None or torch.equal(x, y):
            continue
        coarse = max(torch.finfo(where[name].dtype).eps for where in stored)
        tiny = max(torch.finfo(where[name].dtype).tiny for where in stored)
        few = (x.flatten()[:FEW], y.flatten()[:FEW])
        near = all(
            bool((abs(p - q) <= coarse * torch.maximum(p.abs(), q.abs()) + tiny).all()) for p, q in (few, (x, y))
        )
        rounded, apart = rounded + near, apart + (not near)
        if near:
            y.copy_(x)
    return wide, other, rounded, apart


def lined_up(a: Side, b: Side) -> None:
    """Refuse models whose steps have other names or shapes."""
    steps = [[(event.name, tuple(event.tensor.shape)) for event in side.events] for side in (a, b)]
    if steps[0] != steps[1]:
        one, other = next((x, y) for x, y in zip(*steps, strict=False) if x != y)
        specs = [side.model.spec for side in (a, b)]
        said = structural(*specs) if specs[0] != specs[1] else f"step {one[0]} of A is {other[0]} in B"
        raise ValueError(f"compare: the models cannot be lined up: {said}")


def parted(a: Sequence[Event], b: Sequence[Event], start: int = 0) -> int | None:
    """The first step, from `start` on, that differs; None where none does."""
    for at, (one, other) in enumerate(zip(a, b, strict=False)):
        if at >= start and (one.name != other.name or differs(one.tensor, other.tensor)):
            return at
    return None if len(a) == len(b) else min(len(a), len(b))


def followed(mine: Side, theirs: Side, first: int) -> list[Difference]:
    """The differences that changes of `mine` explain, in order, and the first that none does; [] if it is the first."""
    found: list[Difference] = []
    variant, events, at = mine.variant, mine.events, first
    while len(found) < MOST and mine.honest:
        step = step_of(variant, at)
        parting = None if step is None else Parting(step, theirs.events[at].tensor, variant, theirs.variant)
        best = None if parting is None else tried(parting, mine.name, theirs, at)
        if step is None or best is None:
            return [*found, located(mine, theirs, events, at, step, None)] if found else []
        cause, variant, after = best
        found.append(located(mine, theirs, events, at, step, cause))
        if after is None:
            break
        events, at = variant.run(), after
    return found


def step_of(variant: Variant, at: int) -> Step | None:
    """A step with its operands; None where the variant has something that no recipe knows."""
    try:
        step: Step = trace(variant.built(), variant.call).steps[at]  # type: ignore[arg-type]
        return step
    except ValueError:
        return None


def tried(parting: Parting, mine: str, theirs: Side, at: int) -> tuple[Cause, Variant, int | None] | None:
    """What makes most agree: (the cause, the changed model, where they part then); None where nothing does anything."""
    best: tuple[Cause, Variant, int | None] | None = None
    for guess in guesses(parting):
        if not promising(guess, parting):
            continue
        for where, make in guess.makes:
            try:
                variant = make(parting.mine)
                after = parted(variant.run(), theirs.events, at)
            except (ValueError, AttributeError, TypeError, KeyError):  # a change that some layer cannot hold
                continue
            cause = Cause(guess.kind, where, mine, guess.before, guess.after, after is None)
            if after is None:
                return cause, variant, None
            known = best[2] if best is not None else at
            if known is not None and after > known and guess.kind != "weights":
                best = cause, variant, after
    return best


def promising(guess: Guess, parting: Parting) -> bool:
    """Whether the step agrees when it is made again with the operands that the guess says."""
    if guess.values is None:
        return True
    try:
        return not differs(parting.step.recomputed(guess.values), parting.other)
    except (RuntimeError, ValueError, IndexError, TypeError):  # shapes or operands that do not fit
        return False


def located(
    mine: Side, theirs: Side, events: Sequence[Event], at: int, step: Step | None, cause: Cause | None
) -> Difference:
    """Where and by how much two models differ at a step; `events` are those of `mine`, changed or not."""
    one, other = events[at], theirs.events[at]
    a, b = (one, other) if mine.name == "A" else (other, one)
    x, y = a.tensor.double(), b.tensor.double()
    away = torch.where(x == y, 0.0, (x - y).abs()).nan_to_num(nan=torch.inf, posinf=torch.inf)
    place = torch.unravel_index(away.flatten().argmax(), away.shape)
    at_place = tuple(int(axis) for axis in place)
    known = dict(mine.model.named_modules())
    brick = one.name if one.name in known else one.parent or one.name
    words = step.kind if step is not None else f"step.{one.last}"
    return Difference(
        one.name, brick, words if words in ENTRIES else "op.other", away.max().item(), gap(x, y), at_place,
        x[at_place].item(), y[at_place].item(), cause,
    )  # fmt: skip
