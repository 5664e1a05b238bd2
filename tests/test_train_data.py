"""Batches: the right shift, both directions, the same again after a resume."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
import torch

from oneblock.spec import Tokens
from oneblock.text import Pair, Tokenizer
from oneblock.train import stream as module
from oneblock.train.config import DataPart
from oneblock.train.data import collate, corpus_hash, examples, read_split
from oneblock.train.stream import Ahead, Stream, regroup

TOKENS = Tokens(pad=0, bos=1, eos=2, start=1)
WORDS = ("the cat sat on a mat", "a dog ran", "the dog sat", "cats and dogs ran on the mat", "a mat")
PAIRS = [Pair(f"{words} {n}", f"{n} 猫坐在垫子上{words[:n]}", n) for n, words in enumerate(WORDS * 4, 1)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train([side for pair in PAIRS for side in pair[:2]], vocab=330, languages=("en", "zh"))


def stream(tokenizer: Tokenizer, **changes: object) -> Stream:
    found = examples(PAIRS, DataPart())
    return Stream(found, tokenizer, TOKENS, **({"budget": 150, "longest": 60, "seed": 3} | changes))


def same(a: list, b: list) -> bool:
    return all(
        torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y
        for one, other in zip(a, b, strict=True)
        for x, y in zip(vars(one).values(), vars(other).values(), strict=True)
    )


def test_E14_every_label_is_predicted_from_the_token_before_it() -> None:
    batch = collate([([4, 9, 2], [7, 8, 2]), ([4, 2], [5, 2])], TOKENS)
    assert batch.inputs.tolist() == [[1, 7, 8], [1, 5, 0]]
    assert batch.labels.tolist() == [7, 8, 2, 5, 2]
    assert batch.inputs.flatten()[batch.places].tolist() == [1, 7, 8, 1, 5]
    assert batch.tokens == 5


def test_no_padding_means_no_mask_and_no_places() -> None:
    batch = collate([([4, 2], [7, 2]), ([5, 2], [8, 2])], TOKENS)
    assert batch.mask is None
    assert batch.places is None


def test_both_directions_start_with_the_language_they_go_to(tokenizer: Tokenizer) -> None:
    made = stream(tokenizer)
    assert len(made.examples) == 2 * len(PAIRS)
    first = {source[0] for source, _ in made.encoded[: len(PAIRS)]}
    back = {source[0] for source, _ in made.encoded[len(PAIRS) :]}
    assert (first, back) == ({tokenizer.direction("zh")}, {tokenizer.direction("en")})
    assert len(examples(PAIRS, DataPart(directions="forward"))) == len(PAIRS)


def test_every_example_comes_once_per_epoch(tokenizer: Tokenizer) -> None:
    made = stream(tokenizer)
    assert sum(batch.tokens for batch in made.once()) == sum(len(target) for _, target in made.encoded)


def test_B79_a_batch_depends_on_seed_and_step_only(tokenizer: Tokenizer) -> None:
    made, again = stream(tokenizer, dropout=0.3), stream(tokenizer, dropout=0.3)
    far = 2 * made.batches.steps_per_epoch + 1
    assert same(again(far), [*map(made, range(1, far + 1))][-1])
    assert not same(stream(tokenizer, dropout=0.3, seed=4)(1), made(1))


def test_B79_dropout_cuts_an_example_anew_in_every_epoch(tokenizer: Tokenizer) -> None:
    made = stream(tokenizer, dropout=0.5)
    cuts = {tuple(map(tuple, made.cut(epoch, 0))) for epoch in range(8)}
    assert len(cuts) > 4
    assert {tokenizer.decode(source) for source, _ in cuts} == {tokenizer.decode(made.encoded[0][0])}


def test_dropout_never_makes_an_example_longer_than_the_limit(tokenizer: Tokenizer) -> None:
    longest = max(max(map(len, sides)) for sides in stream(tokenizer).encoded)
    made = stream(tokenizer, dropout=0.3, longest=longest)
    rows = [made.cut(0, number) for number in range(len(made.examples))]
    free = stream(tokenizer, dropout=0.3)
    assert max(len(free.cut(0, number)[1]) for number in range(len(rows))) > longest, "the limit is met by some"
    assert max(max(map(len, sides)) for sides in rows) == longest
    assert any(row != whole for row, whole in zip(rows, made.encoded, strict=True))


def test_batches_under_dropout_hold_every_example_once_and_little_padding(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POOL", 25)
    made = stream(tokenizer, dropout=0.3)
    assert 1 < made.width < made.batches.steps_per_epoch, "more than one pool per epoch"
    for epoch in (0, 1):
        first = epoch * made.batches.steps_per_epoch
        rows = [row for at in range(made.batches.steps_per_epoch) for row in made.rows(first + at)]
        expected = [made.cut(epoch, number) for number in range(len(made.examples))]
        assert sorted(map(str, rows)) == sorted(map(str, expected))


def test_regrouping_gives_as_many_batches_as_asked_for_and_like_lengths_together() -> None:
    rng = random.Random(0)
    rows = [([number] * rng.randint(1, 9), [number] * rng.randint(1, 9)) for number in range(400)]
    for count in (1, 7, 23, 400):
        groups = regroup(rows, count, "seed")
        assert len(groups) == count
        assert sorted(map(str, (row for group in groups for row in group))) == sorted(map(str, rows))
    groups = regroup(rows, 23, "seed")
    padded = sum(len(group) * sum(max(map(len, side)) for side in zip(*group, strict=True)) for group in groups)
    assert sum(len(source) + len(target) for source, target in rows) / padded > 0.8
    assert regroup(rows, 23, "seed") == groups != regroup(rows, 23, "other")


def test_accumulated_batches_follow_each_other(tokenizer: Tokenizer) -> None:
    whole, windows = stream(tokenizer), stream(tokenizer, accumulate=3)
    assert same(windows(2), [whole.batch(index) for index in (3, 4, 5)])


def test_reading_ahead_changes_nothing(tokenizer: Tokenizer) -> None:
    made = stream(tokenizer, dropout=0.3)
    ahead = Ahead(made, torch.device("cpu"))
    assert all(same(ahead(step), stream(tokenizer, dropout=0.3)(step)) for step in (1, 2, 7, 8))
    ahead.close()


def test_long_examples_are_left_out_and_counted(tokenizer: Tokenizer) -> None:
    every = stream(tokenizer)
    longest = max(max(map(len, sides)) for sides in every.encoded) - 1
    made = stream(tokenizer, longest=longest)
    assert made.left_out > 0
    assert made.left_out + len(made.examples) == len(every.examples)
    with pytest.raises(ValueError, match=r"none of 40 examples is at most batch\.longest = 2"):
        stream(tokenizer, longest=2)


def test_split_and_explicit_validation_files(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.tsv.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"word{n}\t词{n}x\n" for n in range(30))
    (tmp_path / "v.en").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "v.zh").write_text("一\n二\n", encoding="utf-8")
    split = read_split(DataPart(pairs=str(tmp_path / "a.tsv.gz"), valid=3, test=4))
    assert (len(split.train), len(split.valid), len(split.test)) == (23, 3, 4)
    files = {"valid_source": str(tmp_path / "v.en"), "valid_target": str(tmp_path / "v.zh")}
    split = read_split(DataPart(pairs=str(tmp_path / "a.tsv.gz"), valid=3, **files))
    assert len(split.train) == 30
    assert [pair[:2] for pair in split.valid] == [("one", "一"), ("two", "二")]


def test_the_hash_sees_every_sentence_and_the_tokenizer() -> None:
    found = examples(PAIRS, DataPart())
    hashes = {
        corpus_hash(found, PAIRS[:2], b"t"),
        corpus_hash(found[:-1], PAIRS[:2], b"t"),
        corpus_hash([found[1], found[0], *found[2:]], PAIRS[:2], b"t"),
        corpus_hash(found, PAIRS[:1], b"t"),
        corpus_hash(found, PAIRS[:2], b"u"),
    }
    assert len(hashes) == 5
