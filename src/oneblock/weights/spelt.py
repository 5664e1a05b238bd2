"""Tensors of files under today's names: old words, names of a bare model, and several names of one tensor."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

import torch
from torch import Tensor

from oneblock.hint import nearest
from oneblock.weights.tensors import Stored


class Spelt:
    """The tensors of files by today's names; `left` are those that nobody has read.

    Args:
        files: where they lie.
        renamed: pattern of an old name -> today's; names that come to one are one tensor, and must be equal.
        wanted: names that a model asks for.
        prefix: what the files of a bare model leave out of them.
        source: what errors begin with.
    """

    def __init__(
        self, files: Stored, renamed: Mapping[str, str], wanted: Collection[str], prefix: str, source: object
    ) -> None:
        self.files, self.source = files, source
        self.keys: dict[str, list[str]] = {}
        for key in files.files:
            name = today(key, renamed)
            whole = today(prefix + name, renamed)
            self.keys.setdefault(whole if whole in wanted and name not in wanted else name, []).append(key)
        self.left = set(self.keys)

    def first(self, names: Iterable[str]) -> str:
        """The first of some names that is there."""
        key, *more = names
        for name in (key, *more):
            if name in self.keys:
                return name
        raise ValueError(f"{self.source}: {key} is missing; {nearest(key, self.keys)}")

    def read(self, names: Iterable[str]) -> list[Tensor]:
        """Tensors by today's names."""
        names = list(names)
        self.left -= set(names)
        found = self.files.read(self.keys[name][0] for name in names)
        for name, x in zip(names, found, strict=True):
            for other in self.keys[name][1:]:
                if not torch.equal(self.files.read([other])[0], x):
                    raise ValueError(f"{self.source}: {other} differs from {self.keys[name][0]}, its other name")
        return found


def today(key: str, renamed: Mapping[str, str]) -> str:
    """A name in today's spelling."""
    for old, new in renamed.items():
        key = re.sub(old, new, key)
    return key


__all__ = ["Spelt", "today"]
