"""The numbers of a model by name, which a written file holds in one place at its top."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from oneblock.export.values import Code, literal

MEANINGS = {
    "VOCAB": "tokens",
    "DIM": "width of the stream",
    "DEPTH": "blocks",
    "HEADS": "of attention",
    "KV_HEADS": "heads of keys and values, shared by neighbours among the heads",
    "HEAD_DIM": "features of a query or key",
    "VALUE_DIM": "features of a value",
    "HIDDEN": "features between up and down",
    "EXPERTS": "feed-forwards side by side",
    "ACTIVE": "of them for each token",
    "EXPERT_HIDDEN": "features between up and down of an expert",
    "POSITIONS": "rows of the table of positions",
    "OFFSET": "the row of position 0",
    "START": "the number of the first position",
    "SEGMENTS": "kinds of text",
    "WINDOW": "tokens that one sees, itself among them",
    "AHEAD": "tokens after itself that one sees",
    "WINDOWS": "tokens that one sees in each layer, itself among them; None: all before it",
    "SIGHTS": "tokens ahead, or (ahead, behind and itself), that one sees in each layer; None: all",
    "CROSS_WINDOW": "tokens of the memory that one sees, up to that at its own index",
    "CROSS_AHEAD": "tokens of the memory beyond its own index that one sees",
    "CROSS_WINDOWS": "tokens of the memory that each layer sees, up to that at one's own index; None: all",
    "CROSS_SIGHTS": "tokens beyond its own index, or (beyond, up to it), that one sees of the memory; None: all",
    "BUCKETS": "of distances",
    "FARTHEST": "from this distance on, keys share a bucket",
    "SLOPES": "how fast each head forgets",
    "THETA": "wave i of n / 2 turns by theta^(-2i/n) per position",
    "FEATURES": "of a head that are turned",
    "FACTOR": "by which long waves are slowed",
    "TRAINED": "length of the training's texts",
    "LOW": "where the ramp between waves that are kept and waves that are slowed begins",
    "HIGH": "and where it ends",
    "WIDTH": "how wide it is",
    "SHORT": "divisors of the waves in texts up to that length",
    "LONG": "and in longer ones",
    "SIZE": "of cos and sin",
    "SCALE": "of the scores",
    "SOFTCAP": "bound of the scores",
    "EPS": "of the norms",
    "SKIP": "factor on the stream",
    "BRANCH_SCALE": "factor on what a sublayer adds",
    "LABELS": "that a text may have",
    "LOGIT_SCALE": "factor on the logits",
    "LOGIT_SOFTCAP": "bound of the logits",
    "FIRST": "the token that a decoder starts from",
    "DROPOUT": "share of features that are zero in training",
    "EMBEDDING_DROPOUT": "after the embedding",
    "ATTENTION_DROPOUT": "of attention weights",
    "HIDDEN_DROPOUT": "between up and down",
    "FINAL_DROPOUT": "after the last norm",
    "HEAD_DROPOUT": "before the labels",
}
"""Name of a constant -> what it is, in the order of a file."""
STACK = re.compile("^(EN|DE)CODER_")
WIDE = 112
"""Columns of a tuple's lines."""


@dataclass
class Constants:
    """Names that are given out while the bricks are written, each for one value."""

    held: dict[str, Any] = field(default_factory=dict)

    def use(self, name: str, value: Any) -> str:
        """The name for a value; the value itself where the name means another one already."""
        held = self.held.setdefault(name, value)
        return name if held == value and type(held) is type(value) else literal(value)

    def named(self, names: Mapping[str, str]) -> Callable[[str, Any], str]:
        """What turns (what a spec calls it, value) into text, for a brick whose numbers have these names."""

        def text(setting: str, value: Any) -> str:
            plain = value is None or isinstance(value, bool | Code) or setting not in names
            return literal(value) if plain else self.use(names[setting], value)

        return text

    def lines(self, body: str) -> list[str]:
        """The definitions of all names that occur in `body`."""
        order = [f"{stack}{name}" for name in MEANINGS for stack in ("", "ENCODER_", "DECODER_")]
        used = [name for name in order if name in self.held and re.search(rf"\b{name}\b", body)]
        return [line for name in used for line in defined(name, self.held[name], MEANINGS[STACK.sub("", name)])]


def defined(name: str, value: Any, meaning: str) -> list[str]:
    """One definition; a long tuple takes several lines.

    >>> defined("HEADS", 8, "of attention")
    ['HEADS = 8  # of attention']
    """
    text = pattern([literal(one) for one in value]) if isinstance(value, tuple) else literal(value)
    comment = f"  # {meaning}" if meaning else ""
    if len(f"{name} = {text}{comment}") <= WIDE:
        return [f"{name} = {text}{comment}"]
    lines, line = [f"{name} = ({comment}"], "   "
    for one in text[1:-1].split(", "):
        if len(line) + len(one) > WIDE:
            lines, line = [*lines, line], "   "
        line += f" {one},"
    return [*lines, line.rstrip(), ")  # fmt: skip"]


def period(items: list[str]) -> int:
    """The shortest beginning that a list repeats to its end.

    >>> period(["a", "b", "a", "b"])
    2
    """
    sizes = (n for n in range(1, len(items) + 1) if len(items) % n == 0)
    return next((n for n in sizes if items[:n] * (len(items) // n) == items), 0)


def runs(items: list[str]) -> list[tuple[str, int]]:
    """Equal neighbours together.

    >>> runs(["a", "a", "b"])
    [('a', 2), ('b', 1)]
    """
    found: list[tuple[str, int]] = []
    for item in items:
        count = found.pop()[1] + 1 if found and found[-1][0] == item else 1
        found.append((item, count))
    return found


def pattern(items: list[str]) -> str:
    """A tuple as short as it can be said.

    >>> pattern(["4", "None"] * 3), pattern(["1", "1", "1", "2"])
    ('(4, None) * 3', '(1,) * 3 + (2,)')
    """
    size, grouped = period(items), runs(items)
    if size < len(items):
        return f"{_tuple(items[:size])} * {len(items) // size}"
    if len(grouped) <= len(items) // 2:
        return " + ".join(_tuple([item]) + (f" * {count}" if count > 1 else "") for item, count in grouped)
    return _tuple(items)


def _tuple(items: list[str]) -> str:
    return f"({', '.join(items)}{',' * (len(items) == 1)})"
