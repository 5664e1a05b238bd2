"""A pipeline reads many texts in batches: each gets the answer that it gets alone, in order, soon."""

from __future__ import annotations

from itertools import chain, islice
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from oneblock.bricks import build_model
from oneblock.generate import Answer, Pipeline, fill
from oneblock.spec import Classify, Full, Head, Learned, Model, Tokens, put
from oneblock.text import ForeignTokenizer, Tokenizer
from specs import language_model, translator
from twins import sharp
from vocabularies import LINES, words


def causal(length: int | None = None) -> Pipeline:
    tokenizer = Tokenizer.train(LINES * 2, vocab=300)
    spec = put(language_model(tokens=Tokens(0, 1, 2)), "embedding.vocab", len(tokenizer) + 7)
    spec = spec if length is None else put(spec, "embedding.position", Learned(length))
    return Pipeline(sharp(build_model(spec)), tokenizer)


def pair() -> Pipeline:
    tokenizer = Tokenizer.train(LINES * 2, vocab=300, languages=("en", "zh"))
    return Pipeline(sharp(build_model(translator(vocab=len(tokenizer)))), tokenizer)


PIPELINES = {"causal": causal(), "learned": causal(64), "pair": pair()}


def masked(head: Any, extra: int = 0) -> Pipeline:
    tokenizer = ForeignTokenizer(words())
    spec: Model = language_model(attention={"mask": Full()}, head=head, tokens=Tokens(pad=0))
    return Pipeline(sharp(build_model(put(spec, "embedding.vocab", len(tokenizer) + extra))), tokenizer)


def same(found: list[list[Answer]], expected: list[list[Answer]]) -> None:
    assert [[(a.prompt, a.text, a.tokens, a.finished) for a in answers] for answers in found] == [
        [(a.prompt, a.text, a.tokens, a.finished) for a in answers] for answers in expected
    ]
    for one, other in zip(chain(*found), chain(*expected), strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-5)
        assert one.logprob == pytest.approx(other.logprob, abs=1e-5)


@settings(max_examples=20)
@given(
    st.sampled_from(list(PIPELINES)),
    st.lists(st.text("low er猫cat🐈", min_size=1, max_size=12).filter(str.strip), min_size=1, max_size=40),
    st.integers(1, 2),
)
def test_many_texts_in_batches_are_each_text_alone(name: str, texts: list[str], beams: int) -> None:
    pipeline, options = PIPELINES[name], {"max_new_tokens": 6, "num_beams": beams, "repetition_penalty": 1.3}
    found = pipeline.generate(texts, **options)
    same(found, [pipeline.generate(text, **options)[0] for text in texts])


def test_sixteen_are_read_together_and_told_before_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline, sizes = causal(), []
    answered = pipeline._answered
    monkeypatch.setattr(pipeline, "_answered", lambda texts, *rest: sizes.append(len(texts)) or answered(texts, *rest))
    answers = pipeline.answers(["low", "the cat"] * 18, max_new_tokens=2)
    assert sizes == []
    assert len(list(islice(answers, 16))) == 16
    assert sizes == [16]
    assert len(list(answers)) == 20
    assert sizes == [16, 16, 4]
    assert pipeline.generate([]) == []


def test_all_is_checked_before_the_first_batch() -> None:
    pipeline = causal(length=40)
    for late, says in (
        ("low " * 50, r"^'low low.*positions"),
        (" ", "empty prompt"),
        (5, "expected a string, got int"),
    ):
        with pytest.raises(ValueError, match=says):
            pipeline.answers(["low"] * 20 + [late], max_new_tokens=2)
    with pytest.raises(ValueError, match="top_k"):
        pipeline.answers(["low"] * 20, top_k=-1)
    with pytest.raises(ValueError, match="use fill or embed"):
        masked(Head()).answers([])


def test_a_seed_gives_the_same_again_and_each_batch_draws_anew() -> None:
    pipeline, options = causal(), {"max_new_tokens": 12, "do_sample": True, "temperature": 2.0, "seed": 7}
    found = pipeline.generate(["low"] * 32, **options)
    assert found == pipeline.generate(["low"] * 32, **options)
    assert found[:16] == pipeline.generate(["low"] * 16, **options)
    assert all(one[0].tokens != other[0].tokens for one, other in zip(found[:16], found[16:], strict=True))


def test_one_text_may_stand_alone_and_none_is_nothing() -> None:
    reader, sorter = masked(Head()), masked(Classify(labels=2))
    assert torch.equal(reader.embed("paris"), reader.embed(["paris"]))
    assert sorter.classify("paris") == sorter.classify(["paris"])
    assert reader.embed([]).shape == (0, 16)
    assert reader.embed([]).dtype == torch.float32
    assert sorter.classify([]) == []
    assert reader.embed(iter(["paris", "the"])).shape == (2, 16)
    for call in (reader.embed, sorter.classify, causal().generate):
        with pytest.raises(ValueError, match="texts: expected a string or a list of strings, got int"):
            call(5)
        with pytest.raises(ValueError, match="text: expected a string, got int"):
            call([5])
    for call in (reader.fill, causal().score, causal().stream):
        with pytest.raises(ValueError, match="text: expected a string, got list"):
            call(["paris"])


def test_a_gap_is_filled_by_tokens_that_the_tokenizer_has() -> None:
    pipeline = masked(Head(), extra=20)
    size = len(pipeline.tokenizer)
    ids = pipeline.encode("paris is [MASK] .")
    gap = fill(pipeline.model, [ids], 4, top_k=100)[0]
    assert len(gap.tokens) == size + 20
    assert any(token >= size for token in gap.tokens[:5])
    within = fill(pipeline.model, [ids], 4, top_k=100, vocab=size)[0]
    assert within.tokens == tuple(token for token in gap.tokens if token < size)
    assert sum(within.probabilities) == pytest.approx(1, abs=1e-5)
    kept = [share for token, share in zip(gap.tokens, gap.probabilities, strict=True) if token < size]
    assert within.probabilities == pytest.approx([share / sum(kept) for share in kept], rel=1e-3)
    said = pipeline.fill("paris is [MASK] .", top_k=100)[0].candidates
    assert [share for _, share in said] == pytest.approx(list(within.probabilities))
    assert all(word for word, _ in said)
    with pytest.raises(ValueError, match="vocab: expected"):
        fill(pipeline.model, [ids], 4, vocab=0)
