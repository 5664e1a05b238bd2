"""Sentence pairs become examples in both directions, and rows of token ids become padded batches.

Legend: batch, source = source length, target = target length, real = target tokens of a batch that are not padding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from oneblock.spec import Tokens
from oneblock.text import Pair, Split, read_pairs, split_pairs
from oneblock.train.config import DataPart

__all__ = ["Batch", "Example", "Row", "collate", "corpus_hash", "directions", "examples", "read_split"]

Row = tuple[Sequence[int], Sequence[int]]
"""Source ids and target ids."""


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
    pairs = _pairs(files, data)
    try:
        split = split_pairs(pairs, test=data.test, valid=0 if held_out else data.valid, seed=data.split_seed)
    except ValueError as error:
        raise ValueError(f"data.valid and data.test: {str(error).removeprefix('sizes: ')}") from None
    return replace(split, valid=_pairs(held_out, data)) if held_out else split


def _pairs(files: str | tuple[str, str], data: DataPart) -> list[Pair]:
    try:
        return list(read_pairs(files, columns=data.columns))
    except ValueError as error:
        raise ValueError(f"data.{error}" if str(error).startswith("columns: ") else str(error)) from None


def corpus_hash(found: Iterable[Example], held_out: Iterable[Pair], tokenizer: bytes) -> str:
    """sha256 of what the model learns from: the training examples in order, the validation pairs, the tokenizer."""
    digest = hashlib.sha256(tokenizer)
    for row in [*found, *held_out]:
        digest.update("\0".join(map(str, row[:3])).encode() + b"\n")
    return digest.hexdigest()


def collate(rows: Sequence[Row], tokens: Tokens) -> Batch:
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
