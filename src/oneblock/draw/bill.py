"""A cost as rows: every brick with what it costs, all of its copies together; runs of equal layers are one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from oneblock.cost import COLUMNS, Bound, Column, Cost, Line, Machine, bound
from oneblock.draw.describe import kind
from oneblock.draw.fold import Run, fold
from oneblock.spec import Attention, Model, Seq2Seq
from oneblock.words import say


@dataclass(frozen=True)
class Bill:
    """One row: a brick of `path`, there `times`; what all of them cost together, and the lines that this sums."""

    level: int
    path: str
    name: str
    times: int
    lines: tuple[Line, ...]
    bound: Bound

    @property
    def parameters(self) -> int:
        """Parameters of all copies."""
        return sum(line.times * line.parameters for line in self.lines)

    @property
    def sums(self) -> dict[Column, int]:
        """Every column, all copies together."""
        return {column: sum(line.total(column) for line in self.lines) for column in COLUMNS}


def bills(found: Cost, machine: Machine, lang: str = "en", depth: int = 2) -> tuple[Bill, ...]:
    """The rows of a cost down to `depth`: 0 the whole, 1 its streams' parts, 2 and more the bricks in each layer.

    >>> from oneblock.cost import cost
    >>> from oneblock.cost.machines import MACHINES
    >>> from oneblock.zoo import named
    >>> rows = bills(cost(named("vaswani"), length=512), MACHINES["nvidia-h100"], depth=0)
    >>> [(row.name, row.sums["forward"]) for row in rows]
    [('Encoder-decoder', 74159489024), ('Encoder', 22548578304), ('Decoder', 51610910720)]
    """
    if depth < 0:
        raise ValueError(f"depth: expected 0 or more, got {depth}")
    table = Table(found, machine, lang)
    if not isinstance(found.spec, Seq2Seq):
        return (table.row(0, "", "Model", found.lines), *table.stack(found.spec, "", 1, depth))
    rows = [table.row(0, "", "Seq2Seq", found.lines)]
    for name, model in (("encoder", found.spec.encoder), ("decoder", found.spec.decoder)):
        rows.append(table.row(1, name, name, table.under(name)))
        rows += table.stack(model, f"{name}.", 2, depth + 1)
    return tuple(rows)


@dataclass(frozen=True)
class Table:
    """What rows are made from."""

    cost: Cost
    machine: Machine
    lang: str

    def row(self, level: int, path: str, words: str, lines: Sequence[Line], times: int = 1) -> Bill:
        """A row for some lines."""
        found = bound(lines, self.machine, self.cost.job.dtype)
        return Bill(level, path, say(words, self.lang).name, times, tuple(lines), found)

    def under(self, path: str) -> list[Line]:
        """The lines of a brick and of what is inside it."""
        return [line for line in self.cost.lines if line.path == path or line.path.startswith(f"{path}.")]

    def stack(self, model: Model, at: str, level: int, depth: int) -> Iterator[Bill]:
        """The parts of a stream."""
        if level > depth:
            return
        yield self.row(level, f"{at}embedding", "Embedding", self.under(f"{at}embedding"))
        if model.position_bias is not None:
            yield self.row(level, f"{at}position_bias", "Relative", self.under(f"{at}position_bias"))
        shared = [line for line in self.cost.lines if line.path == at.removesuffix(".") and line.terms]
        if shared:
            yield self.row(level, f"{at}shared", "cost.shared", shared)
        for run in fold(model.layers):
            yield from self.run(run, run, at, level, depth)
        if model.norm is not None:
            yield self.row(level, f"{at}norm", kind(model.norm), self.under(f"{at}norm"))
        if model.head is not None:
            yield self.row(level, f"{at}head", kind(model.head), self.under(f"{at}head"))

    def run(self, run: Run, whole: Run, at: str, level: int, depth: int) -> Iterator[Bill]:
        """The rows of a run of layers; of a pattern, of each of its blocks, all repeats of the `whole` run together."""
        period, offsets = len(whole.blocks), range(run.start - whole.start, run.start - whole.start + len(run.blocks))
        span = range(run.start, run.start + run.times * len(run.blocks)) if run is whole else None
        layers = span or [
            layer
            for layer in range(whole.start, whole.start + whole.times * period)
            if offsets.start <= (layer - whole.start) % period < offsets.start + run.times * len(run.blocks)
        ]
        lines = self.layers(at, set(layers))
        path = f"{at}layers.{run.layers}"
        if len(run.blocks) > 1:
            yield self.row(level, path, "Block", lines, run.times)
            for part in fold(run.blocks, run.start):
                yield from self.run(part, whole, at, level + 1, depth + 1)
            return
        yield self.row(level, path, "Block", lines, len(layers))
        if level < depth:
            yield from self.block(lines, path, level + 1)

    def layers(self, at: str, layers: set[int]) -> list[Line]:
        """The lines of some layers of a stack: each as often as it is there among them."""
        mine = [line for line in self.cost.lines if line.layers and line.path.startswith(f"{at}layers.")]
        counted = [(len(layers.intersection(line.layers)), line) for line in mine]
        return [replace(line, times=times) for times, line in counted if times]

    def block(self, lines: list[Line], path: str, level: int) -> Iterator[Bill]:
        """The bricks of a block, its residuals last."""
        own = lines[0]
        for line in lines[1:]:
            inside = line.path.removeprefix(f"{own.path}.")
            deeper = inside.startswith(("attention.", "cross."))
            words = kind(line.brick, inside == "cross") if isinstance(line.brick, Attention) else kind(line.brick)
            yield self.row(level + deeper, f"{path}.{inside}", words, [line], line.times)
        yield self.row(level, path, "residual", [own], own.times)
