"""What a change of architecture costs, line by line: each brick that differs, and what it adds or saves.

The lines are applied one after the other; each is priced against what the ones before it made, so that the prices add
up to the difference of the two models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from oneblock.cost import Cost, Machine, bound, cost, parameters
from oneblock.draw.amount import change, seconds
from oneblock.draw.compare import compare
from oneblock.draw.table import width
from oneblock.spec import Change, Seq2Seq, Spec, apply
from oneblock.words import label, say

COLUMNS = ("parameters", "forward", "backward", "memory", "cache", "seconds")
Price = dict[str, float]


@dataclass(frozen=True)
class Priced:
    """A line of a comparison and what it adds (below 0: saves); None where it cannot stand without the next line."""

    topic: str
    name: str
    said: str
    price: Price | None

    @property
    def plain(self) -> dict[str, Any]:
        """Topic and numbers, without a word of any language."""
        return {"topic": self.topic, "price": self.price}


def priced(before: Spec, after: Spec, machine: Machine, lang: str = "en", **job: Any) -> list[Priced]:
    """Every line in which two models differ, with its price, and their whole difference at the end.

    `job` is what `oneblock.cost` takes. Some changes fit only together (more heads and a wider stream): they are priced
    with the next line.

    >>> from oneblock.cost.machines import MACHINES
    >>> from oneblock.zoo import named
    >>> a, b = named("vaswani"), named("vaswani", depth=2)
    >>> lines = priced(a, b, MACHINES["nvidia-h100"], length=10)
    >>> [(line.topic, line.price["parameters"]) for line in lines]
    [('sizes', -29425664), ('total', -29425664)]
    """
    first, last = price(cost(before, **job), machine), price(cost(after, **job), machine)
    now, end = _crossed(before, after)
    here = price(cost(now, **job), machine)
    # What comes or goes with an encoder belongs to the first line, which is that of the structure.
    extra = _plus(_minus(here, first), _minus(last, price(cost(end, **job), machine)))
    lines, waiting = list[Priced](), tuple[Change, ...]()
    for line in compare(before, after, lang):
        waiting += line.changes
        made = _applied(now, waiting, job)
        if made is None:
            lines.append(Priced(line.topic, line.name, line.said, None))
            continue
        there = price(made, machine)
        lines.append(Priced(line.topic, line.name, line.said, _plus(_minus(there, here), extra)))
        now, here, waiting, extra = made.spec, there, (), dict.fromkeys(first, 0.0)
    return [*lines, Priced("total", label("total", lang), "", _minus(last, first))]


def _crossed(before: Spec, after: Spec) -> tuple[Spec, Spec]:
    """The streams that are compared: where one side is an encoder-decoder, its decoder."""
    if isinstance(before, Seq2Seq) and isinstance(after, Seq2Seq):
        return before, after
    a, b = (spec.decoder if isinstance(spec, Seq2Seq) else spec for spec in (before, after))
    return a, b


def _applied(spec: Spec, changes: tuple[Change, ...], job: dict[str, Any]) -> Cost | None:
    """The cost after some changes; None where they do not fit together yet."""
    try:
        return cost(apply(spec, changes), **job)
    except ValueError:
        return None


def price(found: Cost, machine: Machine) -> Price:
    """What is compared of a cost."""
    return {
        "parameters": parameters(found.spec),
        "forward": found.forward,
        "backward": found.backward,
        "memory": found.memory,
        "cache": found.totals["cache"],
        "seconds": bound(found.lines, machine, found.job.dtype).seconds,
    }


def _minus(a: Price, b: Price) -> Price:
    return {key: a[key] - b[key] for key in a}


def _plus(a: Price, b: Price) -> Price:
    return {key: a[key] + b[key] for key in a}


def text(lines: Sequence[Priced], lang: str) -> str:
    """Lines as aligned plain text: topic, what it adds in each column, and what was and is there."""
    shown = [name for name in COLUMNS if any(line.price and line.price[name] for line in lines)]
    heads = ["", *(_head(name, lang) for name in shown), ""]
    table = [heads, *([line.name, *_cells(line, shown, lang), line.said] for line in lines)]
    rooms = [max(width(row[column]) for row in table) for column in range(len(shown) + 1)]
    return "\n".join(_row(row, rooms) for row in table)


def _row(row: Sequence[str], rooms: Sequence[int]) -> str:
    name, *cells, said = row
    right = [" " * (room - width(cell)) + cell for cell, room in zip(cells, rooms[1:], strict=True)]
    return "  ".join([name + " " * (rooms[0] - width(name)), *right, said]).rstrip()


def _head(name: str, lang: str) -> str:
    if name in ("forward", "backward", "cache"):
        return say(f"column.{name}", lang).name
    return label({"parameters": "parameters", "memory": "memory held", "seconds": "at least"}[name], lang)


def _cells(line: Priced, shown: Sequence[str], lang: str) -> Iterator[str]:
    for index, name in enumerate(shown):
        if line.price is None:
            yield label("together", lang) if index == 0 else ""
        elif name == "seconds":
            value = line.price[name]
            yield ("+" if value > 0 else "−" if value < 0 else "") + seconds(abs(value))
        else:
            yield change(line.price[name])
