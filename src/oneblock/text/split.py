"""Set sentences aside for testing such that none of them, nor its translation, is ever seen in training.

Holding out pairs at random is not enough: sentences have several translations, and a pair whose other translation was
trained on is half known. So whole families are set aside: pairs that share a side, directly or through others.
"""

import random
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from oneblock.text.corpus import Pair


@dataclass(frozen=True)
class Report:
    """What a split found: how many pairs, families of them, the largest family, and repetitions after normalising."""

    pairs: int
    families: int
    largest: int
    repeated_pairs: int
    repeated_sources: int
    repeated_targets: int

    def __str__(self) -> str:
        return (
            f"{self.pairs:,} pairs in {self.families:,} families (largest {self.largest:,}); repeated: "
            f"{self.repeated_pairs:,} pairs, {self.repeated_sources:,} sources, {self.repeated_targets:,} targets"
        )


@dataclass(frozen=True)
class Split:
    """Three lists that share no side, each in shuffled order, so that the first n of a list are a fair sample of it."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]
    report: Report


def split_pairs(pairs: Iterable[Pair], *, test: int, valid: int, seed: int) -> Split:
    """Split by connected component of the graph whose edges are the pairs; sides are compared by `key`.

    `test` and `valid` are numbers of pairs, met exactly when families of fitting sizes exist, otherwise as nearly as
    whole families allow (a tie goes to the larger). The same pairs in the same order and the same `seed` give the same
    split. ValueError: negative sizes, or nothing left to train on.

    >>> pairs = [Pair("Hi.", "嗨。", 1), Pair("Hello!", "嗨", 2), Pair("Run!", "跑", 3), Pair("Go.", "走", 4)]
    >>> split = split_pairs(pairs, test=1, valid=1, seed=0)
    >>> sorted(pair.line for pair in split.train), split.report.families
    ([1, 2], 3)
    """
    pairs = list(pairs)
    if min(test, valid) < 0 or test + valid >= len(pairs):
        raise ValueError(
            f"sizes: expected test and valid from 0, together fewer than the {len(pairs)} pairs; "
            f"got test {test} and valid {valid}; make them smaller"
        )
    keys = [(key(pair.source), key(pair.target)) for pair in pairs]
    families = _families(keys)
    report = Report(
        pairs=len(pairs),
        families=len(families),
        largest=max(map(len, families)),
        repeated_pairs=_repeated(keys),
        repeated_sources=_repeated([source for source, _ in keys]),
        repeated_targets=_repeated([target for _, target in keys]),
    )
    rng = random.Random(f"split {seed}")
    rng.shuffle(families)
    parts = []
    for size in (test, valid):
        chosen, families = _take(families, size)
        parts.append(chosen)
    if not families:
        raise ValueError(f"sizes: expected pairs left for training; got none of {report}; make test and valid smaller")
    lists = [[pairs[at] for family in part for at in family] for part in (*parts, families)]
    for part in lists:
        rng.shuffle(part)
    return Split(train=lists[2], valid=lists[1], test=lists[0], report=report)


def key(text: str) -> str:
    """What counts as the same sentence: NFKC, case folded, without punctuation and spaces.

    >>> key("It's 5 o'clock!"), key("５點。"), key("?!")
    ('its5oclock', '5點', '?!')
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    kept = "".join(letter for letter in folded if unicodedata.category(letter)[0] not in "PZC")
    return kept or "".join(folded.split())  # a line of punctuation only is like itself, not like all such lines


def _repeated(keys: Sequence[object]) -> int:
    return len(keys) - len(Counter(keys))


def _families(keys: Sequence[tuple[str, str]]) -> list[list[int]]:
    """Indices of pairs, grouped by connected component (union-find); a text is one node, whichever side it is on."""
    parent = list(range(len(keys)))

    def root(at: int) -> int:
        while parent[at] != at:
            parent[at] = at = parent[parent[at]]
        return at

    first: dict[str, int] = {}
    for at, sides in enumerate(keys):
        for side in sides:
            parent[root(at)] = root(first.setdefault(side, at))
    found = defaultdict(list)
    for at in range(len(keys)):
        found[root(at)].append(at)
    return list(found.values())


def _take(families: list[list[int]], size: int) -> tuple[list[list[int]], list[list[int]]]:
    """Families of `size` pairs together, first come first served, and the others."""
    chosen, rest, left = [], [], size
    for family in families:
        if len(family) <= left:
            chosen.append(family)
            left -= len(family)
        else:
            rest.append(family)
    return (chosen, rest) if not left else _nearest(families, size)


def _nearest(families: list[list[int]], size: int) -> tuple[list[list[int]], list[list[int]]]:
    """The same where the greedy way falls short: bit n of `reach[i]` says that n pairs can be had of the first i."""
    # More than twice the size is no nearer than nothing at all, but something asked for shall not be empty.
    limit = (2 << max(2 * size, min(map(len, families), default=0))) - 1
    reach = [1]
    for family in families:
        reach.append((reach[-1] | reach[-1] << len(family)) & limit)
    sums = [n for n in range(1, reach[-1].bit_length()) if reach[-1] >> n & 1]
    goal = min(sums, key=lambda n: (abs(n - size), -n), default=0)
    chosen, rest = [], []
    for at in range(len(families) - 1, -1, -1):
        if reach[at] >> goal & 1:
            rest.append(families[at])
        else:
            chosen.append(families[at])
            goal -= len(families[at])
    return chosen, rest
