"""How many numbers a model learns, and how many of them one token uses; equal layers are counted once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from oneblock.cost.parts import Part, parts
from oneblock.spec import Block, Embedding, Head, Model, MoE, Seq2Seq, Spec


def parameters(spec: Spec) -> int:
    """The number of trainable numbers of a model, shared matrices counted once.

    >>> from oneblock.zoo import named
    >>> parameters(named("vaswani", bias=False)), parameters(named("vaswani"))
    (63045632, 63082496)
    """
    return sum(times * part.count for times, part in counted(spec))


def active(spec: Spec, embeddings: int = 2) -> int:
    """The parameters that one token uses: of `MoE` the router and the `active` experts, of all else everything.

    `embeddings` is the convention, for publications differ: 2 counts all matrices with a row per token of the
    vocabulary (embeddings and head), 1 only one of them, 0 none. A tied matrix is one matrix.

    >>> from oneblock.spec import Attention, Block, Embedding, FeedForward
    >>> model = Model(16, Embedding(100), (Block(Attention(4), MoE(FeedForward(32), experts=8)),))
    >>> parameters(model), [active(model, embeddings) for embeddings in (2, 1, 0)]
    (12608, [6464, 4864, 3264])
    """
    if embeddings not in (0, 1, 2):
        raise ValueError(f"embeddings: expected 0, 1 or 2 matrices to count, got {embeddings!r}")
    used, tables = 0, list[int]()
    for times, part in counted(spec):
        used += times * part.count
        if isinstance(part.brick, MoE):
            experts = sum(count for name, count in part.counts.items() if ".experts." in name)
            used -= times * (experts - experts * part.brick.active // part.brick.experts)
        tables += [count for name, count in part.counts.items() if count and _by_token(part, name)]
    left_out = len(tables) - {2: len(tables), 1: 1, 0: 0}[embeddings]
    return used - sum(tables[:left_out])


def _by_token(part: Part, name: str) -> bool:
    """Whether a tensor has a row for each token of the vocabulary."""
    if isinstance(part.brick, Head):
        return name.endswith("out.weight")
    return isinstance(part.brick, Embedding) and part.path.endswith("token")


def counted(spec: Spec) -> Iterator[tuple[int, Part]]:
    """(times, part) for the parts of a spec, where the parts of equal layers come once, with the number of layers."""
    short, times = _once(spec)
    for part in parts(short):
        stack, found, layer = part.path.rpartition("layers.")
        index = layer.partition(".")[0]
        yield times[stack, int(index)] if found else 1, part


def distinct(layers: Iterable[Block]) -> Counter[Block]:
    """The different layers of a stack in their order, and how often each comes.

    >>> a, b = Block(None, None), Block(None, None, wiring="post")
    >>> list(distinct((a, b, b, a, b)).values())
    [2, 3]
    """
    listed = list(layers)
    objects = {id(block): block for block in listed}  # mostly few: compared by identity before by value
    times: Counter[Block] = Counter()
    for key, count in Counter(map(id, listed)).items():
        times[objects[key]] += count
    return times


def _once(spec: Spec) -> tuple[Spec, dict[tuple[str, int], int]]:
    """A spec with each distinct layer once, and how often each was there."""
    if isinstance(spec, Seq2Seq):
        encoder, encoding = _layers(spec.encoder, "encoder.")
        decoder, decoding = _layers(spec.decoder, "decoder.")
        return replace(spec, encoder=encoder, decoder=decoder), encoding | decoding
    return _layers(spec, "")


def _layers(model: Model, stack: str) -> tuple[Model, dict[tuple[str, int], int]]:
    times = distinct(model.layers)
    listed = {(stack, index): number for index, number in enumerate(times.values())}
    return replace(model, layers=tuple(times)), listed
