"""What the model would say: candidates with their probabilities, and the lens, which asks after each block already.

x: (batch, length, dim); logits: (batch, length, vocab).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from oneblock.explain.arithmetic import shares
from oneblock.explain.step import Step
from oneblock.explain.trace import Trace

Name = Callable[[int], str]
"""How a token id, or the number of a label, reads."""


@dataclass(frozen=True)
class Candidate:
    """A token that may come, its logit and its probability."""

    id: int
    token: str
    logit: float
    probability: float


@dataclass(frozen=True)
class Candidates:
    """For each position the best candidates, best first; of a model that judges a text, one position.

    `answers` are those of the right answers where labels were given.
    """

    path: str
    tokens: tuple[str, ...]
    best: tuple[tuple[Candidate, ...], ...]
    answers: tuple[Candidate | None, ...]


@dataclass(frozen=True)
class Lens:
    """What the last norm and the head make of the stream before the first block and after each: best candidates, by
    path and position; `final` is the probability, by path and position, of what the model says in the end."""

    paths: tuple[str, ...]
    tokens: tuple[str, ...]
    best: tuple[tuple[tuple[Candidate, ...], ...], ...]
    final: tuple[tuple[float, ...], ...]


def head_step(trace: Trace) -> Step | None:
    """The step that gives the logits; None in a model without a head."""
    found = [
        step for step in trace if step.kind in ("step.logits", "step.labels") and step.path.endswith("head.logits")
    ]
    return found[-1] if found else None


def candidates(trace: Trace, name: Name = str, top: int = 5, row: int = 0) -> Candidates | None:
    """The softmax of the logits at each position of one text; None for a model without logits.

    >>> import oneblock
    >>> model = oneblock.build(oneblock.named("gpt2", dim=8, depth=1, heads=2, vocab=9)).eval()
    >>> found = candidates(oneblock.trace(model, [1, 2, 3]), top=2)
    >>> len(found.best), len(found.best[0])
    (3, 2)
    """
    step = head_step(trace)
    if step is None:
        return None
    logits = rows_of(step.tensor, row)
    stack = step.path.removesuffix("head.logits")
    names = trace.tokens.get(stack, ()) if step.tensor.ndim == 3 else ()
    names = names if len(names) == len(logits) else tuple(str(at) for at in range(len(logits)))
    wanted = answers(trace, row, len(logits))
    probabilities = shares(logits)
    right = tuple(
        None if label is None else candidate(line, row_, label, name)
        for line, row_, label in zip(logits, probabilities, wanted, strict=True)
    )
    return Candidates(step.path, names, best(logits, probabilities, name, top), right)


def lens(trace: Trace, name: Name = str, top: int = 3, row: int = 0) -> Lens | None:
    """The logit lens (nostalgebraist 2020): the last norm and the head on the stream after each block.

    The last entry is the model's own output. None for a model without a head for tokens.

    >>> import oneblock
    >>> model = oneblock.build(oneblock.named("gpt2", dim=8, depth=2, heads=2, vocab=9)).eval()
    >>> lens(oneblock.trace(model, [1, 2, 3])).paths
    ('embedding.embedded', 'layers.0.stream#2', 'layers.1.stream#2')
    """
    step = head_step(trace)
    if step is None or step.kind != "step.logits" or step.tensor.ndim != 3:
        return None
    stack = step.path.removesuffix("head.logits")
    paths = stages(trace, stack)
    found = [rows_of(through(trace, trace[path].tensor, paths[-1], step.path), row) for path in paths]
    names = trace.tokens.get(stack, ())
    names = names if len(names) == len(found[0]) else tuple(str(at) for at in range(len(found[0])))
    said = found[-1].argmax(-1)
    likely, final = [], []
    for logits in found:
        probabilities = shares(logits)
        likely.append(best(logits, probabilities, name, top))
        final.append(tuple(probabilities.gather(1, said[:, None])[:, 0].tolist()))
    return Lens(tuple(paths), names, tuple(likely), tuple(final))


def stages(trace: Trace, stack: str) -> list[str]:
    """The stream before the first block and after each, by path."""
    found = {-1: f"{stack}embedding.embedded"}
    for step in trace:
        if step.kind == "step.stream" and step.path.startswith(f"{stack}layers."):
            found[int(step.path.removeprefix(f"{stack}layers.").partition(".")[0])] = step.path
    return [path for _, path in sorted(found.items())]


def through(trace: Trace, x: Tensor, last: str, end: str) -> Tensor:
    """The step `end` recomputed as if the step `last` had been x."""
    made, began = {last: x}, False
    for step in trace:
        if began:
            earlier = {name: made[o.path] for name, o in step.operands.items() if o.source == "step" and o.path in made}
            if earlier:
                made[step.path] = step.recomputed(earlier)
        if step.path == end:
            return made[end]
        began = began or step.path == last
    raise KeyError(end)


def rows_of(logits: Tensor, row: int) -> Tensor:
    """The logits of one text: (positions, vocab), of labels (1, labels); in float64."""
    return logits[row].double().reshape(-1, logits.shape[-1])


def answers(trace: Trace, row: int, length: int) -> list[int | None]:
    """The right answer at each position, as far as labels were given."""
    loss = trace.steps[-1]
    if loss.kind != "step.loss":
        return [None] * length
    labels: Tensor = loss.operands["labels"].value[row]
    if loss.operands["shift"].value:
        labels = torch.cat([labels[1:], labels.new_full((1,), -100)])
    return [None if label < 0 else label for label in labels.tolist()] if labels.ndim else [int(labels)]


def best(logits: Tensor, probabilities: Tensor, name: Name, top: int) -> tuple[tuple[Candidate, ...], ...]:
    """For each row of logits the `top` likeliest; of equal ones those with the smaller ids."""
    least = logits.topk(min(top, logits.shape[1]), dim=-1).values[:, -1:]
    found = []
    for line, shares_, kept in zip(logits, probabilities, ~(logits < least), strict=True):
        ids = kept.nonzero()[:, 0]  # no sorting of a whole vocabulary; where a number is NaN, all of it
        order = ids[line[ids].argsort(descending=True, stable=True)][:top]
        found.append(tuple(candidate(line, shares_, int(at), name) for at in order))
    return tuple(found)


def candidate(logits: Tensor, probabilities: Tensor, at: int, name: Name) -> Candidate:
    """One entry of a row of logits."""
    return Candidate(at, name(at), logits[at].item(), probabilities[at].item())
