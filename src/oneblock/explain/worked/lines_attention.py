"""Attention by hand: heads, rotations, scores, one row of the softmax, the mean of the values; and any single score.

q, k, v: (batch, heads, length, width); scores: (batch, heads, query, key).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from oneblock.explain.positions import by_distance, turning
from oneblock.explain.worked.form import Line, Softmax
from oneblock.explain.worked.number import dot, factor, indexed, plus, product, shown, total
from oneblock.explain.worked.place import At, Lines, floats, work

ALL = 6
"""Keys up to which the mean of the values is written out in full."""


@work("step.query", "step.key", "step.value")
def heads(at: At) -> Lines:
    """Which feature of the projection becomes the head's first; turned by the position where it is."""
    here, index, x = at.here(), at.index(at.step.dims, at.step.tensor), at.value("x")
    if here is None or index is None:
        return []
    head, token = index
    row = x[at.row, token] if x.ndim == 3 else x[at.row, head, token]
    width, start = len(here), head * len(here) if x.ndim == 3 else 0
    where = (token, start) if x.ndim == 3 else (head, token, 0)
    if not at.has("rope"):
        return [at.line(0, indexed(at.symbol, where))]
    return turned(at, row[start : start + width], token)


def turned(at: At, row: Tensor, token: int) -> Lines:
    """The first pair of features, turned."""
    rope, position = at.value("rope"), at.value("position")
    n = 2 * round(len(row) * rope.fraction / 2)
    if not n:
        return []
    one = position[at.row % len(position)]
    speed, size = turning(rope, 0, n, int(one.max()) + 1)
    other = 1 if rope.layout == "interleaved" else n // 2
    angle, a, b = int(one[token]) * speed, row[0].item(), row[other].item()
    front = "" if size == 1 else f"{shown(size)} · "
    said = f"{shown(a)}·cos {shown(angle)} − {factor(b)}·sin {shown(angle)}"
    return [
        Line("φ", f"{int(one[token])}·{shown(speed)}", angle),
        at.line(0, f"{front}({said})" if front else said),
    ]


@work("step.scores")
def scores(at: At) -> Lines:
    """The dot product of the query with the key it looks at most; and what dividing does to the variance."""
    line = score(at, at.head, at.token[at.stack], at.key[at.path])
    raw = (at.step.tensor[at.row, at.head] / at.value("scale")).double().flatten()
    if len(raw) < 2:
        return [line]
    divided = raw * at.value("scale")
    squares = [f"{factor(x)}²" for x in (raw - raw.mean())[:2].tolist()]
    how = f"({total(squares, len(raw))}) / {len(raw)}"
    return [
        line,
        Line("var(q·k)", how, raw.var(unbiased=False).item()),
        Line(
            "var(s)",
            f"var(q·k) · {shown(at.value('scale'))}²",
            divided.var(unbiased=False).item(),
            "note scaled" if rooted(at) else "",
        ),
    ]


def rooted(at: At) -> bool:
    """Whether scores are divided by the root of the width, as usual."""
    return math.isclose(at.value("scale"), at.value("q").shape[-1] ** -0.5, rel_tol=1e-6)


def score(at: At, head: int, query: int, key: int) -> Line:
    """One score: (q · k) / √d_k."""
    q, k = at.value("q"), at.value("k")
    owner = head * k.shape[1] // q.shape[1]
    said = dot(q[at.row, head, query].tolist(), k[at.row, owner, key].tolist())
    scale, width = at.value("scale"), q.shape[-1]
    usual = rooted(at)
    how = f"({said}) / √{width}" if usual else f"({said})" if scale == 1 else f"{shown(scale)} · ({said})"
    value = at.step.tensor[at.row, head, query, key].item()
    return Line(indexed("s", (head, query, key)), how, value)


@work("step.masked")
def masked(at: At) -> Lines:
    """The score of the same key after cap, bias and mask."""
    return [hidden(at, at.head, at.token[at.stack], at.key[at.path])]


def hidden(at: At, head: int, query: int, key: int) -> Line:
    """One score after cap, bias and mask."""
    before = at.value("scores")[at.row, head, query, key].item()
    cap, cause = at.value("softcap"), at.value("hidden")
    said = shown(before) if cap is None else f"{shown(cap)} · tanh({shown(before)} / {shown(cap)})"
    if at.has("rule"):
        many = at.step.shape[1]
        bias = by_distance(at.value("rule"), at.value("q_at"), at.value("k_at"), many, at.value("table"))
        said = plus(said, bias[at.row % len(bias), head, query, key].item())
    away = bool(cause[at.row % len(cause), query, key])
    value = at.step.tensor[at.row, head, query, key].item()
    return Line(indexed("s'", (head, query, key)), f"{said} + {shown(-math.inf)}" if away else said, value)


def softmax(at: At, head: int, query: int) -> Softmax:
    """A row of the softmax: largest, differences, exps, sum, shares. The weights are those of the trace."""
    row: Tensor = at.value("scores")[at.row, head, query].double()
    largest = row.max().item()
    shifted = row - (largest if math.isfinite(largest) else 0.0)
    exps = shifted.exp()
    weights = at.step.tensor[at.row, head, query]
    return Softmax(
        query, floats(row), largest, floats(shifted), floats(exps), exps.sum().item(), floats(weights)
    )  # fmt: skip


@work("step.pattern")
def pattern(at: At) -> Lines:
    """The share of the key that is looked at most."""
    return [share(at, at.head, at.token[at.stack], at.key[at.path])]


def share(at: At, head: int, query: int, key: int) -> Line:
    """One attention weight: exp(s − largest) / sum."""
    found = softmax(at, head, query)
    how = f"e^({shown(found.shifted[key])}) / {shown(found.sum)}" if found.sum else "0 / 0"
    return Line(indexed("a", (head, query, key)), how, found.weights[key])


@work("step.z")
def z(at: At) -> Lines:
    """The first feature of the weighted mean of the values."""
    weights, v = at.value("pattern")[at.row, at.head, at.token[at.stack]], at.value("v")
    owner = at.head * v.shape[1] // at.heads
    column = v[at.row, owner, :, 0]
    order = torch.arange(len(weights)) if len(weights) <= ALL else weights.argsort(descending=True)[: ALL - 1]
    terms = [product(weights[key].item(), column[key].item()) for key in order.tolist()]
    return [at.line(0, total(terms, len(weights)))]
