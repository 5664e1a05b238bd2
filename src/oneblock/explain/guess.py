"""A guess at what went wrong where two models part: a change of one of them that can be tried.

A guess is made for the first step that differs; its operands are those of the model that is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from oneblock.explain.step import Step
from oneblock.explain.variant import Variant
from oneblock.spec import Attention, Model, Seq2Seq, get

Make = Callable[[Variant], Variant]
Makes = tuple[tuple[str, Make], ...]
"""What is changed, as a glob of paths, and the change."""


@dataclass(frozen=True)
class Guess:
    """A cause that may explain a difference: its kind, what is and what would be, the change, and a quick test.

    `makes` are the change on ever fewer layers. `values` are operands that make the first step that differs agree:
    where they do not, the change need not be run. None: there is no such test.
    """

    kind: str
    before: str
    after: str
    makes: Makes
    values: Mapping[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Parting:
    """Where two models part: the step of the model that is changed, the other's tensor, both as data."""

    step: Step
    other: Tensor
    mine: Variant
    theirs: Variant

    @property
    def last(self) -> str:
        """The step's last name."""
        return self.step.path.rpartition(".")[2].partition("#")[0]

    @property
    def parent(self) -> str:
        """Where it happens."""
        return self.step.path.rpartition(".")[0]

    @property
    def stack(self) -> str:
        """ "", "encoder." or "decoder."."""
        return f"{self.step.path.partition('.')[0]}." if isinstance(self.mine.spec, Seq2Seq) else ""

    @property
    def model(self) -> Model:
        """The spec of that stack."""
        found: Model = get(self.mine.spec, self.stack.rstrip("."))
        return found

    def attention(self) -> Attention | None:
        """The spec of the attention that the step is in, None outside."""
        for name in ("attention", "cross"):
            before, there, _ = self.step.path.partition(f".{name}.")
            if there:
                found: Attention = get(self.mine.spec, f"{before}.{name}")
                return found
        return None

    def value(self, name: str) -> Any:
        """An operand, None without one of that name."""
        return self.step.operands[name].value if name in self.step.operands else None


Guesses = Iterator[Guess]
GUESSES: dict[str, list[Callable[[Parting], Guesses]]] = {}
"""The last name of a step -> what may be wrong with it; "*" any, tried last."""


def about(*names: str) -> Callable[[Callable[[Parting], Guesses]], Callable[[Parting], Guesses]]:
    """Register guesses for steps of these last names."""

    def register(make: Callable[[Parting], Guesses]) -> Callable[[Parting], Guesses]:
        for name in names:
            GUESSES.setdefault(name, []).append(make)
        return make

    return register


def everywhere(path: str, new: Any) -> Makes:
    """The change of a spec at a path, on ever fewer layers."""
    return tuple((glob, lambda variant, glob=glob: variant.with_spec(glob, new)) for glob in scopes(path))


def scopes(path: str) -> tuple[str, ...]:
    """A path of one layer, then as globs of ever fewer layers: of all stacks, of its own, itself.

    >>> scopes("encoder.layers.1.attention")
    ('*.layers.*.attention', 'encoder.layers.*.attention', 'encoder.layers.1.attention')
    """
    words = path.split(".")
    if "layers" not in words:
        return (path,)
    at = words.index("layers")
    wide = [*words[: at + 1], "*", *words[at + 2 :]]
    several = [".".join(["*", *wide[1:]])] if at else []
    return (*several, ".".join(wide), path)
