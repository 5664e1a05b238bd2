"""Writing on: the answers of another library, whatever the batch, the cache, and the pieces a prompt is read in."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from oneblock.bricks import build_model
from oneblock.cache import Cache, make
from oneblock.generate import Generated, GenerationConfig, beam_search, generate, score
from oneblock.generate.plan import plan
from oneblock.generate.walk import beams
from oneblock.spec import Causal, Learned, Window, put
from specs import language_model
from twins import PAD, VOCAB, learned, rotary, sharp

RULES = (True, False, "never")
PROMPTS = [[5, 6, 7, 8, 9], [11], [12, 13, 14], [30, 31, 32, 33]]


def batch(rows: list[list[int]], side: str = "left") -> tuple[torch.Tensor, torch.Tensor]:
    length = max(map(len, rows))
    pads = [[PAD] * (length - len(row)) for row in rows]
    filled = [pad + row if side == "left" else row + pad for pad, row in zip(pads, rows, strict=True)]
    ids = torch.tensor(filled)
    return ids, (ids != PAD).long()


def windowed(seed: int = 0) -> Any:
    spec = put(rotary()[0].spec, "layers.1.attention.mask", Causal() & Window(3))
    return sharp(build_model(spec), seed)


MODELS = {"rotary": lambda: rotary()[0], "learned": lambda: learned()[0], "windowed": windowed}


@pytest.mark.parametrize("twins", [rotary, learned])
@pytest.mark.parametrize(
    "options",
    [
        {}, {"repetition_penalty": 1.7}, {"no_repeat_ngram_size": 2}, {"bad_words_ids": [[5], [7, 8]]},
        {"suppress_tokens": [4, 9], "min_new_tokens": 3}, {"eos_token_id": [2, 9, 25, 28]},
    ],
)  # fmt: skip
def test_greedy_tokens_are_those_of_transformers(twins: Any, options: dict[str, Any]) -> None:
    ours, other = twins()
    # Their ban of n-grams looks at padding too; ours gives each prompt what it gets alone.
    prompts = [prompt * 5 for prompt in PROMPTS[:2]] if "no_repeat_ngram_size" in options else PROMPTS
    ids, mask = batch([prompt[:5] for prompt in prompts])
    expected = other.generate(ids, attention_mask=mask, max_new_tokens=15, do_sample=False, **options)
    assert torch.equal(generate(ours, ids, mask, max_new_tokens=15, **options), expected)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("alpha", [-1.0, 0.0, 1.0, 2.0])
@pytest.mark.parametrize(
    "options",
    [{}, {"repetition_penalty": 1.5, "no_repeat_ngram_size": 2}, {"eos_token_id": [2, 9, 25, 28]}],
    ids=["plain", "bans", "ends"],
)
def test_B44_beams_and_scores_are_those_of_transformers(rule: Any, alpha: float, options: dict[str, Any]) -> None:
    ours, other = rotary(1)
    ids, mask = batch(PROMPTS)
    options = options | {"num_beams": 4, "num_return_sequences": 3, "early_stopping": rule, "length_penalty": alpha}
    expected = other.generate(
        ids, attention_mask=mask, max_new_tokens=9, do_sample=False, output_scores=True, return_dict_in_generate=True,
        **options,
    )  # fmt: skip
    found = generate(ours, ids, mask, max_new_tokens=9, return_scores=True, **options)
    assert isinstance(found, Generated)
    assert torch.equal(found.sequences, expected.sequences)
    torch.testing.assert_close(found.scores, expected.sequences_scores, atol=1e-4, rtol=0)
    assert len(found.sequences.unique(dim=0)) == 12


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("width", [1, 3])
def test_B10_a_padded_batch_is_each_prompt_alone(name: str, width: int) -> None:
    model = MODELS[name]()
    options = {"max_new_tokens": 8, "num_beams": width, "repetition_penalty": 1.3, "no_repeat_ngram_size": 3}
    together = generate(model, PROMPTS, **options)
    for row, prompt in zip(together, PROMPTS, strict=True):
        alone = generate(model, prompt, **options)[0]
        new = row[5:]
        assert new[: len(alone) - len(prompt)].tolist() == alone[len(prompt) :].tolist()
        assert set(new[len(alone) - len(prompt) :].tolist()) <= {PAD}
    assert len({tuple(row) for row in together[:, 5:].tolist()}) == 4


def test_B08_padding_may_stand_on_either_side_or_be_found_by_its_id() -> None:
    model = learned()[0]
    expected = generate(model, PROMPTS, max_new_tokens=6)
    for side in ("left", "right"):
        ids, mask = batch(PROMPTS, side)
        assert torch.equal(generate(model, ids, mask, max_new_tokens=6), expected)
        assert torch.equal(generate(model, ids, max_new_tokens=6), expected)
        assert torch.equal(
            generate(model, ids.masked_fill(mask == 0, -7), mask, max_new_tokens=6)[:, 5:], expected[:, 5:]
        )
    assert torch.equal(generate(model, [torch.tensor(row) for row in PROMPTS], max_new_tokens=6), expected)


@settings(max_examples=25)
@given(
    st.sampled_from(list(MODELS)), st.sampled_from(["growing", "static", "rolling", None]),
    st.none() | st.integers(1, 6), st.integers(1, 2), st.integers(0, 99),
)  # fmt: skip
def test_B58_B59_caches_and_chunks_change_nothing(
    name: str, cache: Any, chunk: int | None, width: int, seed: int
) -> None:
    if cache == "rolling" and name != "windowed":
        cache = "growing"
    model = MODELS[name]()
    generator = torch.Generator().manual_seed(seed)
    prompts = [torch.randint(4, VOCAB, (n,), generator=generator) for n in (7, 2, 4)]
    found = generate(model, prompts, cache=cache, prefill_chunk=chunk, num_beams=width, max_new_tokens=6)
    if width > 1:
        assert torch.equal(found, generate(model, prompts, num_beams=width, max_new_tokens=6))
        return
    for row, prompt in zip(found[:, 7:].tolist(), prompts, strict=True):  # without any cache: all again at every step
        ids = prompt[None]
        for token in row:
            assert token in (int(model(ids).logits[0, -1].argmax()), PAD)
            ids = torch.cat([ids, torch.tensor([[token]])], 1)
            if token == PAD:
                break


def test_B56_garbage_in_a_static_cache_and_a_cache_used_again_change_nothing() -> None:
    model = windowed()
    expected, other = (generate(model, rows, max_new_tokens=9) for rows in (PROMPTS, PROMPTS[:2]))
    cache = make(model.spec, 32)
    generate(model, PROMPTS, max_new_tokens=9, cache=cache)
    for store in cache.stores.values():
        for tensor in store.kept.values():
            tensor.fill_(1e4)
    for kept in (cache, make(model.spec)):
        for _ in range(2):
            assert torch.equal(generate(model, PROMPTS, max_new_tokens=9, cache=kept), expected)
            assert torch.equal(generate(model, PROMPTS[:2], max_new_tokens=9, cache=kept), other)


def test_B55_a_second_text_in_a_cache_stands_behind_the_first_and_two_caches_cannot_be_joined() -> None:
    model, ids = rotary()[0], torch.randint(4, VOCAB, (1, 7))
    whole, parts = make(model.spec), make(model.spec)
    model(ids, cache=whole)
    for part in (ids[:, :4], ids[:, 4:]):
        model(part, cache=parts)
    for path, store in whole.stores.items():
        for name, tensor in store.kept.items():
            torch.testing.assert_close(parts.stores[path].kept[name], tensor)
    assert not {"join", "cat", "extend", "__add__"} & set(dir(Cache))


def test_B47_one_beam_is_greedy() -> None:
    model = rotary()[0]
    for options in ({}, {"no_repeat_ngram_size": 2}, {"eos_token_id": [2, 9, 25, 28]}):
        config = GenerationConfig(max_new_tokens=9, **options)
        found = [answers[0] for answers in beams(plan(model, PROMPTS, None, config))]
        greedy = generate(model, PROMPTS, generation_config=config, return_scores=True)
        for answer, row, length in zip(found, greedy.sequences[:, 5:].tolist(), greedy.lengths, strict=True):
            assert answer.tokens == tuple(row[:length])
        if not options:
            assert greedy.scores.tolist() == pytest.approx([answer.score for answer in found], abs=1e-5)


@pytest.mark.parametrize("width", [1, 3])
def test_B46_length_counts_new_tokens_with_the_end(width: int) -> None:
    model = rotary()[0]
    long = generate(model, PROMPTS, max_new_tokens=9, num_beams=width, return_scores=True)
    assert long.sequences.shape == (4, 5 + 9)
    ends = long.sequences[:, 7].unique().tolist()
    found = generate(
        model, PROMPTS, max_new_tokens=9, num_beams=width, eos_token_id=ends, return_scores=True, length_penalty=2.0
    )
    for row, length, finished in zip(
        found.sequences[:, 5:].tolist(), found.lengths.tolist(), found.finished, strict=True
    ):
        assert finished == (row[length - 1] in ends)
        assert finished or length == 9
        assert set(row[length:]) <= {PAD}
        assert not set(row[: length - 1]) & set(ends)
    assert (found.logprobs != 0).sum(1).tolist() == found.lengths.tolist()
    torch.testing.assert_close(found.scores, found.logprobs.sum(1) / found.lengths**2, atol=1e-5, rtol=1e-5)
    assert found.finished.any()


def test_logprobs_are_the_models_own_and_a_seed_repeats_draws() -> None:
    model = rotary()[0]
    options = {"do_sample": True, "top_k": 5, "temperature": 1.5, "num_return_sequences": 3, "max_new_tokens": 7}
    one, two = (generate(model, PROMPTS, seed=4, return_scores=True, **options) for _ in range(2))
    assert torch.equal(one.sequences, two.sequences)
    assert not torch.equal(one.sequences, generate(model, PROMPTS, seed=5, **options))
    row = one.sequences[0][None]
    torch.testing.assert_close(score(model, row)[:, 5:], one.logprobs[:1])
    torch.manual_seed(1)
    first = generate(model, PROMPTS, **options)
    torch.manual_seed(1)
    assert torch.equal(first, generate(model, PROMPTS, **options))
    assert not torch.equal(first, generate(model, PROMPTS, **options))


def test_beams_may_be_drawn_and_cold_ones_are_the_best() -> None:
    model = rotary()[0]
    options = {"num_beams": 3, "do_sample": True, "max_new_tokens": 6}
    drawn = [generate(model, PROMPTS, seed=seed, **options) for seed in range(4)]
    assert len({tuple(x.flatten().tolist()) for x in drawn}) > 1
    assert torch.equal(drawn[0], generate(model, PROMPTS, seed=0, **options))
    best = generate(model, PROMPTS, num_beams=3, max_new_tokens=6)
    assert torch.equal(generate(model, PROMPTS, temperature=0.0, **options), best)


class Fork:
    """Token 0 is likely and token 1 is not; what comes after either is all the same."""

    def __init__(self) -> None:
        self.logits = [torch.tensor([0.0, -30.0, -torch.inf]), torch.zeros(3)]

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.logits.pop(0).expand(len(tokens), 3)

    def reorder(self, rows: torch.Tensor, sentences: torch.Tensor | None) -> None:
        pass


def test_drawn_beams_are_as_likely_as_their_whole_beginnings() -> None:
    seen = set()
    for seed in range(20):
        draw = torch.Generator().manual_seed(seed)
        found = beam_search(Fork(), 1, start=0, eos=[], beam=2, n_best=2, max_length=2, draw=draw)[0]
        assert [answer.tokens[0] for answer in found] == [0, 0]
        assert found[0].logprob == pytest.approx(-torch.tensor(3.0).log().item())
        seen.add(found[0].tokens[1])
    assert seen == {0, 1, 2}


def test_a_model_in_training_is_put_back_and_drops_nothing_meanwhile() -> None:
    spec = put(language_model(), "layers.*.dropout", 0.5)
    model = build_model(spec).train()
    found = [generate(model, [[5, 6]], max_new_tokens=6) for _ in range(2)]
    assert torch.equal(*found)
    assert all(module.training for module in model.modules())


def test_a_learned_position_table_is_a_hard_limit_and_is_used_to_its_end() -> None:
    model = sharp(build_model(put(learned()[0].spec, "embedding.position", Learned(9))))
    assert generate(model, [[5, 6, 7], [8]], max_new_tokens=7).shape == (2, 10)
    with pytest.raises(ValueError, match="the model has 9 positions, 3 tokens and 7 of the answer need more"):
        generate(model, [[5, 6, 7], [8]], max_new_tokens=8)
    with pytest.raises(ValueError, match="the model has 9 positions"):
        generate(model, [list(range(4, 14))], max_new_tokens=1)


def test_a_model_without_such_a_table_is_warned_about() -> None:
    model = build_model(put(rotary()[0].spec, "length", 8)).eval()
    with pytest.warns(UserWarning, match="trained on at most 8"):
        assert generate(model, [[5, 6, 7]], max_new_tokens=8).shape == (1, 11)
