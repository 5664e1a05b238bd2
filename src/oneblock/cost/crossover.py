"""From which length on attention is what costs: where two closed formulas meet, in the block that comes most often."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from oneblock.cost.count import distinct
from oneblock.cost.job import Job
from oneblock.cost.stack import layer
from oneblock.cost.terms import Column, Line, Site, Term
from oneblock.spec import Model, Seq2Seq, Spec, dims


@dataclass(frozen=True)
class Crossover:
    """At `length` tokens a quadratic term meets a linear one; `times` the size called `of` (dim or head_dim)."""

    name: str
    length: float
    times: float
    of: str


def crossovers(spec: Spec, dtype: str = "bfloat16") -> tuple[Crossover, ...]:
    """Three lengths: where the scores' FLOPs equal the feed-forward's, and those of all other products of the block,
    and where what is kept of written-out scores for backward equals all else that a block keeps.

    Of an encoder-decoder the encoder's block is asked, which reads no source. A model without a block that has both
    attention and feed-forward has none.

    >>> from oneblock.zoo import named
    >>> [(one.name, round(one.length), f"{one.times:.3g} {one.of}") for one in crossovers(named("vaswani"))]
    [('scores.feedforward', 2048, '4 dim'), ('scores.products', 3072, '6 dim'), ('scores.kept', 448, '7 head_dim')]
    """
    model: Model = spec.encoder if isinstance(spec, Seq2Seq) else spec
    blocks = {block: times for block, times in distinct(model.layers).items() if block.attention and block.feedforward}
    if not blocks:
        return ()
    block = max(blocks, key=blocks.__getitem__)
    assert block.attention is not None
    job = Job(phase="train", dtype=dtype, attention="plain")
    site = Site(job, {"batch": 1, "tokens": 1, "bytes": job.bytes, "dim": model.dim})
    lines = [line for line in layer(block, site) if not line.path.startswith("cross")]
    head_dim = dims(block.attention, model.dim)[1]
    forward, kept = split(lines, "forward"), split(lines, "activations")
    inner = sum(line.sums["forward"] for line in lines if line.path == "feedforward")
    return (
        Crossover("scores.feedforward", inner / forward[0], inner / forward[0] / model.dim, "dim"),
        Crossover("scores.products", forward[1] / forward[0], forward[1] / forward[0] / model.dim, "dim"),
        Crossover("scores.kept", kept[1] / kept[0], kept[1] / kept[0] / head_dim, "head_dim"),
    )


def split(lines: list[Line], column: Column) -> tuple[int, int]:
    """(what grows with the square of the length, what grows with the length) of a column, for one token and one key."""
    terms: list[Term] = [term for line in lines for term in line.terms if term.column == column]
    square = linear = 0
    for term in terms:
        for factors in term.form.products:
            value = prod(int(factor) if factor.isdigit() else term.sizes[factor] for factor in factors)
            grows = len({"tokens", "keys"}.intersection(factors))
            square, linear = square + value * (grows == 2), linear + value * (grows == 1)
    return square, linear
