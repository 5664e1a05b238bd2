"""Which examples are learned from at step n: sentences of like length together, so that little is spent on padding."""

import random
from collections.abc import Sequence


class Batches:
    """Batches under a token budget; a batch is a pure function of (seed, step), so resuming needs only the step.

    `lengths` holds (source length, target length) of each example, in tokens; (n, 0) for examples with one side.
    A batch of r examples, padded, has r * (longest source + longest target) tokens, at most `tokens`. Every example
    occurs once per epoch. Examples are sorted by both lengths; which of those of like length share a batch, and the
    order of the batches, is drawn anew each epoch. ValueError: no examples, an example longer than the budget.

    >>> batches = Batches([(3, 4), (9, 9), (3, 4), (4, 4)], tokens=24, seed=1)
    >>> batches.steps_per_epoch, sorted(sorted(batches(step)) for step in range(2))
    (2, [[0, 2, 3], [1]])
    """

    def __init__(self, lengths: Sequence[tuple[int, int]], tokens: int, seed: int) -> None:
        if not lengths:
            raise ValueError("lengths: expected at least one example; got none; check the corpus")
        for index, (source, target) in enumerate(lengths):
            if min(source, target) < 0 or source + target > tokens:
                raise ValueError(
                    f"tokens: expected a budget that holds example {index} ({source} + {target} tokens); "
                    f"got {tokens}; raise the budget or drop the example"
                )
        self.tokens, self.seed = tokens, seed
        self._lengths = list(lengths)
        # Sources of 1 and 2, 3 and 4, ... tokens count as equally long: a little more padding, but an example meets
        # others in each epoch. Target lengths rise and fall in turn, so that neighbours stay alike from pair to pair.
        longer = {source for source, _ in lengths}
        self._like = [(source + (source % 2 and source + 1 in longer), target) for source, target in lengths]
        self._key = [(source, target if (source + 1) // 2 % 2 else -target) for source, target in self._like]
        self._cuts = self._cut(sorted(range(len(lengths)), key=self._key.__getitem__))
        self._plan: tuple[int, list[list[int]]] | None = None

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches that hold every example once; the same in each epoch."""
        return len(self._cuts)

    def epoch(self, step: int) -> int:
        """Epoch (from 0) that global step `step` (from 0) belongs to. ValueError: a negative step.

        >>> Batches([(3, 4), (9, 9)], tokens=24, seed=1).epoch(5)
        2
        """
        if step < 0:
            raise ValueError(f"step: expected 0 or more; got {step}; steps are counted from the start of training")
        return step // len(self._cuts)

    def __call__(self, step: int) -> list[int]:
        """Indices of the examples of global step `step` (from 0). ValueError: a negative step."""
        return list(self._planned(self.epoch(step))[step % len(self._cuts)])

    def fill(self, epoch: int = 0) -> float:
        """Share of an epoch's tokens, padding included, that are not padding (0 to 1).

        >>> round(Batches([(3, 4), (9, 9), (3, 4), (4, 4)], tokens=24, seed=1).fill(), 3)
        0.952
        """
        real = padded = 0
        for batch in self._planned(epoch):
            sources, targets = zip(*(self._lengths[index] for index in batch), strict=True)
            real += sum(sources) + sum(targets)
            padded += len(batch) * (max(sources) + max(targets))
        return real / padded if padded else 1.0

    def _planned(self, epoch: int) -> list[list[int]]:
        """Batches of an epoch; the last answer is remembered, for speed only."""
        if self._plan is not None and self._plan[0] == epoch:
            return self._plan[1]
        rng = random.Random(f"{self.seed} {epoch}")
        order = list(range(len(self._lengths)))
        rng.shuffle(order)
        order.sort(key=self._key.__getitem__)  # stable: those of like length stay shuffled, and the cuts stay valid
        plan = [order[start:end] for start, end in self._cuts]
        rng.shuffle(plan)
        self._plan = (epoch, plan)
        return plan

    def _cut(self, order: list[int]) -> list[tuple[int, int]]:
        """(start, end) of each batch in sorted order, by lengths that any shuffling among like ones leaves in place."""
        cuts, start, longest = [], 0, (0, 0)
        for end, index in enumerate(order):
            source, target = self._like[index]
            longest = (max(longest[0], source), max(longest[1], target))
            if end > start and (end + 1 - start) * sum(longest) > self.tokens:
                cuts.append((start, end))
                start, longest = end, (source, target)
        return [*cuts, (start, len(order))]
