"""The endless row of batches of a run: batch number n is the same however often the run is resumed."""

from __future__ import annotations

import hashlib
import random
import threading
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import torch

from oneblock.spec import Tokens
from oneblock.text import Batches, Tokenizer
from oneblock.train.data import Batch, Example, Row, collate

__all__ = ["Ahead", "Stream", "regroup"]

POOL = 1 << 16
"""Examples that are cut and grouped together under BPE dropout: more means less padding, and more to hold in memory."""
Rows = list[Row]


class Stream:
    """The batches of a list of examples: `stream(step)` is a pure function of (seed, step).

    With BPE dropout each example is cut anew in every epoch, from a generator seeded by (seed, epoch, example); it
    stays whole where the pieces would be more than `longest`. Its new length is only known then, so batches are planned
    by the lengths without dropout, and `POOL` examples at a time are shared out anew over as many batches.
    `left_out` counts examples with a side longer than `longest` tokens.
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
        self.encoded: Rows = [encoded[index] for index in kept]
        self.tokenizer, self.special = tokenizer, tokens
        self.seed, self.accumulate, self.dropout, self.longest = seed, accumulate, dropout, longest
        try:
            self.batches = Batches([(len(source), len(target)) for source, target in self.encoded], budget, seed)
        except ValueError as error:
            raise ValueError(f"batch.{error}") from None
        per_epoch = self.batches.steps_per_epoch
        self.width = per_epoch if not dropout else max(1, min(per_epoch, POOL * per_epoch // len(kept)))
        self.pools: dict[tuple[int, int], list[Rows]] = {}
        self.lock = threading.Lock()

    def __call__(self, step: int) -> list[Batch]:
        """The `accumulate` batches of optimizer step number `step` (1 is the first)."""
        first = (step - 1) * self.accumulate
        return [self.batch(index) for index in range(first, first + self.accumulate)]

    def batch(self, index: int) -> Batch:
        """Batch number `index` (0 is the first) of the endless row of epochs."""
        return collate(self.rows(index), self.special)

    def once(self) -> Iterable[Batch]:
        """Every example once: the batches of epoch 0."""
        return (self.batch(index) for index in range(self.batches.steps_per_epoch))

    def rows(self, index: int) -> Rows:
        """The token ids of batch number `index`."""
        if not self.dropout:
            return [self.encoded[number] for number in self.batches(index)]
        epoch, at = divmod(index, self.batches.steps_per_epoch)
        return self.pool(epoch, at // self.width)[at % self.width]

    def pool(self, epoch: int, number: int) -> list[Rows]:
        """The batches of one pool under dropout; the last three are remembered, for speed only."""
        known = self.pools.get((epoch, number))
        if known is not None:
            return known
        with self.lock:
            if (epoch, number) not in self.pools:
                first, per_epoch = number * self.width, self.batches.steps_per_epoch
                plan = [self.batches(epoch * per_epoch + at) for at in range(first, min(first + self.width, per_epoch))]
                cut = [self.cut(epoch, example) for batch in plan for example in batch]
                made = regroup(cut, len(plan), f"{self.seed}/{epoch}/{number}")
                self.pools = dict([*[*self.pools.items()][-2:], ((epoch, number), made)])
            return self.pools[epoch, number]

    def cut(self, epoch: int, number: int) -> Row:
        """The token ids of one example in one epoch."""
        rng = random.Random(f"{self.seed}/{epoch}/{number}")
        row = self.examples[number]
        source = self.tokenizer.encode(row.source, to=row.to, dropout=self.dropout, rng=rng)
        target = self.tokenizer.encode(row.target, dropout=self.dropout, rng=rng)
        return (source, target) if max(len(source), len(target)) <= self.longest else self.encoded[number]

    def following(self, step: int) -> None:
        """Make ready the pool after the one of `step`."""
        if self.dropout:
            index = (step - 1) * self.accumulate + self.width
            epoch, at = divmod(index, self.batches.steps_per_epoch)
            self.pool(epoch, at // self.width)


def regroup(rows: Rows, count: int, seed: str) -> list[Rows]:
    """Share out rows over exactly `count` batches of like length and like size, in an order drawn from `seed`.

    >>> groups = regroup([([1], [2]), ([3] * 5, [4] * 5), ([5], [6]), ([7] * 4, [8] * 5)], 2, "0")
    >>> sorted(sorted(group) for group in groups)
    [[([1], [2]), ([5], [6])], [([3, 3, 3, 3, 3], [4, 4, 4, 4, 4]), ([7, 7, 7, 7], [8, 8, 8, 8, 8])]]
    """
    lengths = [(len(source), len(target)) for source, target in rows]
    drawn = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=6).digest())
    least = max(source + target for source, target in lengths)
    # The smallest budget that needs no more batches than there are; more of it never needs more batches.
    budgets = range(least, least * len(rows) + 1)
    found = bisect_left(budgets, True, key=lambda budget: Batches(lengths, budget, drawn).steps_per_epoch <= count)
    batches = Batches(lengths, budgets[found], drawn)
    groups = [[rows[number] for number in batches(step)] for step in range(batches.steps_per_epoch)]
    while len(groups) < count:
        group = groups.pop(max(range(len(groups)), key=lambda at: len(groups[at])))
        groups += [group[: len(group) // 2], group[len(group) // 2 :]]
    return groups


class Ahead:
    """Prepares the next step's batches in a thread while the current step runs; what comes out is the same."""

    def __init__(self, stream: Stream, device: torch.device) -> None:
        self.stream, self.device = stream, device
        self.threads = ThreadPoolExecutor(2)
        self.waiting: tuple[int, Future[list[Batch]]] | None = None
        self.further: Future[None] | None = None

    def __call__(self, step: int) -> list[Batch]:
        """The batches of `step`; the ones of `step + 1` are begun."""
        planned = self.waiting
        window = planned[1].result() if planned and planned[0] == step else self.stream(step)
        self.waiting = step + 1, self.threads.submit(self.stream, step + 1)
        if self.further is None or self.further.done():
            self.further = self.threads.submit(self.stream.following, step)
        return [batch.to(self.device) for batch in window]

    def close(self) -> None:
        """Stop the threads."""
        self.threads.shutdown(wait=True, cancel_futures=True)
