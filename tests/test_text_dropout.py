"""Dropout of merges: off, nothing changes; on, the text stays, the draws are the caller's, the law is the paper's."""

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneblock.text import Tokenizer
from oneblock.text.dropout import Drops, Merges, merge

LINES = ["banana bandana ban", "the cat and the hat and the bat", "我不知道不知道", "aaaaaaa aaaa aa"] * 3
TRAINED = Tokenizer.train(LINES, 330, ("en", "zh"))
WORDS = st.lists(st.one_of(st.sampled_from(["ban", "an", "the ", "知道", "aa", "不"]), st.text(max_size=4))).map(
    "".join
)
TEXTS = st.one_of(st.text(), WORDS)


@given(TEXTS)
def test_without_dropout_the_cut_is_that_of_the_library(text: str) -> None:
    words = TRAINED._words(text)
    library = TRAINED._rust.encode(text).ids[:-1]
    assert TRAINED._cut(words, 0.0, random.Random(0)) == library
    found = [at for word in words for at in merge(TRAINED._cut.word(word).symbols, TRAINED._cut.merges)]
    assert found == library


@given(TEXTS, st.sampled_from([1e-320, 1e-9, 0.1, 0.5, 0.9, 1.0]), st.integers(0, 5))
def test_with_dropout_the_text_is_the_same_and_the_pieces_follow_the_seed(text: str, p: float, seed: int) -> None:
    state = random.getstate()
    ids = TRAINED.encode(text, to="zh", dropout=p, rng=random.Random(seed))
    assert random.getstate() == state
    assert TRAINED.decode(ids) == TRAINED.normalise(text)
    assert (ids[0], ids[-1]) == (TRAINED.direction("zh"), TRAINED.eos)
    fresh = Tokenizer(type(TRAINED._rust).from_str(TRAINED._text))
    assert ids == fresh.encode(text, to="zh", dropout=p, rng=random.Random(seed)), "memory changes nothing"


def test_all_merges_dropped_leave_characters() -> None:
    ids = TRAINED.encode("banana", dropout=1.0, rng=random.Random(0))
    assert [TRAINED._rust.id_to_token(at) for at in ids] == ["▁", *"banana", "</s>"]


def test_a_text_takes_many_forms() -> None:
    rng = random.Random(1)
    assert len({tuple(TRAINED.encode("the bandana", dropout=0.3, rng=rng)) for _ in range(50)}) > 10


def paper(symbols: list[int], merges: Merges, p: float, rng: random.Random) -> list[int]:
    """Algorithm 1 of Provilkov et al. 2020 to the letter: a coin for each possible merge at each step."""
    ids = list(symbols)
    while True:
        possible = [(*merges[pair], at) for at, pair in enumerate(pairwise(ids)) if pair in merges]
        kept = [entry for entry in possible if rng.random() >= p]
        if not kept:
            return ids
        _, piece, at = min(kept)
        ids[at : at + 2] = [piece]


@pytest.mark.parametrize("p", [0.2, 0.5])
@pytest.mark.parametrize("word", ["▁banana", "▁bandana", "不知道不知道", "▁aaaaaa"])
def test_the_law_is_that_of_the_paper(word: str, p: float) -> None:
    rng, other, draws = random.Random(1), random.Random(2), 8000
    cut = TRAINED._cut
    ours = Counter(tuple(cut([word], p, rng)) for _ in range(draws))
    theirs = Counter(tuple(paper(cut.word(word).symbols, cut.merges, p, other)) for _ in range(draws))
    distance = sum(abs(ours[form] - theirs[form]) for form in ours | theirs) / (2 * draws)
    assert distance < 0.8 * (len(ours | theirs) / draws) ** 0.5, "about what two samples of one law differ by"


def test_short_words_have_their_share_of_dropped_merges() -> None:
    cut, rng, other = TRAINED._cut, random.Random(1), random.Random(2)
    words = ["▁an", "aa", "▁ban", "知道"] * 5
    ours = sum(len(cut(words, 0.1, rng)) for _ in range(2000))
    symbols = [cut.word(word).symbols for word in words]
    theirs = sum(len(paper(each, cut.merges, 0.1, other)) for each in symbols for _ in range(2000))
    whole = 2000 * len(cut(words, 0.0, rng))
    assert abs((ours - whole) / (theirs - whole) - 1) < 0.05, "pieces more than without dropout"


@given(st.lists(st.integers(0, 3), max_size=30))
def test_merge_takes_the_best_pair_first_from_the_left(symbols: list[int]) -> None:
    merges: Merges = {(0, 0): (0, 4), (1, 2): (1, 5), (4, 0): (2, 6), (5, 5): (3, 7), (3, 4): (4, 8), (8, 4): (5, 9)}
    assert merge(symbols, merges) == paper(symbols, merges, 0.0, random.Random(0))


@pytest.mark.parametrize("p", [0.05, 0.5, 0.95])
def test_gaps_are_as_frequent_as_coins(p: float) -> None:
    drops = Drops(p, random.Random(1))
    assert abs(sum(drops.drop() for _ in range(20_000)) / 20_000 - p) < 0.015


def test_a_long_word_is_cut_in_good_time_and_not_remembered() -> None:
    word = "知道" * 50_000
    ids = TRAINED.encode(word, dropout=0.1, rng=random.Random(0))
    assert TRAINED.decode(ids) == word
    assert word not in TRAINED._cut.words
