"""Batches: every example once per epoch, within the budget, the same for the same (seed, step)."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneblock.text import Batches, Tokenizer, read_pairs

LENGTHS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=150)
BUDGET = st.integers(80, 600)


def epoch_of(batches: Batches, epoch: int) -> list[list[int]]:
    steps = batches.steps_per_epoch
    return [batches(step) for step in range(epoch * steps, (epoch + 1) * steps)]


@given(LENGTHS, BUDGET, st.integers(0, 9), st.integers(0, 3))
def test_each_example_once_per_epoch_within_the_budget(
    lengths: list[tuple[int, int]], tokens: int, seed: int, epoch: int
) -> None:
    found = epoch_of(Batches(lengths, tokens, seed), epoch)
    assert sorted(index for batch in found for index in batch) == list(range(len(lengths)))
    for batch in found:
        assert batch
        sources, targets = zip(*(lengths[index] for index in batch), strict=True)
        assert len(batch) * (max(sources) + max(targets)) <= tokens


@given(LENGTHS, BUDGET, st.integers(0, 9))
def test_a_batch_is_a_pure_function_of_seed_and_step(lengths: list[tuple[int, int]], tokens: int, seed: int) -> None:
    batches = Batches(lengths, tokens, seed)
    steps = list(range(4 * batches.steps_per_epoch))
    forward = {step: batches(step) for step in steps}
    random.Random(seed).shuffle(steps)
    for step in steps:
        state = random.getstate()
        assert batches(step) == forward[step] == Batches(lengths, tokens, seed)(step)
        assert random.getstate() == state


def test_a_batch_handed_out_is_the_callers_own() -> None:
    batches = Batches([(3, 3)] * 4, 24, seed=1)
    batches(0).clear()
    assert len(batches(0)) == 4


def test_epochs_and_seeds_differ() -> None:
    lengths = [(random.Random(n).randint(2, 20), random.Random(-n).randint(2, 20)) for n in range(400)]
    one, other = Batches(lengths, 300, seed=1), Batches(lengths, 300, seed=2)
    assert epoch_of(one, 0) != epoch_of(one, 1)
    assert epoch_of(one, 0) != epoch_of(other, 0)
    together = [{tuple(sorted(batch)) for batch in epoch_of(one, epoch)} for epoch in (0, 1)]
    assert together[0] != together[1], "batches hold other examples, not only another order"


def test_epoch_of_a_step() -> None:
    batches = Batches([(5, 5)] * 10, 20, seed=0)
    assert batches.steps_per_epoch == 5
    assert [batches.epoch(step) for step in (0, 4, 5, 14, 15)] == [0, 0, 1, 2, 3]


def test_the_order_of_lengths_is_shuffled() -> None:
    lengths = [(n, n) for n in range(1, 60)]
    longest = [max(batch) for batch in epoch_of(Batches(lengths, 240, seed=3), 0)]
    assert longest != sorted(longest)


def test_an_example_just_as_long_as_the_budget_is_a_batch() -> None:
    assert sorted(epoch_of(Batches([(3, 4), (1, 1)], 7, seed=0), 0)) == [[0], [1]]


@pytest.mark.parametrize(
    ("lengths", "tokens", "message"),
    [
        ([], 10, "at least one example"),
        ([(1, 1), (6, 5)], 10, r"example 1 \(6 \+ 5 tokens\); got 10"),
        ([(1, -1)], 10, "example 0"),
    ],
)
def test_refuses(lengths: list[tuple[int, int]], tokens: int, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        Batches(lengths, tokens, seed=0)
    assert "\n" not in str(error.value)


def test_refuses_a_step_before_the_first() -> None:
    with pytest.raises(ValueError, match="step: expected 0 or more; got -1"):
        Batches([(1, 1)], 10, seed=0)(-1)


def test_nine_tenths_of_a_real_corpus_is_not_padding(shared_data: Path) -> None:
    pairs = list(read_pairs(shared_data / "tatoeba-cmn-eng" / "cmn.txt"))
    tokenizer = Tokenizer.train((text for pair in pairs for text in pair[:2]), 6000, ("en", "zh"))
    lengths = [(len(tokenizer.encode(pair.source, to="zh")), len(tokenizer.encode(pair.target))) for pair in pairs]
    batches = Batches(lengths, 4096, seed=1)
    for epoch in (0, 7):
        print(f"fill {batches.fill(epoch):.4f} in {batches.steps_per_epoch} batches")
        assert batches.fill(epoch) > 0.9
