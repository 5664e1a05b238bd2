"""A trained encoder-decoder of another library: our search through our model finds what its own search finds."""

import math
import random

import pytest
import torch

import aren
from oneblock.generate import Seq2SeqStepper, beam_search, greedy_search, score

START, EOS = 1, 2
WORDS, TOGETHER, LONGEST = 220, 44, 40


@pytest.fixture(scope="module")
def folder(shared_data):
    found = shared_data / "weights-aren-transliteration"
    if not (found / "model.bin").is_file():
        pytest.skip(f"no {found.name}/model.bin: this test reads weights that are not part of the project")
    return found


@pytest.fixture(scope="module")
def ours(folder):
    return aren.load(folder)


@pytest.fixture(scope="module")
def theirs(folder):
    library = pytest.importorskip("ctranslate2", reason="ctranslate2, the other library, is not installed")
    return library.Translator(str(folder), inter_threads=1, intra_threads=1)


@pytest.fixture(scope="module")
def names(ours):
    """Batches of random words of 1 ... 20 Arabic letters, of mixed length."""
    rng = random.Random(7)
    letters = [c for c in ours.source if "\u0620" <= c <= "\u064a"]
    words = [[rng.choice(letters) for _ in range(rng.randint(1, 20))] for _ in range(WORDS)]
    assert len(letters) > 30
    assert {len(word) for word in words} == set(range(1, 21))
    return [words[a : a + TOGETHER] for a in range(0, WORDS, TOGETHER)]


def padded(rows, value):
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[value] * (longest - len(row))] for row in rows])


def read(model, words):
    """(ids, attention mask) of a batch of words."""
    ids = [[model.source.index(letter) for letter in word] for word in words]
    return padded(ids, 0), padded([[1] * len(word) for word in words], 0)


@torch.no_grad()
def stepper(model, words):
    return Seq2SeqStepper(model.model, model.model.encode(*read(model, words)))


def spelled(model, hypothesis):
    return [model.target[token] for token in hypothesis.tokens if token != EOS]


def search(model, batches, **options):
    """Our hypotheses, of all words."""
    options = {"start": START, "eos": EOS, "max_length": LONGEST, **options}
    return [best for words in batches for best in beam_search(stepper(model, words), len(words), **options)]


def translate(library, batches, beam, n_best=1, length_penalty=1.0, longest=LONGEST):
    """Their (spelling, score) of each hypothesis, of all words; the end may come first, as it may with us."""
    found = [
        result
        for words in batches
        for result in library.translate_batch(
            words, beam_size=beam, num_hypotheses=n_best, length_penalty=length_penalty, return_scores=True,
            max_decoding_length=longest, min_decoding_length=0,
        )
    ]  # fmt: skip
    return [list(zip(result.hypotheses, result.scores, strict=True)) for result in found]


def same(model, found, expected, tolerance=1e-4):
    spellings = [[spelled(model, h) for h in best] for best in found]
    assert spellings == [[spelling for spelling, _ in best] for best in expected]
    for best, others in zip(found, expected, strict=True):
        assert [h.score for h in best] == pytest.approx([score for _, score in others], abs=tolerance)


def test_greedy_tokens_and_log_probabilities(ours, theirs, names):
    found = [
        [hypothesis]
        for words in names
        for hypothesis in greedy_search(
            stepper(ours, words), len(words), start=START, eos=EOS, max_length=LONGEST, length_penalty=0.0
        )
    ]
    same(ours, found, translate(theirs, names, 1, length_penalty=0.0))
    assert len({h.tokens for best in found for h in best}) > WORDS / 2


@pytest.mark.parametrize("length_penalty", [0.6, 1.0])
@pytest.mark.parametrize("beam", [2, 4, 5])
def test_beams_that_stop_at_enough_finished_hypotheses(ours, theirs, names, beam, length_penalty):
    """With a length penalty the other library stops a sentence once it has as many hypotheses as beams."""
    expected = translate(theirs, names, beam, n_best=beam, length_penalty=length_penalty)
    options = {"beam": beam, "n_best": beam, "length_penalty": length_penalty}
    found = search(ours, names, early_stopping=True, **options)
    same(ours, found, expected)
    if beam == 4:
        assert any(
            best[0].tokens != greedy[0].tokens for best, greedy in zip(found, search(ours, names, beam=1), strict=True)
        )


@pytest.mark.parametrize("beam", [2, 4, 5])
def test_B44_beams_that_stop_when_nothing_better_can_come(ours, theirs, names, beam):
    """Without a length penalty the other library stops once the best hypothesis has ended: both rules are exact."""
    expected = translate(theirs, names, beam, length_penalty=0.0)
    same(ours, search(ours, names, beam=beam, length_penalty=0.0, early_stopping="never"), expected)


def test_B44_searching_to_the_end_is_never_worse_and_sometimes_better(ours, theirs, names):
    expected = translate(theirs, names, 4)
    found = search(ours, names, beam=4, early_stopping="never")
    gains = [best[0].score - score for best, [(_, score)] in zip(found, expected, strict=True)]
    assert min(gains) > -1e-4
    assert max(gains) > 1e-2


@pytest.mark.parametrize("beam", [1, 4])
def test_B46_both_stop_at_the_length_limit(ours, theirs, names, beam):
    options = {"n_best": beam, "length_penalty": 1.0}
    found = search(ours, names[:2], beam=beam, early_stopping=True, max_length=4, **options)
    same(ours, found, translate(theirs, names[:2], beam, longest=4, **options))
    assert any(not h.finished for best in found for h in best)


def test_forced_decoding(ours, theirs, names):
    """Log-probabilities of given spellings, likely ones and random ones, token by token with the end token."""
    rng = random.Random(3)
    likely = [[spelled(ours, best[0])[:15] for best in search(ours, [words], beam=1)] for words in names[:2]]
    unlikely = [[[rng.choice(ours.target[3:-1]) for _ in range(rng.randint(0, 15))] for _ in words] for words in names]
    for words, spellings in zip(names[:2] + names, likely + unlikely, strict=True):
        expected = theirs.score_batch(words, spellings)
        ids = [[*(ours.target.index(c) for c in spelling), EOS] for spelling in spellings]
        ids, mask = (padded(ids, -100), read(ours, words))
        found = score(ours.model, mask[0], ids, mask[1])
        for row, other in zip(found, expected, strict=True):
            assert row[: len(other.log_probs)].tolist() == pytest.approx(other.log_probs, abs=1e-4)
            assert (row[len(other.log_probs) :] == 0).all()
            assert row.sum() > -math.inf


def test_a_sentence_alone_is_scored_as_in_a_padded_batch(ours, names):
    words = names[0][:20]
    together = search(ours, [words], beam=4, n_best=4)
    alone = [search(ours, [[word]], beam=4, n_best=4)[0] for word in words]
    for best, others in zip(together, alone, strict=True):
        assert [h.tokens for h in best] == [h.tokens for h in others]
        assert [h.score for h in best] == pytest.approx([h.score for h in others], abs=1e-5)
