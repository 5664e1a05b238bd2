"""BLEU and chrF with the signatures that say how they were counted."""

from __future__ import annotations

import pytest
import torch

from oneblock.bricks import build_model
from oneblock.text import Pair, Tokenizer
from oneblock.train.evaluate import evaluate, score
from oneblock.zoo import named

PAIRS = [Pair("the cat sat", "猫坐着", 1), Pair("a dog ran", "狗跑了", 2), Pair("the dog sat", "狗坐着", 3)]


def test_chinese_is_cut_by_character_english_by_word() -> None:
    bleu, chrf, signature, other = score(["猫坐在垫子上"], ["猫坐在垫子下"], "zh")
    assert bleu == pytest.approx(75.98, abs=0.01)
    assert "tok:zh" in signature
    assert "version:" in other
    assert 0 < chrf < 100
    assert "tok:13a" in score(["a"], ["a"], "en")[2]
    with pytest.raises(ValueError, match="as many translations as references"):
        score(["a"], [], "en")


def test_both_directions_of_the_same_pairs() -> None:
    torch.manual_seed(0)
    tokenizer = Tokenizer.train([side for pair in PAIRS for side in pair[:2]] * 3, vocab=290, languages=("en", "zh"))
    model = build_model(named("vaswani", dim=16, depth=1, heads=2, hidden=32, vocab=len(tokenizer))).train()
    scores = evaluate(model, tokenizer, PAIRS, beam=2)
    assert [item.direction for item in scores] == ["en-zh", "zh-en"]
    assert {item.sentences for item in scores} == {3}
    assert all(0 <= item.bleu <= 100 and 0 <= item.chrf <= 100 and item.beam == 2 for item in scores)
    assert scores[0].to_dict()["bleu_signature"].startswith("nrefs:1|")
    assert model.training
    back = evaluate(model, tokenizer, PAIRS, [("zh", "en")], beam=2, forward=("en", "zh"))
    assert back == scores[1:]
    with pytest.raises(ValueError, match="no sentence pairs"):
        evaluate(model, tokenizer, [])
    with pytest.raises(ValueError, match="the pairs are en and zh, got the direction zh-de"):
        evaluate(model, tokenizer, PAIRS, [("en", "zh"), ("zh", "de")])
