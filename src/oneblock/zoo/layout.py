"""What a layout is: a way of naming tensors that no config.json goes with, so that sizes are read off shapes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from oneblock.spec import Spec
from oneblock.zoo.family import Rows

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Layout:
    """One way of naming tensors.

    mark: a name that such files have and others do not (a regular expression). read: (their shapes, sizes) -> the spec
    and its rows; its keywords are the sizes that may be given. words: other spellings of these, in a JSON file beside
    the tensors. shown: words of that JSON that only repeat what shapes show. ignored: tensors without information.
    renamed: their names -> those in the rows. axis: (name, shape, dim) -> along which axis the parts of a tensor in
    several files follow each other, None where all are the same.
    """

    mark: str
    read: Callable[..., tuple[Spec, Rows]]
    words: Mapping[str, str] = field(default_factory=dict)
    shown: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    axis: Callable[[str, tuple[int, ...], int], int | None] | None = None

    @property
    def sizes(self) -> tuple[str, ...]:
        """What may be given besides the file."""
        return tuple(self.read.__kwdefaults__ or ())


def count(names: Iterable[str], pattern: str) -> int:
    """How many different numbers the one group of a pattern takes.

    >>> count(["h.0.w", "h.1.w", "norm"], r"h\\.(\\d+)\\.")
    2
    """
    return len({found[1] for name in names if (found := re.match(pattern, name))})


def needed(heads: int) -> None:
    """Refuse to guess what no shape shows."""
    if heads < 1:
        raise ValueError("heads: no shape shows it; give heads=..., or a JSON file beside the tensors that says it")
