"""What a whole model costs: every brick with its terms, and their sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from oneblock.cost.count import counted
from oneblock.cost.job import Job, Loss, Phase, Way, fit, usual
from oneblock.cost.stack import indices, stack
from oneblock.cost.terms import COLUMNS, HELD, Column, Line, Site, Term
from oneblock.spec import Model, Seq2Seq, Spec, validate


@dataclass(frozen=True)
class Cost:
    """The bricks of a model in the order of a forward pass, each with its named terms, for one job."""

    spec: Spec
    job: Job
    lines: tuple[Line, ...]

    @cached_property
    def totals(self) -> dict[Column, int]:
        """The sum of every column: FLOPs forward and backward, bytes moved, bytes held."""
        return {column: sum(line.total(column) for line in self.lines) for column in COLUMNS}

    @property
    def forward(self) -> int:
        """FLOPs of one forward pass."""
        return self.totals["forward"]

    @property
    def backward(self) -> int:
        """FLOPs of one backward pass; 0 but in training."""
        return self.totals["backward"]

    @property
    def memory(self) -> int:
        """Bytes held at the same time: weights, activations kept, gradients, optimiser's moments, cache."""
        return sum(self.totals[column] for column in HELD)


def cost(
    spec: Spec,
    batch: int = 1,
    length: int | None = None,
    phase: Phase = "prefill",
    dtype: str = "bfloat16",
    source: int | None = None,
    attention: Way | None = None,
    loss: Loss = "whole",
) -> Cost:
    """Price every brick of a model by closed formulas: nothing is built.

    FLOPs are those of matrix products, 2 per multiply-add, as torch's counter counts; hidden scores are computed and
    count. Backward makes two products of each. Bytes are of weights, of gradients and of what is kept for backward in
    `dtype`; AdamW's two moments are float32.

    Args:
        spec: a model's spec.
        batch: texts.
        length: tokens of each, by default 1,024 or the model's positions if fewer; with "decode", those in the cache.
        phase: "train" (forward, backward, a step of AdamW), "prefill" (forward), "decode" (one new token).
        dtype: float32, bfloat16 or float16.
        source: tokens of each source of an encoder-decoder, by default `length`.
        attention: "fused", "plain" or "recomputed"; by default what our bricks do.
        loss: "whole" logits, or "chunked" as `oneblock train` computes it.

    Raises:
        ValueError: for a size below 1, a length beyond the model's positions, a phase that a model does not have.

    >>> from oneblock.zoo import named
    >>> found = cost(named("vaswani", bias=False), length=128, phase="train")
    >>> f"{found.forward:,} {found.backward:,} {found.memory:,}"
    '16,727,932,928 33,757,855,744 803,633,160'
    """
    validate(spec)
    job = Job(batch, usual(spec, phase) if length is None else length, phase, dtype, source, attention, loss)
    fit(spec, job)
    return Cost(spec, job, tuple(_weighed(spec, list(_lines(spec, job)), job)))


def _lines(spec: Spec, job: Job) -> Iterator[Line]:
    site = Site(job, {"batch": job.batch, "tokens": job.tokens, "bytes": job.bytes})
    if not isinstance(spec, Seq2Seq):
        yield from stack(spec, site)
        return
    for one in stack(spec.encoder, site.at("encoder").sized(tokens=job.read), memory=True):
        yield replace(one, terms=()) if job.phase == "decode" else one  # the source was read before
    yield from stack(spec.decoder, site.at("decoder"))


def _weighed(spec: Spec, lines: list[Line], job: Job) -> Iterator[Line]:
    """The lines with their parameters, and the bytes of those."""
    stacks = {"encoder.": spec.encoder, "decoder.": spec.decoder} if isinstance(spec, Seq2Seq) else {"": spec}
    places = {f"{at}layers.{n}": layers[0] for at, model in stacks.items() for n, layers in _numbered(model)}
    held = dict.fromkeys((line.path for line in lines), 0)
    for _, part in counted(spec):
        held[_owner(_placed(part.path, places), held)] += part.count
    for line in lines:
        count = held[line.path]
        yield replace(line, terms=(*line.terms, *_bytes(count, job)), parameters=count) if count else line


def _numbered(model: Model) -> Iterator[tuple[int, tuple[int, ...]]]:
    return enumerate(indices(model).values())


def _placed(path: str, places: dict[str, int]) -> str:
    """The path of a part in a spec of distinct layers, as that of the first such layer in the whole spec."""
    stack, found, rest = path.partition("layers.")
    number, dot, inner = rest.partition(".")
    return f"{stack}layers.{places[f'{stack}layers.{number}']}{dot}{inner}" if found else path


def _owner(path: str, lines: dict[str, int]) -> str:
    """The line that a part belongs to: the one of the longest path that it lies in."""
    while path and path not in lines:
        path = path.rpartition(".")[0]
    return path


def _bytes(parameters: int, job: Job) -> Iterator[Term]:
    site = Site(job, {"parameters": parameters, "bytes": job.bytes})
    yield site.term("weights", "weights", "parameters bytes")
    if job.training:
        yield site.term("gradients", "gradients", "parameters bytes")
        yield site.term("optimiser", "moments", "2 parameters 4")
        yield site.term("moved", "step", "3 parameters bytes + 4 parameters 4")
