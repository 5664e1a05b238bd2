"""One forward pass with open ears: every named tensor and every output of a linear layer, in order.

ids: (batch, length).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from oneblock.explain.aliases import hint
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
    """(events in order, the model's output) of one call in eval mode; with `graph`, gradients can be asked for.

    ValueError: an edit that names no step which can be replaced, or that changes a shape.
    """
    inner: list[tuple[int, Event]] = []
    ends = ENDS if hasattr(model, "encoder") else {}
    replaced: list[Tensor] = []
    edits = tapped(edit or {}, ends, replaced) | ({"*embedding.token": rooted} if graph else {})
    with ExitStack() as stack:
        stack.enter_context(evaluating(model))
        stack.enter_context(torch.set_grad_enabled(graph))
        seen = stack.enter_context(listen(model, edits))
        for name, module in model.named_modules():
            if type(module) is nn.Linear or name.endswith("embedding.segment"):
                stack.callback(module.register_forward_hook(heard(name, inner, seen)).remove)
        output = model(**call)
    unused = [glob for glob in edits if not any(fnmatchcase(name, glob) for name in seen)]
    if unused:
        raise ValueError(
            f"edit: {unused[0]!r:.80} is the name of no step that can be replaced; {hint(unused[0], seen)}"
        )
    modules = dict(model.named_modules())
    names = {name: ends.get(name, name) for name in seen}
    taps = [
        Event(names[name], tensor, modules[names[name].rpartition(".")[0]], seen.operands[name])
        for name, tensor in seen.items()
    ]
    return merged(taps, inner, replaced), output


def tapped(edit: Mapping[str, Edit], ends: Mapping[str, str], replaced: list[Tensor]) -> dict[str, Edit]:
    """The edits under the names that taps have; what they replace is kept in `replaced`."""
    taps = {ours: tap for tap, ours in ends.items()}
    return {taps.get(glob, glob): alike(glob, f, replaced) for glob, f in edit.items()}


def alike(glob: str, edit: Edit, replaced: list[Tensor]) -> Edit:
    """The edit, whose result must be a tensor of the same shape. ValueError: it is not."""

    def checked(x: Tensor) -> Tensor:
        replaced.append(x)
        made = edit(x)
        if not isinstance(made, Tensor) or made.shape != x.shape:
            got = tuple(made.shape) if isinstance(made, Tensor) else type(made).__name__
            raise ValueError(f"edit: {glob}: expected a tensor of shape {tuple(x.shape)} in its place, got {got}")
        return made

    return checked


def rooted(x: Tensor) -> Tensor:
    """x, as something that gradients reach even in a model whose parameters are frozen."""
    return x if x.requires_grad else x.detach().requires_grad_()


def heard(name: str, inner: list[tuple[int, Event]], seen: dict[str, Tensor]) -> Callable[..., None]:
    """A hook that notes a module's output, and how many taps came before it."""

    def hook(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        inner.append((len(seen), Event(name, output, module, {"x": inputs[0]})))

    return hook


def merged(taps: list[Event], inner: list[tuple[int, Event]], replaced: Sequence[Tensor] = ()) -> list[Event]:
    """Both in order; what a tap names itself (the same tensor, or the one it was before an edit) is not told twice."""
    named = {id(tensor) for tensor in (*(event.tensor for event in taps), *replaced)}
    found: list[Event] = []
    for number in range(len(taps) + 1):
        found += [event for at, event in inner if at == number and id(event.tensor) not in named]
        found += taps[number : number + 1]
    return found
