"""Cut words into random smaller pieces while training, so that a model sees a word in more than one spelling.

BPE dropout, Provilkov et al. 2020 (arXiv:1910.13267): at each step of the merging every possible merge is left out with
probability p, and the best of those that remain is done. `tokenizers` has it, but draws from a generator that cannot be
seeded; here each draw comes from the caller's `random.Random`.
"""

import heapq
import math
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

Merges = dict[tuple[int, int], tuple[int, int]]
"""(left id, right id) -> (rank, id of the merged piece); a smaller rank is merged first."""

_REMEMBERED, _LONGEST = 1 << 17, 64  # words kept, and characters in one: a bound on memory


class Drops:
    """A stream of yes/no draws, "yes" (drop) with probability `p`, that costs one random number per drop, not per draw.

    The number of draws before the next "yes" is geometric; `gap` holds it. Drawing it once is the same in law as a coin
    per merge, and lets whole words pass untouched when the gap is longer than their merges.
    """

    def __init__(self, p: float, rng: random.Random) -> None:
        self.p, self.rng = p, rng
        self.scale = 0.0 if p >= 1.0 else math.inf if p <= 0.0 else 1.0 / math.log1p(-p)
        self.gap: float = self.draw()

    def draw(self) -> float:
        """Kept merges before the next dropped one."""
        if self.p <= 0.0 or self.p >= 1.0:
            return math.inf if self.p <= 0.0 else 0
        kept = math.log(1.0 - self.rng.random()) * self.scale
        return math.floor(kept) if kept < 1e15 else math.inf

    def drop(self) -> bool:
        """One draw."""
        if self.gap > 0:
            self.gap -= 1
            return False
        self.gap = self.draw()
        return True


class Word(NamedTuple):
    """A word before and after the merging without dropout; `merges` is how many merges lie between."""

    symbols: list[int]
    pieces: list[int]
    merges: int


def merge(symbols: Sequence[int], merges: Merges, drops: Drops | None = None) -> list[int]:
    """Merge the best pair (smallest rank, then leftmost) until none is left; O(n log n) in the length of the word.

    >>> merge([1, 2, 3], {(1, 2): (1, 4), (2, 3): (0, 5)})
    [1, 5]
    """
    ids = list(symbols)
    after = [*range(1, len(ids)), -1]
    before = list(range(-1, len(ids) - 1))
    queue = [(*merges[pair], at) for at, pair in enumerate(pairwise(ids)) if pair in merges]
    heapq.heapify(queue)
    skipped: list[tuple[int, int, int]] = []
    while queue:
        entry = heapq.heappop(queue)
        rank, piece, at = entry
        right = after[at]
        # An entry outlives its pair when a neighbour was merged first; -1 marks what was swallowed.
        if ids[at] < 0 or right < 0 or merges.get((ids[at], ids[right])) != (rank, piece):
            continue
        if drops is not None and drops.drop():
            skipped.append(entry)
            continue
        ids[at], ids[right], after[at] = piece, -1, after[right]
        if after[at] >= 0:
            before[after[at]] = at
            if found := merges.get((piece, ids[after[at]])):
                heapq.heappush(queue, (*found, at))
        if before[at] >= 0 and (found := merges.get((ids[before[at]], piece))):
            heapq.heappush(queue, (*found, before[at]))
        for entry in skipped:
            heapq.heappush(queue, entry)
        skipped.clear()
    return [piece for piece in ids if piece >= 0]


class Segmenter:
    """Pieces of words under dropout; remembers each word's cut without dropout, which most words get."""

    def __init__(self, vocab: dict[str, int], merges: Sequence[tuple[str, str]]) -> None:
        self.vocab = vocab
        self.merges: Merges = {
            (vocab[left], vocab[right]): (rank, vocab[left + right]) for rank, (left, right) in enumerate(merges)
        }
        self.words: dict[str, Word] = {}

    def word(self, text: str) -> Word:
        """Symbols (characters, or bytes of characters outside the vocabulary) and pieces of one word."""
        found = self.words.get(text)
        if found is None:
            symbols: list[int] = []
            for letter in text:
                if letter in self.vocab:
                    symbols.append(self.vocab[letter])
                else:
                    symbols += [self.vocab[f"<0x{byte:02X}>"] for byte in letter.encode()]
            pieces = merge(symbols, self.merges)
            found = Word(symbols, pieces, len(symbols) - len(pieces))
            if len(self.words) >= _REMEMBERED:
                self.words.clear()
            if len(text) <= _LONGEST:
                self.words[text] = found
        return found

    def __call__(self, words: Sequence[str], p: float, rng: random.Random) -> list[int]:
        """Ids of all `words`, one after the other; the same `rng` state gives the same ids."""
        drops = Drops(p, rng)
        ids: list[int] = []
        for text in words:
            symbols, pieces, merges = self.words.get(text) or self.word(text)
            if drops.gap >= merges:  # every draw this word needs says "keep"
                drops.gap -= merges
                ids += pieces
            else:
                ids += merge(symbols, self.merges, drops)
        return ids
