"""What modules were given and what they gave, in one run; and how far two runs are apart, at real tokens.

x: (batch, length, features), or heads on an axis of their own, or tokens flattened.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Call:
    """One call of a module: the first tensor that it was given, and the first that it gave."""

    given: Tensor | None
    gave: Tensor | None


Calls = dict[str, list[Call]]
"""Module -> its calls, in the order in which the modules came to an end."""


@torch.no_grad()
def watch(model: nn.Module, names: Collection[str], inputs: Mapping[str, Tensor]) -> tuple[Calls, Any]:
    """(the calls of the modules that exist and were called, the model's answer)."""
    seen: Calls = {}

    def note(name: str) -> Any:
        def hook(_: nn.Module, args: Any, kwargs: Any, gave: Any) -> None:
            given = first((*args, *kwargs.values()))
            seen.setdefault(name, []).append(Call(_kept(given), _kept(first(gave))))

        return hook

    modules = dict(model.named_modules(remove_duplicate=False))
    handles = [modules[name].register_forward_hook(note(name), with_kwargs=True) for name in names if name in modules]
    try:
        return seen, model(**inputs)
    finally:
        for handle in handles:
            handle.remove()


def first(found: Any) -> Tensor | None:
    """The first tensor of numbers in what a module was given or gave."""
    if isinstance(found, Tensor):
        return found
    parts: Iterable[Any] = found.values() if isinstance(found, Mapping) else found
    return next((x for x in parts if isinstance(x, Tensor)), None) if isinstance(parts, Iterable) else None


def _kept(x: Tensor | None) -> Tensor | None:
    # A copy: what follows may add to it in place.
    return None if x is None else x.detach().clone()


def apart(a: Tensor, b: Tensor, real: Tensor | None = None) -> float | None:
    """The largest difference at real tokens, `real` (batch, length); None where the shapes do not go together.

    Equal infinities, and NaN on both sides, are no difference; NaN on one side is NaN.

    >>> apart(torch.tensor([1.0, torch.inf]), torch.tensor([1.5, torch.inf]))
    0.5
    """
    found = [gap(x, b, real) for x in spellings(a, b.shape)]
    return min(found, default=None)


def spellings(x: Tensor, shape: Iterable[int]) -> list[Tensor]:
    """x in the other's shape: as it is, or with heads before or after the length, or all heads together."""
    turned = [x, x.transpose(1, 2)] if x.ndim == 4 else [x]
    wide = [*turned, *(y.flatten(2) for y in turned if y.ndim == 4)]
    whole = tuple(shape)
    if x.ndim == 3 and len(whole) == 4:  # theirs has heads apart
        wide = [y.view(*x.shape[:2], -1, whole[-1]) for y in [x] if x.shape[-1] % whole[-1] == 0]
        wide += [y.transpose(1, 2) for y in wide]
    return [y for y in wide if tuple(y.shape) == whole]


def gap(a: Tensor, b: Tensor, real: Tensor | None = None) -> float:
    """The largest difference of two tensors of one shape, at real tokens."""
    far = torch.where((a == b) | (a.isnan() & b.isnan()), 0.0, (a.double() - b.double()).abs())
    return at_real(far, real).max().item() if far.numel() else 0.0


def at_real(x: Tensor, real: Tensor | None) -> Tensor:
    """Of a tensor with an axis of tokens, the real ones."""
    if real is None:
        return x
    if x.shape[:2] == real.shape:
        return x[real]
    if x.ndim == 4 and (x.shape[0], x.shape[2]) == tuple(real.shape):
        return x.transpose(1, 2)[real]
    return x[real.flatten()] if len(x) == real.numel() else x


def largest(x: Tensor, real: Tensor | None = None) -> float:
    """The largest magnitude at real tokens that is a number."""
    kept = at_real(x, real).abs()
    return kept[kept.isfinite()].max().item() if kept.isfinite().any() else 0.0


__all__ = ["Call", "Calls", "apart", "largest", "watch"]
