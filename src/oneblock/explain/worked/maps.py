"""Who looks at whom, as matrices: scores, mask, weights of heads; and the arithmetic of single cells.

scores, pattern: (batch, heads, query, key).
"""

from __future__ import annotations

from torch import Tensor

from oneblock.explain.trace import Trace
from oneblock.explain.worked.form import Cell, Head, Maps, Matrix, Overview
from oneblock.explain.worked.lines_attention import hidden, score, share
from oneblock.explain.worked.place import At

FULL = 6_000
"""Numbers of all heads' matrices up to which all are shown in full."""
CELLS = 600
"""Cells of all heads up to which each has its arithmetic."""
SIDE = 12
"""Tokens up to which each cell of the chosen head has its arithmetic."""
MOST = 300_000
"""Weights of all attentions up to which all are kept for a look from afar."""


def names(trace: Trace, stack: str, length: int) -> tuple[str, ...]:
    """How the tokens of a stack read; their numbers where that is not known."""
    known = trace.tokens.get(stack, ())
    return known if len(known) == length else tuple(str(place) for place in range(length))


def sides(trace: Trace, path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(queries, keys) of an attention."""
    stack = next((s for s in ("encoder.", "decoder.") if path.startswith(s)), "")
    there = "encoder." if path.endswith(".cross") else stack
    queries, keys = trace[f"{path}.pattern"].shape[2:]
    return names(trace, stack, queries), names(trace, there, keys)


def maps(at: At, kind: str) -> Maps:
    """The matrices of the attention that a place is in."""
    trace, path, row = at.trace, at.path, at.row
    steps = {name: trace[f"{path}.{name}"] for name in ("scores", "masked", "pattern")}
    heads, queries, keys = steps["pattern"].shape[1:]
    causes: Tensor = steps["masked"].operands["hidden"].value
    whole = range(heads) if 3 * heads * queries * keys <= FULL else [at.head]
    shown = {
        head: Head(*(matrix(steps[name].tensor[row, head]) for name in ("scores", "masked", "pattern")))
        for head in whole
    }
    return Maps(
        path, kind, *sides(trace, path), tuple(map(tuple, causes[row % len(causes)].tolist())), shown,
        tuple(matrix(one) for one in steps["pattern"].tensor[row]), at.head, at.token[at.stack], cells(at, list(whole)),
    )  # fmt: skip


def matrix(x: Tensor) -> Matrix:
    """A tensor (query, key) as numbers."""
    return tuple(map(tuple, x.tolist()))


def cells(at: At, heads: list[int]) -> tuple[Cell, ...]:
    """The arithmetic of as many cells as there is room for: of all heads, of the chosen one, of its chosen row."""
    pattern = at.trace[f"{at.path}.pattern"]
    queries, keys = pattern.shape[2:]
    rows = range(queries)
    if len(heads) * queries * keys > CELLS:
        heads = [at.head]
        rows = rows if max(queries, keys) <= SIDE else range(at.token[at.stack], at.token[at.stack] + 1)
    columns = range(min(keys, CELLS))
    return tuple(cell(at, head, query, key) for head in heads for query in rows for key in columns)


def cell(at: At, head: int, query: int, key: int) -> Cell:
    """One cell from query and key to weight."""
    steps = [at.on(at.trace[f"{at.path}.{name}"]) for name in ("scores", "masked", "pattern")]
    lines = [score(steps[0], head, query, key), hidden(steps[1], head, query, key), share(steps[2], head, query, key)]
    if lines[1].value == lines[0].value:  # no cap, no bias, not hidden
        del lines[1]
    return Cell(head, query, key, tuple(lines))


def overview(trace: Trace, shown: set[str], row: int = 0) -> tuple[Overview, ...]:
    """The weights of the attentions that are not among the shown ones; none where they are too many."""
    steps = [step for step in trace if step.kind == "step.pattern"]
    if sum(step.tensor[row].numel() for step in steps) > MOST:
        return ()
    paths = [step.path.removesuffix(".pattern") for step in steps]
    return tuple(
        Overview(path, *sides(trace, path), tuple(matrix(one) for one in step.tensor[row]))
        for path, step in zip(paths, steps, strict=True)
        if path not in shown
    )
