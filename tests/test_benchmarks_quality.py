"""The benchmarks that score translators measure what they say: groups of sentences, retrieval, the rival's weights."""

from __future__ import annotations

import doctest
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from oneblock.spec import Tokens, Wiring
from oneblock.text import Pair
from oneblock.train.data import collate
from oneblock.train.evaluate import score
from oneblock.zoo import named

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import quality, renames, retrieval
from benchmarks.baseline import TorchTranslator

TRAIN = [Pair("I love you.", "我爱你。", 1), Pair("It is raining hard.", "下大雨了。", 2), Pair("Go!", "走！", 3)]
HELD = [Pair("I love him.", "我爱他。", 4), Pair("Is it raining hard today?", "今天下大雨吗？", 5)]


@pytest.mark.parametrize("module", [retrieval, renames], ids=["retrieval", "renames"])
def test_the_examples_in_the_benchmarks_run(module: object) -> None:
    assert doctest.testmod(module).failed == 0


def test_retrieval_gives_the_translation_of_the_most_similar_training_sentence() -> None:
    assert quality.retrieved(TRAIN, HELD) == ["我爱你。", "下大雨了。"]
    assert quality.retrieved([quality.flipped(pair) for pair in TRAIN], [quality.flipped(HELD[1])]) == [TRAIN[1].source]


def test_every_sentence_is_in_one_row_of_lengths_and_in_one_of_near_and_far() -> None:
    systems = {"retrieval": [pair.target for pair in HELD]}
    rows, signatures = quality.table(systems, TRAIN, HELD, ("en", "zh"))
    numbers = {row.sentences: row.number for row in rows}
    assert numbers["all"] == 2
    assert numbers["1 to 4 words"] == numbers["5 to 8 words"] == 1
    assert numbers["one word or less from a training sentence"] == 1
    assert numbers["further from all of those"] == 1
    assert rows[0].scores["retrieval"] == pytest.approx((100, 100))
    assert rows[4].scores == {}
    assert signatures == score(["好"], ["好"], "zh")[2:]


def test_a_row_without_sentences_has_no_figures_in_the_table() -> None:
    rows, signatures = quality.table({"greedy": ["我爱他。", "雨"]}, TRAIN, HELD, ("en", "zh"))
    text = quality.markdown([quality.Direction("en", "zh", rows, signatures)])
    assert "| 13 words or more | 0 | – | – |" in text
    assert "**English to Chinese**" in text
    assert "tok:zh" in text


@pytest.mark.parametrize("wiring", ["pre", "post"])
def test_the_weights_of_nn_transformer_give_the_same_logits_under_our_names(wiring: Wiring) -> None:
    spec = named("vaswani", dim=16, depth=2, heads=2, hidden=24, vocab=30, dropout=0.1, wiring=wiring)
    theirs = TorchTranslator(spec, longest=12).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))  # no norm stays the identity, no bias 0
    rows = [([4, 7, 8, 9, 2], [11, 12, 2]), ([3, 6, 2], [13, 14, 15, 16, 2])]
    batch = collate(rows, Tokens(pad=0, bos=1, eos=2, start=1))
    logits = F.linear(theirs(batch), theirs.embedding.weight)
    assert renames.largest_difference(renames.converted(theirs, spec), batch, logits) < 1e-4
    with torch.no_grad():
        theirs.transformer.decoder.layers[1].norm2.weight.mul_(1.1)
    assert renames.largest_difference(renames.converted(theirs, spec), batch, logits) > 1e-3
