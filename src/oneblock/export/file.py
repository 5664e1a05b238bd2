"""A file that is being written: its constants, its classes, and how the bricks' sources come into it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from oneblock.export.constants import Constants
from oneblock.export.fold import Fold
from oneblock.export.values import Code, Use

SOURCES = ("norms", "positions", "attention", "feedforward", "ends", "stack")


@cache
def source(name: str) -> str:
    """The source of a class or function, as it stands in the folder of sources."""
    return sources()[name]


@cache
def sources() -> dict[str, str]:
    """Every class and function there, by name."""
    found = {}
    for file in SOURCES:
        text = (files("oneblock.export") / "source" / f"{file}.py").read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                lines = text.splitlines(keepends=True)[node.lineno - 1 : node.end_lineno]
                found[node.name] = "".join(lines)
    return found


@dataclass
class File:
    """What is written so far.

    parts: class or function -> its text, in the order of the file. made: a brick's spec, with what else tells its uses
    apart -> how it is made. context: what attention is told besides the stream. alike: whether all dropouts have one
    share.
    """

    dim: int
    alike: bool
    constants: Constants = field(default_factory=Constants)
    parts: dict[str, str] = field(default_factory=dict)
    made: dict[Any, Code] = field(default_factory=dict)
    context: list[str] = field(default_factory=list)
    counted: str = "real"

    def brick(self, name: str, uses: Sequence[Use], names: Mapping[str, str], **how: Any) -> list[Code]:
        """Write the class for all its uses, and say how each use makes it; `names` are those of its numbers."""
        if not uses:
            return []
        fold = Fold(source(name), uses, self.constants.named(names), **how)
        self.parts[fold.title or name] = fold.text()
        return [fold.call(use) for use in uses]

    def plain(self, name: str) -> Code:
        """Write a function or class that has nothing to fold."""
        self.parts.setdefault(name, source(name).rstrip())
        return Code(name)

    def share_name(self, name: str) -> str:
        """The name of a share of dropout: one for all, or its own."""
        return "DROPOUT" if self.alike else name

    def dropout(self, name: str, p: float) -> Code | None:
        """How a dropout is made."""
        return Code(f"nn.Dropout({self.constants.use(self.share_name(name), p)})") if p else None
