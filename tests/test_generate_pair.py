"""`generate` for encoder-decoders: the same search, the same cache rules, and the start token in front."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from oneblock.bricks import build_model
from oneblock.cache import make
from oneblock.generate import Seq2SeqStepper, beam_search, generate, score, stream
from oneblock.spec import Tokens, put
from oneblock.zoo import named

SOURCES = [[5, 6, 7, 8, 9, 10, 2], [11, 2], [12, 13, 14, 2], [30, 31, 2]]


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(3)
    model = build_model(named("vaswani", dim=16, depth=2, heads=2, hidden=32, vocab=40, dropout=0.0)).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5).add_(0.3 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"repetition_penalty": 1.4, "no_repeat_ngram_size": 2}])
@pytest.mark.parametrize("cache", [None, "static", "growing"])
def test_a_padded_batch_is_each_source_alone(model: Any, options: dict[str, Any], cache: Any) -> None:
    together = generate(model, SOURCES, max_new_tokens=9, cache=cache, **options)
    assert together[:, 0].tolist() == [1] * 4
    assert len({tuple(row) for row in together.tolist()}) == 4
    for row, source in zip(together.tolist(), SOURCES, strict=True):
        alone = generate(model, source, max_new_tokens=9, **options)[0].tolist()
        assert row[: len(alone)] == alone
        assert set(row[len(alone) :]) <= {0}
    padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in SOURCES], batch_first=True)
    mask = (padded != 0).long()
    assert torch.equal(generate(model, padded, mask, max_new_tokens=9, **options), together)
    assert torch.equal(generate(model, padded, max_new_tokens=9, **options), together)
    left = torch.stack([row.roll(int((row == 0).sum())) for row in padded])
    assert torch.equal(generate(model, left, max_new_tokens=9, **options), together)


def test_beams_are_those_of_the_search_that_translates(model: Any) -> None:
    found = generate(model, SOURCES, max_new_tokens=9, num_beams=4, num_return_sequences=2, return_scores=True)
    padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in SOURCES], batch_first=True)
    mask = (padded != 0).long()
    with torch.no_grad():
        stepper = Seq2SeqStepper(model, model.encode(padded, mask))
    best = beam_search(stepper, 4, start=1, eos=2, beam=4, n_best=2, max_length=9, early_stopping=False)
    flat = [answer for answers in best for answer in answers]
    for answer, row, length in zip(flat, found.sequences.tolist(), found.lengths.tolist(), strict=True):
        assert tuple(row[1 : 1 + length]) == answer.tokens
    assert found.scores.tolist() == pytest.approx([answer.score for answer in flat], abs=1e-5)
    assert found.logprobs.sum(1).tolist() == pytest.approx([answer.logprob for answer in flat], abs=1e-4)
    assert found.finished.tolist() == [answer.finished for answer in flat]
    targets = torch.tensor([list(answer.tokens) + [-100] * (9 - len(answer.tokens)) for answer in flat])
    rows = torch.arange(4).repeat_interleave(2)
    again = score(model, padded[rows], targets, mask[rows])
    assert again.sum(1).tolist() == pytest.approx([answer.logprob for answer in flat], abs=1e-4)


def test_answers_drawn_share_one_reading_of_the_source(model: Any) -> None:
    options = {"do_sample": True, "num_return_sequences": 5, "max_new_tokens": 6, "seed": 0, "eos_token_id": []}
    drawn = generate(model, SOURCES, **options)
    assert drawn.shape == (20, 7)
    assert len(drawn.unique(dim=0)) > 10
    cache = make(model.spec.decoder)
    assert torch.equal(generate(model, SOURCES, cache=cache, **options), drawn)
    assert {len(kept) for pair in cache._once.values() for kept in pair} == {4}


def test_B68_B70_the_answer_begins_with_the_start_token_of_the_spec(model: Any) -> None:
    for tokens, start in ((Tokens(pad=0, eos=2, start=7), 7), (Tokens(pad=0, eos=2), 0), (Tokens(0, 5, 2), 5)):
        spec = put(put(model.spec, "decoder.tokens", tokens), "encoder.tokens", tokens)
        other = build_model(spec).eval()
        assert generate(other, SOURCES, max_new_tokens=3)[:, 0].tolist() == [start] * 4


def test_a_stream_is_the_greedy_answer(model: Any) -> None:
    whole = generate(model, SOURCES[0], max_new_tokens=9)[0, 1:].tolist()
    assert list(stream(model, SOURCES[0], max_new_tokens=9)) == whole
