"""Where in a step the exercise looks: which token, which head, which feature; and the numbers of its operands there.

x: (batch, length, dim); heads: (batch, heads, length, width).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from oneblock.explain.arithmetic import rows_of_experts
from oneblock.explain.step import Step
from oneblock.explain.trace import Trace
from oneblock.explain.worked.form import Line, Row
from oneblock.explain.worked.number import indexed
from oneblock.explain.worked.wording import written

FIRST = 5
"""Numbers of a row that are shown."""


@dataclass(frozen=True, eq=False)
class At:
    """A step and the place in it: text `row` of the batch, `token` of each stack, `head`, `key` of each attention, and
    `said`, the id of the likeliest candidate."""

    trace: Trace
    step: Step
    row: int
    token: dict[str, int]
    head: int
    key: dict[str, int]
    said: int = 0

    @property
    def path(self) -> str:
        """The path of the module that the step happens in."""
        return self.step.path.rpartition(".")[0]

    @property
    def stack(self) -> str:
        """The stack of the step: "", "encoder." or "decoder."."""
        first = self.step.path.partition(".")[0]
        return f"{first}." if first in ("encoder", "decoder") else ""

    def value(self, name: str) -> Any:
        """The value of an operand; None where there is none."""
        operand = self.step.operands.get(name)
        return None if operand is None else operand.value

    def has(self, *names: str) -> bool:
        """Whether there are operands of these names."""
        return all(name in self.step.operands for name in names)

    def index(self, dims: Sequence[str], tensor: Tensor) -> tuple[int, ...] | None:
        """The place without its last axis, and without the batch's; None where the exercise has no place there."""
        found = []
        for dim, size in zip(dims[:-1], tensor.shape[:-1], strict=True):
            at = self.along(dim, size)
            if at is None or not 0 <= at < size:
                return None
            found.append(at)
        return tuple(found[1:] if dims[0] == "B" else found)

    def along(self, dim: str, size: int) -> int | None:
        """The place along one axis."""
        if dim == "B":
            return self.row
        if dim in ("h", "h_kv"):
            return min(self.head, size - 1) if dim == "h" else self.head * size // self.heads
        if dim == "L_k":
            return self.key.get(self.path, 0)
        if dim in ("L", "L_q"):
            crossing = self.path.endswith(".cross") and self.step.kind in ("step.k", "step.v")
            return self.key.get(self.path, 0) if crossing else self.token[self.stack]
        if dim == "B·L·E_k":
            return self.of_expert()
        return self.flat if dim == "B·L" else None

    @property
    def flat(self) -> int:
        """The token among all tokens of all texts."""
        return self.row * self.length + self.token[self.stack]

    @property
    def expert(self) -> int:
        """The expert that counts most for the token."""
        return int(self.value("chosen")[self.flat][0])

    def of_expert(self) -> int:
        """The row of the token among the tokens of all experts: expert after expert, each one's in order."""
        return rows_of_experts(self.value("chosen"))[self.flat, self.expert]

    @property
    def symbol(self) -> str:
        """How the step is written."""
        return written(self.step).symbol

    @property
    def heads(self) -> int:
        """Heads of the attention that the step happens in."""
        return int(self.trace[f"{self.path}.query"].shape[1])

    @property
    def length(self) -> int:
        """Tokens of the stack that the step happens in."""
        return int(self.trace.given[f"{self.stack}ids"].value.shape[1])

    def here(self) -> Tensor | None:
        """The row of the step at the place: (width,)."""
        index = self.index(self.step.dims, self.step.tensor)
        if index is None:
            return None
        tensor = self.step.tensor if self.step.dims[0] != "B" else self.step.tensor[self.row]
        return tensor[index]

    def at(self, name: str, index: tuple[int, ...]) -> Tensor:
        """An operand of the step at a place of one text."""
        value: Tensor = self.value(name)
        return value[self.row][index]

    def line(self, feature: int, how: str, note: str = "") -> Line:
        """The number of the step at the place and a feature, with the sum that gives it."""
        index, here = self.index(self.step.dims, self.step.tensor), self.here()
        assert index is not None
        assert here is not None
        return Line(indexed(self.symbol, (*index, feature)), how, here[feature].item(), note)

    def on(self, step: Step) -> At:
        """The same place in another step."""
        return replace(self, step=step)


Lines = list[Line]
Work = Callable[[At], Lines]
WORK: dict[str, Work] = {}
"""Kind of a step -> its arithmetic at a place."""


def work(*kinds: str) -> Callable[[Work], Work]:
    """Register how steps of these kinds are worked by hand."""

    def register(function: Work) -> Work:
        WORK.update(dict.fromkeys(kinds, function))
        return function

    return register


def floats(x: Tensor, most: int | None = None) -> Row:
    """The first numbers of a vector."""
    return tuple(x[:most].tolist())
