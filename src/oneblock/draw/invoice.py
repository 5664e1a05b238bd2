"""A cost as text: a table of bricks, the sums to the last digit, what follows from them; every term with its formula.

Language changes words only; each number is the same in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from oneblock.cost import HELD, Column, Cost, Crossover, Machine, active, crossovers, parameters
from oneblock.draw.amount import seconds, share, short
from oneblock.draw.bill import Bill
from oneblock.draw.describe import number
from oneblock.draw.table import width
from oneblock.spec import Attention, FeedForward, MoE, Seq2Seq
from oneblock.words import label, say

COLUMNS_OF: dict[str, tuple[Column, ...]] = {
    "train": ("forward", "backward", "weights", "activations", "gradients", "optimiser", "moved"),
    "prefill": ("forward", "weights", "cache", "moved"),
    "decode": ("forward", "weights", "cache", "moved"),
}
"""What a table shows of each phase, besides intensity, what bounds the time, and the time."""


LEFT_OUT = ("moved", "gradients", "optimiser", "weights", "intensity", "backward", "activations", "cache")
"""Columns that a narrow terminal does not get, first to last."""


def heading(shown: Sequence[str], lang: str) -> list[str]:
    """The heads of the columns."""
    columns = [label(key, lang) if key == "intensity" else say(f"column.{key}", lang).name for key in shown]
    return [label("brick", lang), label("parameters", lang), *columns, label("bound", lang), label("at least", lang)]


def cells(row: Bill, shown: Sequence[str], lang: str) -> list[str]:
    """One row as text; all copies of a brick together."""
    name = row.name if row.times == 1 else label("times", lang, row.times, row.name)
    bound = row.bound
    amounts: dict[str, float] = dict(row.sums) | {"intensity": round(bound.intensity, 2)}
    limit = say(f"bound.{bound.limit}", lang).name if bound.seconds else ""
    columns = [short(amounts[key]) for key in shown]
    return ["  " * row.level + name, number(row.parameters), *columns, limit, seconds(bound.seconds)]


def table(rows: Sequence[Bill], found: Cost, lang: str, room: int | None = None) -> str:
    """Rows as aligned plain text, numbers to the right; in a narrow room some columns are left out."""
    shown: list[str] = [*COLUMNS_OF[found.job.phase], "intensity"]
    for column in ("", *LEFT_OUT):
        shown = [one for one in shown if one != column]
        text = aligned([heading(shown, lang), *(cells(row, shown, lang) for row in rows)])
        if room is None or width(text.partition("\n")[0]) <= room:
            break
    return text


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Cells as plain text: the first column to the left, the others to the right.

    >>> print(aligned([["a", "1"], ["bcd", "22"]]))
    a     1
    bcd  22
    """
    rooms = [max(width(line[column]) for line in lines) for column in range(len(lines[0]))]
    said = []
    for first, *others in lines:
        right = (" " * (room - width(cell)) + cell for cell, room in zip(others, rooms[1:], strict=True))
        said.append("  ".join([first + " " * (rooms[0] - width(first)), *right]).rstrip())
    return "\n".join(said)


def summary(found: Cost, machine: Machine, lang: str) -> list[str]:
    """What was priced, the sums to the last digit, who takes how much, from which length on attention costs most."""
    job, spec = found.job, found.spec
    phase = say(f"phase.{job.phase}", lang)
    sizes = [number(job.batch), number(job.length)]
    pair, model = isinstance(spec, Seq2Seq), spec.decoder if isinstance(spec, Seq2Seq) else spec
    sizes += [number(job.read)] if pair else []
    lines = [label("cost of source" if pair else "cost of", lang, phase.name, *sizes, job.dtype, machine.name)]
    forward, backward = number(found.forward), number(found.backward)
    lines.append(label("cost both", lang, forward, backward) if job.training else label("cost forward", lang, forward))
    lines.append(label("cost memory", lang, number(found.memory)))
    if active(spec) != parameters(spec):
        lines.append(label("cost uses", lang, *(number(active(spec, tables)) for tables in (2, 1, 0))))
    lines += shares(found, lang)
    lines += [crossing(one, lang) for one in crossovers(spec, job.dtype)]
    if model.length is not None and job.length > model.length:
        lines.append(label("trained longer", lang, number(model.length)))
    lines.append(label("machine", lang, machine.name, machine.source))
    return lines


def crossing(one: Crossover, lang: str) -> str:
    """One crossover in words."""
    name = say(f"crossover.{one.name}", lang).name
    return label("cost crossing", lang, name, number(round(one.length)), f"{one.times:.3g}", one.of)


def shares(found: Cost, lang: str) -> list[str]:
    """How much of parameters and FLOPs attention and feed-forward take."""
    said = []
    whole = sum(line.times * line.parameters for line in found.lines)
    for words, kinds in (("Attention", Attention), ("FeedForward", FeedForward | MoE)):
        mine = [line for line in found.lines if isinstance(line.brick, kinds)]
        flops = sum(line.total("forward") for line in mine)
        held = sum(line.times * line.parameters for line in mine)
        if mine:
            name = say(words, lang).name
            said.append(label("cost shares", lang, name, share(held, whole), share(flops, found.forward)))
    return said


def conventions(found: Cost, lang: str) -> list[str]:
    """What the columns mean, a sentence each."""
    columns = COLUMNS_OF[found.job.phase]
    said = [(say(f"column.{column}", lang).name, say(f"column.{column}", lang).purpose) for column in columns]
    return [label("in streams", lang, name, purpose) for name, purpose in said]


def listing(rows: Sequence[Bill], lang: str) -> list[str]:
    """Every term of every brick: its column, its name, its formula, the numbers in it, and what it is."""
    said = []
    for row in rows:
        if len(row.lines) == 1 and row.lines[0].terms:
            line = row.lines[0]
            said.append(f"{row.name}  {row.path}")
            for term in line.terms:
                words, column = say(f"cost.{term.name}", lang), say(f"column.{term.column}", lang).name
                filled = term.form.filled(term.sizes)
                formula = term.form.text if filled == term.form.text else f"{term.form.text} = {filled}"
                said.append(f"  {column} · {words.name}: {formula} = {number(term.value)}")
                said.append(f"    {words.purpose}")
    return said


def held(found: Cost) -> dict[str, int]:
    """Bytes held, by what they are."""
    return {column: found.totals[column] for column in HELD if found.totals[column]}
