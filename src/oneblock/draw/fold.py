"""Equal layers are said once: a stack of blocks as runs, "6 × Block", also of patterns, "13 × (local, global)"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oneblock.spec import Block

LONGEST = 64
"""Patterns of more layers than this are not looked for."""


@dataclass(frozen=True)
class Run:
    """`blocks`, one after another, repeated `times`; the first of them is layer `start`."""

    start: int
    times: int
    blocks: tuple[Block, ...]

    @property
    def layers(self) -> str:
        """The indices it covers: "0-5", or "3" for a single layer."""
        last = self.start + self.times * len(self.blocks) - 1
        return str(self.start) if last == self.start else f"{self.start}-{last}"


def fold(blocks: Sequence[Block], start: int = 0) -> tuple[Run, ...]:
    """The runs of a stack, each the one that covers most layers; of equal ones the shortest pattern.

    >>> from oneblock.spec import Attention, FeedForward
    >>> a, b = Block(Attention(4), FeedForward(64)), Block(Attention(8), FeedForward(64))
    >>> [(run.times, len(run.blocks), run.layers) for run in fold((a, b, a, b, a, a, a))]
    [(2, 2, '0-3'), (3, 1, '4-6')]
    """
    numbers: dict[Block, int] = {}
    kinds = [numbers.setdefault(block, len(numbers)) for block in blocks]
    runs, at = [], 0
    while at < len(kinds):
        times, period = max(
            ((_times(kinds, at, period), period) for period in range(1, min(LONGEST, (len(kinds) - at) // 2) + 1)),
            key=lambda found: (found[0] * found[1] if found[0] > 1 else 0, -found[1]),
            default=(1, 1),
        )
        period = period if times > 1 else 1
        runs.append(Run(start + at, times, tuple(blocks[at : at + period])))
        at += times * period
    return tuple(runs)


def _times(kinds: list[int], at: int, period: int) -> int:
    """How often the `period` kinds that start at `at` come in a row."""
    times = 1
    while kinds[at + times * period : at + (times + 1) * period] == kinds[at : at + period]:
        times += 1
    return times
