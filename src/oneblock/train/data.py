"""Sentence pairs become numbered batches of token ids: batch n of a run is the same however often the run is resumed.

Legend: batch, source = source length, target = target length, real = target tokens of a batch that are not padding.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from oneblock.spec import Tokens
from oneblock.text import Batches, Pair, Split, Tokenizer, read_pairs, split_pairs
from oneblock.train.config import DataPart

__all__ = ["Ahead", "Batch", "Example", "Stream", "collate", "corpus_hash", "directions", "examples", "read_split"]


class Example(NamedTuple):
    """One sentence to translate, its translation, and the language of the translation."""

    source: str
    target: str
    to: str


@dataclass(frozen=True)
class Batch:
    """One batch on one device. The decoder needs no padding mask: pads come last, and no real token looks ahead.

    `mask` is None when no source is padded; `places` is None when no target is.
    """

    source: Tensor  # (batch, source) int64, direction token first
    mask: Tensor | None  # (batch, source) 1 = real
    inputs: Tensor  # (batch, target) the labels shifted right by one, start token first
    labels: Tensor  # (real) the target tokens that are not padding, row by row
    places: Tensor | None  # (real) where they lie in the flattened (batch · target)
    tokens: int  # how many labels

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device."""
        moved = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, Tensor)}
        return Batch(**(vars(self) | moved))


def directions(data: DataPart) -> list[tuple[str, str]]:
    """The (from, to) languages that a run trains: first column to second, and back when both are wanted."""
    first, second = data.languages
    return [(first, second), (second, first)] if data.directions == "both" else [(first, second)]


def examples(pairs: Iterable[Pair], data: DataPart) -> list[Example]:
    """Every pair in every direction, forward ones first."""
    pairs = list(pairs)
    found = [Example(pair.source, pair.target, data.languages[1]) for pair in pairs]
    if data.directions == "both":
        found += [Example(pair.target, pair.source, data.languages[0]) for pair in pairs]
    return found


def read_split(data: DataPart) -> Split:
    """The training, validation and test pairs that `[data]` describes; the same every time."""
    files, held_out = data.files(), data.files("valid_")
    if files is None:
        raise ValueError("data.pairs: no training data; give data.pairs, or data.source and data.target")
    pairs = list(read_pairs(files, columns=data.columns))
    split = split_pairs(pairs, test=data.test, valid=0 if held_out else data.valid, seed=data.split_seed)
    return replace(split, valid=list(read_pairs(held_out, columns=data.columns))) if held_out else split


def corpus_hash(found: Iterable[Example], held_out: Iterable[Pair], tokenizer: bytes) -> str:
    """sha256 of what the model learns from: the training examples in order, the validation pairs, the tokenizer."""
    digest = hashlib.sha256(tokenizer)
    for row in [*found, *held_out]:
        digest.update("\0".join(map(str, row[:3])).encode() + b"\n")
    return digest.hexdigest()


def collate(rows: Sequence[tuple[Sequence[int], Sequence[int]]], tokens: Tokens) -> Batch:
    """Pad (source ids, target ids) rows to their longest. Exactly one shift: input t is the token before label t.

    >>> batch = collate([([3, 7, 2], [8, 2]), ([3, 2], [9, 8, 2])], Tokens(pad=0, bos=1, eos=2, start=1))
    >>> batch.inputs.tolist(), batch.labels.tolist(), batch.places.tolist(), batch.mask.tolist()
    ([[1, 8, 0], [1, 9, 8]], [8, 2, 9, 8, 2], [0, 1, 3, 4, 5], [[1, 1, 1], [1, 1, 0]])
    """
    sources, targets = [list(row[0]) for row in rows], [list(row[1]) for row in rows]
    pad = tokens.pad or 0
    start = tokens.start if tokens.start is not None else tokens.bos
    long, wide = max(map(len, sources)), max(map(len, targets))
    source = torch.tensor([ids + [pad] * (long - len(ids)) for ids in sources])
    inputs = torch.tensor([[start, *ids[:-1]] + [pad] * (wide - len(ids)) for ids in targets])
    labels = torch.tensor([token for ids in targets for token in ids])
    mask = None
    if any(len(ids) < long for ids in sources):
        mask = torch.tensor([[1] * len(ids) + [0] * (long - len(ids)) for ids in sources])
    places = None
    if len(labels) < inputs.numel():
        places = torch.tensor([row * wide + column for row, ids in enumerate(targets) for column in range(len(ids))])
    return Batch(source, mask, inputs, labels, places, len(labels))


class Stream:
    """The batches of a list of examples: `stream(step)` is a pure function of (seed, step).

    Batches are planned by the lengths without BPE dropout; with dropout each example is cut anew in every epoch, from
    a generator seeded by (seed, epoch, example). `left_out` counts examples with a side longer than `longest` tokens.
    """

    def __init__(
        self,
        found: Sequence[Example],
        tokenizer: Tokenizer,
        tokens: Tokens,
        *,
        budget: int,
        longest: int,
        seed: int = 0,
        accumulate: int = 1,
        dropout: float = 0.0,
    ) -> None:
        encoded = [(tokenizer.encode(row.source, to=row.to), tokenizer.encode(row.target)) for row in found]
        kept = [index for index, sides in enumerate(encoded) if max(map(len, sides)) <= longest]
        self.left_out = len(found) - len(kept)
        if not kept:
            raise ValueError(f"data: none of {len(found)} examples is at most batch.longest = {longest} tokens long")
        self.examples = [found[index] for index in kept]
        self.encoded = [encoded[index] for index in kept]
        self.tokenizer, self.special = tokenizer, tokens
        self.seed, self.accumulate, self.dropout = seed, accumulate, dropout
        self.batches = Batches([(len(source), len(target)) for source, target in self.encoded], budget, seed)

    def __call__(self, step: int) -> list[Batch]:
        """The `accumulate` batches of optimizer step number `step` (1 is the first)."""
        first = (step - 1) * self.accumulate
        return [self.batch(index) for index in range(first, first + self.accumulate)]

    def batch(self, index: int) -> Batch:
        """Batch number `index` (0 is the first) of the endless row of epochs."""
        epoch = self.batches.epoch(index)
        return collate([self._row(epoch, number) for number in self.batches(index)], self.special)

    def once(self) -> Iterable[Batch]:
        """Every example once: the batches of epoch 0."""
        return (self.batch(index) for index in range(self.batches.steps_per_epoch))

    def _row(self, epoch: int, number: int) -> tuple[Sequence[int], Sequence[int]]:
        if not self.dropout:
            return self.encoded[number]
        rng = random.Random(f"{self.seed}/{epoch}/{number}")
        row = self.examples[number]
        return (
            self.tokenizer.encode(row.source, to=row.to, dropout=self.dropout, rng=rng),
            self.tokenizer.encode(row.target, dropout=self.dropout, rng=rng),
        )


class Ahead:
    """Prepares the next step's batches in a thread while the current step runs; what comes out is the same."""

    def __init__(self, stream: Stream, device: torch.device) -> None:
        self.stream, self.device = stream, device
        self.pool = ThreadPoolExecutor(1)
        self.waiting: tuple[int, Future[list[Batch]]] | None = None

    def __call__(self, step: int) -> list[Batch]:
        """The batches of `step`; the ones of `step + 1` are begun."""
        planned = self.waiting
        window = planned[1].result() if planned and planned[0] == step else self.stream(step)
        self.waiting = step + 1, self.pool.submit(self.stream, step + 1)
        return [batch.to(self.device) for batch in window]

    def close(self) -> None:
        """Stop the thread."""
        self.pool.shutdown(wait=True, cancel_futures=True)
