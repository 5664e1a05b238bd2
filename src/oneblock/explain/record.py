"""One forward pass with open ears: every named tensor and every output of a linear layer, in order.

ids: (batch, length).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from oneblock.generate.mode import evaluating
from oneblock.tap import listen

ENDS = {"final": "encoder.final", "final#2": "decoder.final"}
"""What the ends of two stacks are called when the model that holds both runs them itself."""

Edit = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Event:
    """Something that was computed: full name, tensor, its module, and what a tap said of its operands."""

    name: str
    tensor: Tensor
    module: nn.Module
    given: dict[str, Any] = field(default_factory=dict)

    @property
    def last(self) -> str:
        """The name without its path, and without the number of a repetition."""
        return self.name.rpartition(".")[2].partition("#")[0]

    @property
    def parent(self) -> str:
        """The path before that."""
        return self.name.rpartition(".")[0]


def record(
    model: nn.Module, call: Mapping[str, Any], edit: Mapping[str, Edit] | None = None, graph: bool = False
) -> tuple[list[Event], Any]:
    """(events in order, the model's output) of one call in eval mode; with `graph`, gradients can be asked for."""
    inner: list[tuple[int, Event]] = []
    edits = dict(edit or {}) | ({"*embedding.token": rooted} if graph else {})
    with ExitStack() as stack:
        stack.enter_context(evaluating(model))
        stack.enter_context(torch.set_grad_enabled(graph))
        seen = stack.enter_context(listen(model, edits))
        for name, module in model.named_modules():
            if type(module) is nn.Linear or name.endswith("embedding.segment"):
                stack.callback(module.register_forward_hook(heard(name, inner, seen)).remove)
        output = model(**call)
    modules = dict(model.named_modules())
    ends = ENDS if hasattr(model, "encoder") else {}
    names = {name: ends.get(name, name) for name in seen}
    taps = [
        Event(names[name], tensor, modules[names[name].rpartition(".")[0]], seen.operands[name])
        for name, tensor in seen.items()
    ]
    return merged(taps, inner), output


def rooted(x: Tensor) -> Tensor:
    """x, as something that gradients reach even in a model whose parameters are frozen."""
    return x if x.requires_grad else x.detach().requires_grad_()


def heard(name: str, inner: list[tuple[int, Event]], seen: dict[str, Tensor]) -> Callable[..., None]:
    """A hook that notes a module's output, and how many taps came before it."""

    def hook(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        inner.append((len(seen), Event(name, output, module, {"x": inputs[0]})))

    return hook


def merged(taps: list[Event], inner: list[tuple[int, Event]]) -> list[Event]:
    """Both in order; what a tap names itself (the same tensor) is not told twice."""
    named = {id(event.tensor) for event in taps}
    found: list[Event] = []
    for number in range(len(taps) + 1):
        found += [event for at, event in inner if at == number and id(event.tensor) not in named]
        found += taps[number : number + 1]
    return found
