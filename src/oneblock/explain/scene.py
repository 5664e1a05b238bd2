"""What a recipe may ask: the events so far, the spec at a path, parameters, and where tokens stand.

ids: (batch, length).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from oneblock.explain.cause import Stand
from oneblock.explain.record import Event
from oneblock.explain.step import Operand
from oneblock.spec import Block, Model, get

PLACE = re.compile(r"^(?P<stack>(?:encoder|decoder)\.)?(?:layers\.(?P<layer>\d+)\.)?(?P<rest>.*)$")


@dataclass(eq=False)
class Scene:
    """One recorded forward pass."""

    model: nn.Module
    events: list[Event]
    stands: dict[str, Stand]
    given: dict[str, Operand]
    names: dict[int, str] = field(default_factory=dict)
    by_name: dict[str, Event] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.by_name = {event.name: event for event in self.events}

    def reach(self, event: Event) -> None:
        """From here on the event's tensor is known by its name."""
        self.names[id(event.tensor)] = event.name

    def number(self, value: Any) -> Operand:
        """A number, or a part of the spec."""
        return Operand("number", "", value)

    def step(self, name: str) -> Operand:
        """The tensor of an event."""
        return Operand("step", name, self.by_name[name].tensor)

    def has(self, name: str) -> bool:
        """Whether there is an event of that name."""
        return name in self.by_name

    def weight(self, path: str) -> Operand:
        """A parameter; None where the module has none of that name."""
        parent, _, last = path.rpartition(".")
        return Operand("weight", path, getattr(self.model.get_submodule(parent), last, None))

    def known(self, tensor: Tensor) -> Operand | None:
        """An operand for a tensor that is an earlier event's own."""
        name = self.names.get(id(tensor))
        return None if name is None else self.step(name)

    def linear(self, path: str) -> dict[str, Operand]:
        """The operands `weight` and `bias` of a linear layer."""
        return {"weight": self.weight(f"{path}.weight"), "bias": self.weight(f"{path}.bias")}

    def stack(self, path: str) -> str:
        """The stack that a path is in: "", "encoder." or "decoder."."""
        found = PLACE.match(path)
        return (found["stack"] or "") if found else ""

    def spec(self, path: str) -> Model:
        """The spec of the stack that a path is in."""
        stack = self.stack(path)
        spec: Any = self.model.spec
        return get(spec, stack.rstrip(".")) if stack else spec  # type: ignore[return-value]

    def block(self, path: str) -> Block:
        """The spec of the block that a path is in."""
        found = PLACE.match(path)
        assert found is not None
        return self.spec(path).layers[int(found["layer"])]

    def rest(self, path: str) -> str:
        """A path without its stack and layer."""
        found = PLACE.match(path)
        assert found is not None
        return found["rest"]
