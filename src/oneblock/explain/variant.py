"""A model as data, a spec and its tensors: what it takes to change one thing and run it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from oneblock.explain.record import Event, record
from oneblock.hint import first_line
from oneblock.spec import Spec, put
from oneblock.weights.fill import empty, fill, unique

FEW = 4096
"""Numbers of a large tensor that are looked at before all of them are."""
BEYOND = 1e-9
"""Relative to the largest number of a step, what rounding of float64 does not explain, however deep the model."""


@dataclass(frozen=True, eq=False)
class Variant:
    """`tensors` by name, each once, in float64; `call` is what the model is called with."""

    spec: Spec
    tensors: Mapping[str, Tensor]
    call: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, model: Any, call: Mapping[str, Any]) -> Variant:
        """What a model says that it is."""
        return cls(model.spec, unique(model), call)

    def with_spec(self, path: str, new: Any, lent: Mapping[str, Tensor] | None = None) -> Variant:
        """With another value at a path of the spec, which may be a function of the old one; see `respecced`."""
        return self.respecced(put(self.spec, path, new), lent)

    def respecced(self, spec: Spec, lent: Mapping[str, Tensor] | None = None) -> Variant:
        """With another spec: its tensors are ours where we have them, else `lent` ones. ValueError: they do not fit."""
        shapes = unique(empty(spec))
        known = dict(lent or {}) | dict(self.tensors)
        if missing := [name for name in shapes if name not in known]:
            raise ValueError(f"variant: no numbers for {missing[0]}")
        return replace(self, spec=spec, tensors={name: known[name] for name in shapes})

    def with_tensors(self, new: Mapping[str, Tensor]) -> Variant:
        """With other numbers under some names."""
        return replace(self, tensors=dict(self.tensors) | dict(new))

    def built(self) -> nn.Module:
        """The model. ValueError: tensors that do not fit the spec."""
        model = empty(self.spec)
        fill(model, {name: x.contiguous() for name, x in self.tensors.items()}, "variant")
        return model.eval().requires_grad_(False)

    def run(self) -> list[Event]:
        """The steps of one forward pass. ValueError: tensors that do not fit, an id or a place that has no row."""
        try:
            return record(self.built(), self.call)[0]
        except (IndexError, RuntimeError, TypeError) as error:
            raise ValueError(f"variant: {first_line(error)}") from None


def gap(a: Tensor, b: Tensor) -> float:
    """The largest difference relative to the largest finite entry of either; infinite where shapes or infinities do."""
    if a.shape != b.shape:
        return torch.inf
    if torch.equal(a, b):
        return 0.0
    kept = a.isfinite()
    if not torch.equal(kept, b.isfinite()):
        return torch.inf
    x, y = (a.double(), b.double()) if bool(kept.all()) else (a[kept].double(), b[kept].double())
    if not x.numel():
        return 0.0
    size = max(x.abs().max().item(), y.abs().max().item())
    return (x - y).abs().max().item() / size if size else 0.0


def differs(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are further apart than rounding explains."""
    return gap(a, b) > BEYOND
