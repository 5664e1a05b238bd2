"""Every filter gives what the other library's processor gives, alone and all in a row, and always leaves a token."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from oneblock.generate import GenerationConfig, generate
from oneblock.generate.filters import filters, no_repeat_ngram, repetition_penalty
from oneblock.generate.walk import filtered, pick
from twins import PAD, VOCAB, rotary, sharp

EOS = (2, 7)
other = lru_cache(lambda: rotary()[1])


def theirs(config: dict[str, Any], ids: Tensor, scores: Tensor, prompt: int) -> Tensor:
    """What transformers' own list of processors makes of the scores, given ids without padding."""
    transformers = pytest.importorskip("transformers", reason="the other library is not installed")
    model, said = other(), transformers.GenerationConfig(**config, eos_token_id=list(EOS), pad_token_id=PAD)
    model._prepare_special_tokens(said, kwargs_has_attention_mask=True, device="cpu")
    processors = model._get_logits_processor(
        said, input_ids_seq_length=prompt, encoder_input_ids=ids, device="cpu", model_kwargs={}
    )
    return processors(ids, scores.clone())


CHOICES: dict[str, st.SearchStrategy[Any]] = {
    "temperature": st.sampled_from([0.3, 0.7, 1.0, 2.5]),
    "top_k": st.sampled_from([None, 1, 3, 20, 1000]),
    "top_p": st.sampled_from([0.1, 0.5, 0.9, 1.0]),
    "min_p": st.sampled_from([None, 0.01, 0.3, 1.0]),
    "typical_p": st.sampled_from([0.2, 0.8, 1.0]),
    "repetition_penalty": st.sampled_from([0.7, 1.0, 1.8]),
    "no_repeat_ngram_size": st.integers(0, 3),
    "bad_words_ids": st.sampled_from([None, [[4], [5, 6]], [[4, 5, 4]]]),
    "suppress_tokens": st.sampled_from([None, [1, 8]]),
    "min_new_tokens": st.sampled_from([0, 3]),
    "num_beams": st.sampled_from([1, 3]),
}


@settings(max_examples=50)
@given(st.fixed_dictionaries(CHOICES), st.booleans(), st.integers(0, 10_000))
def test_all_filters_in_a_row_are_those_of_transformers(choices: dict[str, Any], drawn: bool, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn(4, VOCAB, generator=generator)
    ids = torch.randint(4, 9, (4, 7), generator=generator)
    pads = torch.tensor([0, 2, 4, 1])
    config = GenerationConfig(**choices, do_sample=drawn, max_new_tokens=20)
    ours = scores
    for change in filters(config, EOS, 5, VOCAB):
        ours = change(ours, ids.where(torch.arange(7) >= pads[:, None], -1))
    assert ours.isfinite().any(-1).all()
    told = {**choices, "do_sample": drawn, "max_new_tokens": 20}
    for row, skip in enumerate(pads.tolist()):
        expected = theirs(told, ids[row : row + 1, skip:], scores[row : row + 1], 5 - skip)
        torch.testing.assert_close(ours[row : row + 1].softmax(-1), expected.softmax(-1), atol=1e-6, rtol=0)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 3))
def test_no_ngram_comes_twice_by_plain_loops(seed: int, size: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, 3, (3, 8), generator=generator)
    ids = ids.where(torch.arange(8) >= torch.randint(0, 8, (3, 1), generator=generator), -1)
    for row, scores in zip(ids.tolist(), no_repeat_ngram(torch.zeros(3, 4), ids, size), strict=True):
        real = [token for token in row if token >= 0]
        grams = {tuple(real[i : i + size]) for i in range(len(real) - size + 1)}
        begun = tuple(real[len(real) - size + 1 :]) if size > 1 else ()
        banned = {token for token in range(4) if len(begun) == size - 1 and (*begun, token) in grams}
        assert {token for token in range(4) if scores[token] == -torch.inf} == banned


def test_B52_a_penalty_divides_what_is_positive_and_multiplies_what_is_negative() -> None:
    scores = torch.tensor([[1.0, -1.0, 0.5]])
    assert repetition_penalty(scores, torch.tensor([[0, 1]]), 2.0).tolist() == [[0.5, -2.0, 0.5]]
    assert repetition_penalty(scores, torch.tensor([[-1, 1]]), 2.0).tolist() == [[1.0, -2.0, 0.5]]  # padding is none
    assert not filters(GenerationConfig(repetition_penalty=1.0), [], 0, 3)  # the identity, bit for bit


@pytest.mark.parametrize("temperature", [0.0, 1e-8, 1e-4])
def test_B49_no_temperature_is_greedy(temperature: float) -> None:
    model = rotary()[0].half().float()
    prompts = [[5, 6, 7], [8]]
    cold = generate(model, prompts, do_sample=True, temperature=temperature, max_new_tokens=8)
    assert (cold == generate(model, prompts, max_new_tokens=8)).all()
    with pytest.raises(ValueError, match="temperature: expected a finite number of at least 0, got -1"):
        generate(model, prompts, temperature=-1.0)
    with pytest.raises(ValueError, match="temperature: expected a finite number of at least 0, got nan"):
        generate(model, prompts, temperature=float("nan"))


def test_B49_scores_of_half_precision_are_divided_in_float32() -> None:
    config = GenerationConfig(do_sample=True, temperature=2e-4)
    scores = torch.tensor([[10.0, 9.0]], dtype=torch.float16).float()
    for change in filters(config, [], 0, 2):
        scores = change(scores, torch.zeros(1, 1, dtype=torch.long))
    assert scores.softmax(-1).tolist() == [[1.0, 0.0]]


def test_B50_a_ban_gives_way_to_the_next_best_or_is_refused_by_name() -> None:
    model = rotary()[0]
    best = int(generate(model, [5, 6], max_new_tokens=1)[0, -1])
    options = {"do_sample": True, "top_k": 1, "max_new_tokens": 1}
    other = int(generate(model, [5, 6], suppress_tokens=[best], **options)[0, -1])
    scores = model(torch.tensor([[5, 6]])).logits[0, -1]
    scores[best] = -torch.inf
    assert other == int(scores.argmax())
    with pytest.raises(ValueError, match="ban all 40 tokens"):
        generate(model, [5, 6], suppress_tokens=range(VOCAB))
    with pytest.raises(ValueError, match="row 1: the bans leave no token"):
        generate(model, [5, 6], suppress_tokens=range(2, VOCAB), no_repeat_ngram_size=1, max_new_tokens=9)
    with pytest.raises(ValueError, match=r"prompt 1: the bans leave 1 answers|the bans leave"):
        generate(model, [5, 6], suppress_tokens=range(1, VOCAB), num_beams=2, num_return_sequences=2, max_new_tokens=2)


def test_broken_scores_are_named() -> None:
    with pytest.raises(ValueError, match="not numbers"):
        filtered(torch.full((1, 3), torch.nan), torch.zeros(1, 1), [], torch.ones(1, dtype=torch.bool))


def test_B74_rows_beyond_the_tokenizer_never_come() -> None:
    model = sharp(rotary()[0])
    drawn = generate(
        model, [[5]], do_sample=True, temperature=5.0, vocab=30, num_return_sequences=500, max_new_tokens=20,
        eos_token_id=[], seed=0,
    )  # fmt: skip
    assert drawn[:, 1:].numel() == 10_000
    assert drawn.max() == 29
    assert generate(model, [[5]], do_sample=True, temperature=5.0, num_return_sequences=500, seed=0).max() > 29


def test_draws_are_as_likely_as_the_softmax_says() -> None:
    scores = torch.tensor([2.0, 1.0, 0.0, -torch.inf]).expand(20_000, 4)
    drawn = pick(scores, torch.Generator().manual_seed(0)).bincount(minlength=4) / 20_000
    torch.testing.assert_close(drawn, scores[0].softmax(-1), atol=0.01, rtol=0)
