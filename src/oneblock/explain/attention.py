"""What each head looks at: how far, how evenly, and whether it is a head of a known kind.

pattern: (batch, heads, query, key); visible: bool (batch | 1, query, key); rows: bool (batch, query).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from oneblock.bricks import EncoderDecoder, Transformer
from oneblock.explain.cause import CAUSES
from oneblock.explain.step import Step
from oneblock.explain.table import Cell, Table
from oneblock.explain.trace import Trace
from oneblock.words import label

DETECTORS = ("previous", "duplicate", "induction")
"""Kinds of heads that are looked for."""


def attention(trace: Trace, lang: str = "en") -> Table:
    """For each layer and head: how far it looks and how evenly.

    The distance is the mean number of tokens between a query and what it looks at, weighted by its attention (Vig and
    Belinkov 2019, arXiv:1906.04284); source and target have none between them. The entropy is that of a row of
    attention weights, in nats, and its share of the most that was possible, log of the number of visible keys
    (Clark et al. 2019, arXiv:1906.04341). Means over all real queries of all texts.

    >>> import oneblock
    >>> model = oneblock.build(oneblock.named("gpt2", dim=8, depth=1, heads=2, vocab=9)).eval()
    >>> table = attention(oneblock.trace(model, [1, 2, 3]))
    >>> table.columns, len(table)
    (('attention', 'head', 'distance', 'entropy', 'of the most'), 2)
    """
    rows: list[tuple[Cell, ...]] = []
    notes = []
    for path, step, visible, queries in _patterns(trace):
        pattern = step.tensor.double()
        spread = _mean(entropy(pattern), queries)
        most = _mean(visible.sum(-1).clamp(min=1).double().log()[:, None], queries)[0]
        far = None if path.endswith(".cross") else _mean(distance(pattern), queries)
        for head in range(pattern.shape[1]):
            share = (spread[head] / most).item() if most > 0 else None
            rows.append((path, head, None if far is None else far[head].item(), spread[head].item(), share))
        if far is not None:
            notes.append(label("layer mean", lang, path, f"{far.mean():.2f}", f"{spread.mean():.2f}"))
    columns = tuple(label(key, lang) for key in ("attention", "head", "distance", "entropy", "of the most"))
    return Table(label("attention per head", lang), columns, tuple(rows), tuple(notes))


def distance(pattern: Tensor) -> Tensor:
    """The mean number of tokens from each query to what it looks at: (batch, heads, query).

    >>> distance(torch.tensor([[[[1.0, 0.0], [0.5, 0.5]]]])).tolist()
    [[[0.0, 0.5]]]
    """
    query, key = (torch.arange(n, device=pattern.device) for n in pattern.shape[2:])
    return (pattern * (query[:, None] - key[None]).abs()).sum(-1)


def entropy(pattern: Tensor) -> Tensor:
    """-sum a log a of each query's attention weights, in nats: (batch, heads, query)."""
    found: Tensor = torch.special.entr(pattern).sum(-1)
    return found


def detect(trace: Trace, least: float = 0.5, lang: str = "en") -> Table:
    """Which heads look at the previous token, at a duplicate of the current one, or at what followed it before.

    Each score is the attention that goes there, a mean over the queries that have such a place; the last is that of an
    induction head (Olsson et al. 2022, arXiv:2209.11895). A head is called by its best score if that is at `least`.
    Self-attention only. Give a text in which tokens come twice, such as `repeated(model)`.

    >>> import oneblock
    >>> model = oneblock.build(oneblock.named("gpt2", dim=8, depth=1, heads=2, vocab=9)).eval()
    >>> detect(oneblock.trace(model, repeated(model, 4))).columns
    ('attention', 'head', 'previous', 'duplicate', 'induction', 'looks like')
    """
    rows: list[tuple[Cell, ...]] = []
    notes: dict[str, None] = {}
    for path, step, visible, queries in _patterns(trace):
        if path.endswith(".cross"):
            continue
        ids = trace.given[f"{_stack(path)}ids"].value
        pattern = step.tensor.double()
        found = scores(pattern, ids, visible, queries)
        even = visible.double() / visible.sum(-1, keepdim=True).clamp(min=1)
        chance = scores(even[:, None].expand(len(ids), -1, -1, -1), ids, visible, queries)
        said = ", ".join(f"{label(kind, lang)} {chance[kind][0]:.2f}" for kind in DETECTORS if kind in chance)
        notes[label("by chance", lang, said)] = None
        if set(DETECTORS) - found.keys():
            notes[label("none twice", lang)] = None
        for head in range(pattern.shape[1]):
            values = {kind: found[kind][head].item() for kind in DETECTORS if kind in found}
            best = max(values, key=lambda kind: values[kind], default="")
            name = label(best, lang) if best and values[best] >= least else None
            rows.append((path, head, *(values.get(kind) for kind in DETECTORS), name))
    columns = tuple(label(key, lang) for key in ("attention", "head", *DETECTORS, "looks like"))
    return Table(label("kinds of heads", lang), columns, tuple(rows), tuple(notes))


def scores(pattern: Tensor, ids: Tensor, visible: Tensor, queries: Tensor) -> dict[str, Tensor]:
    """Detector -> the attention (heads,) that goes where it says; those missing of which the text has no place.

    ids: (batch, length); a place that is hidden is none.
    """
    found = {}
    for kind, there in targets(ids).items():
        there = there & visible
        asked = there.any(-1) & queries  # (batch, query)
        if bool(asked.any()):
            found[kind] = _mean((pattern * there[:, None]).sum(-1), asked)
    return found


def targets(ids: Tensor) -> dict[str, Tensor]:
    """Detector -> where it expects a query to look: bool (batch, query, key)."""
    at = torch.arange(ids.shape[1], device=ids.device)
    other = at[:, None] != at[None]
    twice = (ids[:, :, None] == ids[:, None, :]) & other
    after = torch.zeros_like(twice)
    after[:, :, 1:] = twice[:, :, :-1]  # the key behind the earlier occurrence
    return {"previous": (at[:, None] - 1 == at[None]).expand_as(twice), "duplicate": twice, "induction": after & other}


def repeated(model: Transformer | EncoderDecoder, length: int = 16, seed: int = 0) -> Tensor:
    """Random ids, then the same again: (1, 2 * length), what induction heads are looked for with.

    No special token is among them. ValueError: fewer than 1 token.
    """
    spec = model.spec.encoder if isinstance(model, EncoderDecoder) else model.spec
    if length < 1:
        raise ValueError(f"repeated: expected a length of at least 1, got {length}")
    special = {spec.tokens.pad, spec.tokens.bos, spec.tokens.eos, spec.tokens.start, *spec.tokens.stop}
    plain = torch.tensor([token for token in range(spec.embedding.vocab) if token not in special])
    draw = torch.Generator().manual_seed(seed)
    once = plain[torch.randint(len(plain), (1, length), generator=draw)]
    return torch.cat([once, once], 1).to(next(model.parameters()).device)


def real(trace: Trace, stack: str, length: int) -> Tensor:
    """Which tokens of a stack are no padding, as its masks say: bool (batch | 1, length)."""
    for step in trace:
        if step.kind == "step.masked" and step.path.startswith(f"{stack}layers.") and ".cross." not in step.path:
            hidden: Tensor = step.operands["hidden"].value
            return ~(hidden == CAUSES.index("padding")).all(1)
    return torch.ones(1, length, dtype=torch.bool)


def _patterns(trace: Trace) -> Iterator[tuple[str, Step, Tensor, Tensor]]:
    """(path, step, which keys are visible, which queries count) of each attention. ValueError: there is none."""
    found = [step for step in trace if step.kind == "step.pattern"]
    if not found:
        raise ValueError("attention: expected a trace of a model of ours with attention, got one without attention")
    for step in found:
        path = step.path.rpartition(".")[0]
        visible = trace[f"{path}.masked"].operands["hidden"].value == 0  # (batch | 1, query, key)
        queries = real(trace, _stack(path), step.shape[2]).to(visible.device) & visible.any(-1)
        yield path, step, visible, queries.expand(len(step.tensor), -1)


def _stack(path: str) -> str:
    first = path.partition(".")[0]
    return f"{first}." if first in ("encoder", "decoder") else ""


def _mean(values: Tensor, rows: Tensor) -> Tensor:
    """The mean over rows (batch, query) that count, of values (batch | 1, heads, query): (heads,)."""
    share = rows[:, None].double()
    return (values * share).sum((0, 2)) / share.sum((0, 2)).clamp(min=1)
