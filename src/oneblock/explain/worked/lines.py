"""The stream by hand: embeddings, positions, norms, products, activations, additions, logits and loss.

x: (batch, length, dim).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from oneblock.explain.arithmetic import activated, added, in_heads
from oneblock.explain.lens import answers, rows_of
from oneblock.explain.recipes import summed
from oneblock.explain.worked.form import Line
from oneblock.explain.worked.lines_feedforward import activation
from oneblock.explain.worked.number import dot, factor, indexed, plus, product, shown, total
from oneblock.explain.worked.place import At, Lines, work


@work("Embedding", "Embedding.segment")
def embedding(at: At) -> Lines:
    """A row of a table."""
    index = at.index(at.step.dims, at.step.tensor)
    assert index is not None
    table, note = ("E", "note row") if at.step.kind == "Embedding" else ("S", "")
    return [at.line(0, indexed(table, (int(at.at("ids", index)), 0)), note)]


@work("Learned")
def learned(at: At) -> Lines:
    """A row of a table of positions."""
    return [at.line(0, indexed("P", (place(at) + at.value("offset"), 0)))]


def place(at: At) -> int:
    """The position of the token."""
    position: Tensor = at.value("position")
    return int(position[at.row % len(position)][at.token[at.stack]])


@work("Sinusoidal")
def sinusoidal(at: At) -> Lines:
    """Two pairs of waves, and that the squares of a pair make 1."""
    spec, dim, here = at.value("spec"), at.value("dim"), at.here()
    assert here is not None
    pairs = (dim + 1) // 2
    last = max(pairs - 1, 1) if spec.closed else dim / 2
    lines = []
    for pair in range(min(2, dim // 2)):
        features = (2 * pair, 2 * pair + 1) if spec.layout == "interleaved" else (pair, pairs + pair)
        angle = f"({place(at) + spec.start} / {spec.theta:g}^({pair}/{last:g}))"
        lines += [at.line(f, f"{name}{angle}") for f, name in zip(features, ("sin", "cos"), strict=True)]
    sin, cos = lines[0].value, lines[1].value
    how = f"{factor(sin)}² + {factor(cos)}²"
    return [*lines, Line("sin² + cos²", how, sin**2 + cos**2, "note waves")]


@work("step.embedded")
def embedded(at: At) -> Lines:
    """scale · token + position + segment."""
    return summing(at) if at.has("token") else []


def summing(at: At) -> Lines:
    """The first feature of the sum, also where that is normed in the same step."""
    index = at.index(at.step.dims, at.step.tensor)
    if index is None:
        return []
    terms = [at.at("token", index)[0].item()]
    scale = at.value("scale")
    said = shown(terms[0]) if scale == 1 else product(scale, terms[0])
    for name in ("position", "segment"):
        value = at.value(name)
        if value is not None:
            terms.append(value[at.row % len(value)][index][0].item())
            said = plus(said, terms[-1])
    return [Line(indexed("x", (*index, 0)), said, scale * terms[0] + sum(terms[1:]))]


def read(at: At) -> Tensor | None:
    """What a norm reads at the place; None where that has no name."""
    values = {name: operand.value for name, operand in at.step.operands.items()}
    if "token" in values:
        names = ("token", "scale", "position", "segment")
        whole = summed(**{name: values[name] for name in names if name in values})
    elif "branch" in values:
        whole = added(values["x"], values["branch"], values["skip"], values["branch_scale"])
    elif "x" in values and "attention" not in values:
        whole = values["x"] if "width" not in values else in_heads(values["x"], values["width"])
    elif {"up", "activation"} <= set(values):
        whole = activated(values["up"], values["activation"])
    else:
        return None
    index = at.index(at.step.dims, whole) if whole.shape == at.step.shape else None
    return None if index is None else whole[at.row][index]


@work("LayerNorm", "SigmaNorm", "RMSNorm")
def norm(at: At) -> Lines:
    """Mean, variance, and the first feature."""
    x = read(at)
    if x is None:
        return []
    first = grown(at) if at.has("branch_scale") else summing(at) if at.has("token") else []
    if at.has("up"):
        index = at.index(at.step.dims, at.step.tensor)
        assert index is not None
        how = activation(at.value("activation"), at.at("up", index)[0].item(), None)
        first = [Line(indexed("x", (*index, 0)), how, x[0].item())]
    return [*first, *normed(at, x)]


def normed(at: At, x: Tensor) -> Lines:
    """The norm of a vector: what it is divided by, and the first feature."""
    first, size, eps = x[0].item(), len(x), at.value("eps")
    weight, bias = (None if at.value(name) is None else at.value(name)[0].item() for name in ("weight", "bias"))
    if at.step.kind == "RMSNorm":
        square = x.double().square().mean().item()
        gain = at.value("centre") + weight
        how = f"{shown(first)} / √({shown(square)} + {eps:g}) · {factor(gain)}"
        return [Line("mean x²", mean([f"{factor(v)}²" for v in x[:3].tolist()], size), square), at.line(0, how)]
    mu, spread = x.double().mean().item(), x.double().var(unbiased=bool(at.value("unbiased"))).item()
    squares = [f"({shown(v)} − {factor(mu)})²" for v in x[:2].tolist()]
    below = f"√({shown(spread)} + {eps:g})" if at.step.kind == "LayerNorm" else f"({shown(spread**0.5)} + {eps:g})"
    how = f"({shown(first)} − {factor(mu)}) / {below}"
    how = how if weight is None else f"{how} · {factor(weight)}"
    divisor = size - 1 if at.value("unbiased") else size
    return [
        Line("μ", mean([factor(v) for v in x[:3].tolist()], size), mu),
        Line("σ²", mean(squares, size, divisor), spread),
        at.line(0, plus(how, bias)),
    ]


def mean(terms: list[str], many: int, divisor: int | None = None) -> str:
    """The mean of so many terms, of which the first are there."""
    return f"({total(terms[:many], many)}) / {divisor or many}"


@work("step.q", "step.k", "step.v", "step.up", "step.gate", "step.dense", "step.down", "step.router", "step.out")
def projection(at: At) -> Lines:
    """A row of x with a column of W."""
    if not at.has("weight") or at.has("real") or at.has("chosen"):
        return []
    row = input_row(at)
    if row is None:
        return []
    feature = column(at)
    weight: Tensor = at.value("weight")
    bias = at.value("bias")
    said = dot(row.tolist(), weight[feature].tolist())
    return [at.line(feature, plus(said, None if bias is None else bias[feature].item()))]


def input_row(at: At) -> Tensor | None:
    """What a projection reads at the place: of the output projection the heads side by side."""
    if at.has("z"):
        z: Tensor = at.value("z")[at.row]
        return z[:, at.token[at.stack]].flatten()
    index = at.index(at.step.dims, at.step.tensor)
    if index is None:
        return None
    x: Tensor = at.value("x")
    return x.reshape(-1, x.shape[-1])[index] if at.step.dims[0] == "B·L" else x[at.row][index]


def column(at: At) -> int:
    """The first feature of the head in a projection for heads, else the first of all."""
    letter = at.step.kind.removeprefix("step.")
    names = {"q": "query", "k": "key", "v": "value"}
    if letter not in names:
        return 0
    heads: Tensor = at.trace[f"{at.path}.{names[letter]}"].tensor
    width = heads.shape[-1]
    return (at.head * heads.shape[1] // at.heads) * width


@work("step.stream")
def stream(at: At) -> Lines:
    """The first feature of the sum, and how much was added to how much."""
    if at.index(at.step.dims, at.step.tensor) is None or not at.has("branch_scale"):
        return []
    return grown(at)


def grown(at: At) -> Lines:
    """An addition to the stream, also where its sum is normed in the same step."""
    index = at.index(at.step.dims, at.step.tensor)
    assert index is not None
    x = at.at("x", index)
    names = ("branch",) if at.has("branch") else ("attention", "feedforward")
    skip, scale = at.value("skip"), at.value("branch_scale")
    parts = [at.at(name, index) for name in names]
    said = shown(x[0].item()) if skip == 1 else product(skip, x[0].item())
    for part in parts:
        said = f"{said} + {factor(part[0].item()) if scale == 1 else product(scale, part[0].item())}"
    branch = scale * torch.stack([part.double() for part in parts]).sum(0)
    after, length, more = skip * x.double() + branch, x.double().norm().item(), branch.norm().item()
    ratio = more / length if length else math.inf
    return [
        Line(indexed("(x + f(x))" if skip == scale == 1 else "x′", (*index, 0)), said, after[0].item()),
        Line("‖f(x)‖ / ‖x‖", f"{shown(more)} / {shown(length)}", ratio, "note ratio"),
        Line("‖x + f(x)‖" if skip == scale == 1 else "‖x′‖", "", after.norm().item()),
    ]


@work("step.logits")
def logits(at: At) -> Lines:
    """The logit of the token that the model says."""
    if not at.has("x", "weight") or at.has("activation") or at.step.tensor.ndim != 3:
        return []
    place_ = min(at.token[at.stack], at.step.shape[1] - 1)
    x, weight, bias = at.value("x")[at.row], at.value("weight"), at.value("bias")
    said = plus(dot(x[place_].tolist(), weight[at.said].tolist()), None if bias is None else bias[at.said].item())
    scale, cap = at.value("scale") or 1.0, at.value("softcap")
    said = said if scale == 1 else f"{shown(scale)} · ({said})"
    said = said if cap is None else f"{shown(cap)} · tanh(({said}) / {shown(cap)})"
    return [Line(indexed(at.symbol, (place_, at.said)), said, at.step.tensor[at.row, place_, at.said].item())]


@work("step.loss")
def loss(at: At) -> Lines:
    """−log p of each right answer, and their mean."""
    scores = rows_of(at.value("logits"), at.row)
    wanted = answers(at.trace, at.row, len(scores))
    lost = [
        (where, -torch.log_softmax(row, 0)[label].item())
        for where, (row, label) in enumerate(zip(scores, wanted, strict=True))
        if label is not None
    ]
    lines = [Line(f"−log p[{where}]", f"−log {shown(math.exp(-x), 5)}", x) for where, x in lost]
    if len(at.step.operands["labels"].value) > 1 or not lost:
        return lines
    how = f"({' + '.join(shown(x) for _, x in lost)}) / {len(lost)}"
    return [*lines, Line("ℓ", how, at.step.tensor.item())]
