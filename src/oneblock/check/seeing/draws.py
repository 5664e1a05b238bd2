"""Where a run draws random numbers, and how dropout is switched off in a copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace

import torch
from torch import Tensor, nn

from oneblock.check.calling.adapter import Ask
from oneblock.check.copies import copied, undisturbed
from oneblock.check.seeing.watch import Operation, watching
from oneblock.check.subject import Subject

DROPS = frozenset(["bernoulli", "native_dropout", "feature_dropout", "alpha_dropout", "dropout"])
"""Operations that decide what is dropped."""
DRAWS = DROPS | frozenset(
    [
        "rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm", "normal", "uniform",
        "multinomial", "exponential", "random", "log_normal", "geometric", "cauchy", "poisson", "rrelu_with_noise",
    ]
)  # fmt: skip
"""Operations that take numbers from a generator."""


def drops(one: Operation) -> bool:
    """Whether an operation drops something at random."""
    if one.name.startswith("_scaled_dot_product"):
        return any(type(x) is float and 0 < x < 1 for x in one.arguments[3:6])
    return one.name in DROPS


def drawn(operations: Sequence[Operation]) -> list[Operation]:
    """The operations that drew random numbers, in order."""
    return [one for one in operations if one.name in DRAWS or drops(one)]


def operations_of(subject: Subject, module: nn.Module, ask: Ask, train: bool) -> list[Operation]:
    """Names and places of every operation of one run of any copy."""
    dtype = next((x.dtype for x in module.parameters() if x.is_floating_point()), torch.float32)
    with watching(module, keep=False) as watch:
        subject.answer(ask, dtype, module=module, train=train)
    return watch.operations


def seeded(subject: Subject, seed: int) -> Subject:
    """The same subject, its random numbers drawn from another seed."""
    return replace(subject, seed=seed)


def rates(module: nn.Module) -> Iterator[tuple[str, nn.Module, str, float]]:
    """(path, module, attribute, rate) of every dropout that is configured in the parts of a module."""
    for path, part in module.named_modules():
        if isinstance(part, nn.modules.dropout._DropoutNd) or "dropout" in type(part).__name__.lower():
            if isinstance(getattr(part, "p", None), int | float):
                yield path, part, "p", float(part.p)  # type: ignore[arg-type]
            continue
        for name, value in vars(part).items():
            if "drop" in name.lower() and "layer" not in name.lower() and type(value) is float and 0 <= value < 1:
                yield path, part, name, value


def held_at_zero(part: nn.Module) -> None:
    """Set rates of dropout to 0 in the specifications and configurations that a module holds."""
    for name, value in list(vars(part).items()):
        if is_dataclass(value) and not isinstance(value, type) and value.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            told = {one.name: 0.0 for one in fields(value) if one.init and is_rate(one.name, getattr(value, one.name))}
            if told:
                setattr(part, name, replace(value, **told))
        elif hasattr(value, "__dict__") and not isinstance(value, nn.Module | Tensor | type) and not callable(value):
            for inner, number in list(vars(value).items()):
                if is_rate(inner, number):
                    setattr(value, inner, 0.0)


def is_rate(name: str, value: object) -> bool:
    """Whether an attribute is the rate of a dropout above 0."""
    return "drop" in name.lower() and "layer" not in name.lower() and type(value) is float and 0 < value < 1


def undropped(subject: Subject) -> nn.Module:
    """A copy with every dropout at 0."""
    if "undropped" not in subject.memo:
        twin = copied(subject.copy())
        for _, part, name, _ in list(rates(twin)):
            setattr(part, name, 0.0)
        for part in twin.modules():
            held_at_zero(part)
        subject.memo["undropped"] = twin
    found: nn.Module = subject.memo["undropped"]
    return found


def generator_moves(subject: Subject, ask: Ask) -> bool:
    """Whether one run in eval mode leaves torch's generator elsewhere than it was."""
    twin = subject.copy()
    with undisturbed(subject.seed), torch.no_grad():
        was: Tensor = torch.get_rng_state()
        subject.adapter.answer(twin, ask.to(subject.usable(torch.float64)))
        return not torch.equal(was, torch.get_rng_state())
