"""A feed-forward by hand: the activation of one feature, and of experts the best one, its share, and the mixture.

x: (batch, length, dim).
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from oneblock.explain.arithmetic import rows_of_experts
from oneblock.explain.worked.form import Line
from oneblock.explain.worked.number import dot, factor, indexed, product, shown, total
from oneblock.explain.worked.place import At, Lines, work

SAID = {
    "relu": "max(0, {0})",
    "gelu": "{1}·Φ({0})",
    "gelu_tanh": "{1}·½(1 + tanh(√(2/π)·({0} + 0.044715·{1}³)))",
    "silu": "{1} / (1 + e^−({0}))",
    "tanh": "tanh({0})",
}
"""Activation -> its formula for a number, plain and in parentheses if negative."""


@work("step.hidden", "step.hidden.gated")
def hidden(at: At) -> Lines:
    """The activation of the feature that is largest, and how many are not cut off."""
    here, index = at.here(), at.index(at.step.dims, at.step.tensor)
    if here is None or index is None:
        return []
    feature = int(here.abs().argmax())
    if at.has("chosen"):
        return by_expert(at, feature)
    up = at.at("up", index)[feature].item()
    gate = at.at("gate", index)[feature].item() if at.has("gate") else None
    lines = [at.line(feature, activation(at.value("activation"), up, gate))]
    if at.value("activation") == "relu" and gate is None:
        share = (here > 0).double().mean().item()
        lines.append(Line("#{h > 0} / d_ff", f"{int((here > 0).sum())} / {len(here)}", share, "note kept"))
    return lines


def activation(name: str, up: float, gate: float | None) -> str:
    """The activation of a number, or of its gate, times it."""
    bent = up if gate is None else gate
    said = SAID[name].format(shown(bent), factor(bent))
    return said if gate is None else f"{said} · {factor(up)}"


def by_expert(at: At, feature: int) -> Lines:
    """A feature of the expert that counts most for the token, from what the token is."""
    x: Tensor = at.value("x")
    row, lines = x.reshape(-1, x.shape[-1])[at.flat], []
    for name, letter in (("gate", "g"), ("up", "u")):
        if at.value(name) is not None:
            column = at.value(name)[at.expert][feature]
            value = (row @ column).item()
            lines.append(Line(indexed(letter, (at.flat, feature)), dot(row.tolist(), column.tolist()), value))
    lines[0] = replace(lines[0], note="note expert")
    gate = lines[0].value if len(lines) > 1 else None
    return [*lines, at.line(feature, activation(at.value("act"), lines[-1].value, gate))]


@work("step.weights")
def router_weights(at: At) -> Lines:
    """The share of the best expert of the token."""
    index = at.index(at.step.dims, at.step.tensor)
    assert index is not None
    best = at.value("scores")[index].sort(descending=True).values
    best = (best if at.value("whole") else best[: at.value("active")]) - best[0]
    terms = [f"e^({shown(x)})" for x in best.tolist()]
    return [at.line(0, f"{terms[0]} / ({total(terms[:4], len(terms))})")]


@work("step.mix")
def mixed(at: At) -> Lines:
    """The first feature: each chosen expert's, times its weight."""
    hidden, down, rows, terms = at.value("hidden"), at.value("down"), rows_of_experts(at.value("chosen")), []
    for share, expert in zip(at.value("weight")[at.flat].tolist(), at.value("chosen")[at.flat].tolist(), strict=True):
        terms.append(product(share, (down[expert][0] @ hidden[rows[at.flat, expert]]).item()))
    return [at.line(0, total(terms, len(terms)))]
