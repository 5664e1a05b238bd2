"""What generate, stream, score, embed, fill and classify refuse: in one line, before anything is computed."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy
import pytest
import torch

from oneblock.bricks import build_model
from oneblock.cache import make
from oneblock.generate import GenerationConfig, classify, embed, fill, generate, perplexity, score, stream
from oneblock.generate.checks import CHECKS, checked
from oneblock.spec import Classify, Embedding, Full, Learned, Pool, put
from specs import VOCAB, language_model, translator


@pytest.fixture(scope="module")
def causal() -> Any:
    return build_model(language_model()).eval()


@pytest.fixture(scope="module")
def masked() -> Any:
    return build_model(language_model(attention={"mask": Full()})).eval()


@pytest.mark.parametrize(
    "prompts", [[], [[]], [[5], []], torch.zeros(1, 0, dtype=torch.long), torch.zeros(0, 3, dtype=torch.long)], ids=str
)
def test_B76_an_empty_prompt(causal: Any, prompts: Any) -> None:
    with pytest.raises(ValueError, match="empty prompt"):
        generate(causal, prompts)


def test_B76_a_prompt_that_is_all_padding(causal: Any) -> None:
    with pytest.raises(ValueError, match=r"prompt 2 \(an empty prompt\)"):
        generate(causal, torch.full((2, 3), 5), torch.tensor([[1, 1, 1], [0, 0, 0]]))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens: expected a whole number from 1 to 1,000,000, got 0"),
        ({"max_new_tokens": -1}, "max_new_tokens"),
        ({"max_new_tokens": 10**9}, "max_new_tokens"),
        ({"max_new_tokens": 2.5}, "max_new_tokens"),
        ({"min_new_tokens": 30}, "at most max_new_tokens=20"),
        ({"num_return_sequences": 0}, "num_return_sequences"),
        ({"num_return_sequences": 10**9, "do_sample": True}, "num_return_sequences"),
        ({"num_return_sequences": 2}, "greedy search has one answer"),
        ({"num_return_sequences": 3, "num_beams": 2}, "at most num_beams=2, got 3"),
        ({"num_beams": 0}, "num_beams"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": float("inf")}, "temperature"),
        ({"top_k": -1}, "top_k"),
        ({"top_p": 0.0}, "top_p: expected a finite number above 0 and at most 1, got 0.0"),
        ({"top_p": 1.5}, "top_p"),
        ({"min_p": -0.1}, "min_p"),
        ({"typical_p": 0.0}, "typical_p"),
        ({"repetition_penalty": 0.0}, "repetition_penalty"),
        ({"no_repeat_ngram_size": -1}, "no_repeat_ngram_size"),
        ({"length_penalty": float("inf")}, "length_penalty"),
        ({"early_stopping": "always"}, 'expected True, False or "never"'),
        ({"stop_strings": ["x"] * 10_000}, "stop_strings: expected up to 1,024"),
        ({"stop_strings": [""]}, "stop_strings"),
        ({"stop_strings": ["x"]}, "pass tokenizer="),
        ({"bad_words_ids": [[]]}, "bad_words_ids"),
        ({"suppress_tokens": [99]}, "expected ids of the vocabulary of 13, got 99"),
        ({"eos_token_id": 99}, "eos_token_id: expected ids of the vocabulary of 13, got 99"),
        ({"num_beam": 3}, "did you mean num_beams"),
        ({"cache": "statik"}, "cache: expected"),
        ({"cache": "rolling"}, '"rolling" is for windowed attention'),
        ({"prefill_chunk": 0}, "prefill_chunk"),
    ],
    ids=str,
)
def test_B77_numbers_have_bounds_that_are_checked_first(causal: Any, options: dict[str, Any], says: str) -> None:
    called = []
    handle = causal.register_forward_pre_hook(lambda *_: called.append(1))
    with pytest.raises(ValueError, match=says.replace("(", r"\(")):
        generate(causal, [[5, 6]], **options)
    handle.remove()
    assert not called


@pytest.mark.parametrize(
    ("prompts", "mask", "says"),
    [
        ([[5, VOCAB]], None, "expected ids of the vocabulary of 13, got 13"),
        ([[-1, 5]], None, "got -1"),
        ("text", None, "encode the text first"),
        (torch.full((1, 3), 0.5), None, "expected whole numbers"),
        (torch.full((1, 2, 3), 5), None, "expected whole numbers"),
        (torch.full((1, 3), 5), torch.ones(1, 2), r"attention_mask: expected \(1, 3\)"),
        ([[5], [6, 7]], torch.ones(2, 2), "leave it out"),
        ([[5, 6]], [[1, 1, 1]], r"attention_mask: expected \(1, 2\)"),
        (torch.full((1, 2), 5), "11", "attention_mask: expected numbers"),
        (torch.full((1, 2), 5), [[1], [1, 1]], "attention_mask: expected numbers"),
        ([[5.0, 6.0]], None, "expected whole numbers"),
        ([[True, False]], None, "expected whole numbers"),
        ([True], None, "expected whole numbers"),
        ([5.0], None, "expected whole numbers"),
        ([[[5, 6]]], None, "expected whole numbers"),
        ([5, [6]], None, "expected whole numbers"),
        ([["a"]], None, "expected whole numbers"),
        ([[10**24]], None, "expected whole numbers"),
        ([[5 + 0j]], None, "expected whole numbers"),
        (torch.ones(1, 2, dtype=torch.bool), None, "expected whole numbers"),
        (torch.tensor(5), None, "expected whole numbers"),
        (5, None, "expected token ids, got int"),
        ({5: 6}, None, "expected token ids, got dict"),
        (None, None, "expected token ids, got NoneType"),
    ],
    ids=str,
)
def test_prompts_that_are_none(causal: Any, masked: Any, prompts: Any, mask: Any, says: str) -> None:
    for read in (generate, stream, score):
        with pytest.raises(ValueError, match=says) as refused:
            read(causal, prompts, attention_mask=mask)
        assert len(str(refused.value).splitlines()) == 1
    with pytest.raises(ValueError, match=says):
        embed(masked, prompts, mask)


def test_a_mask_may_be_a_list_and_ids_an_array(causal: Any) -> None:
    ids, mask = torch.tensor([[5, 6, 7], [0, 8, 9]]), torch.tensor([[1, 1, 1], [0, 1, 1]])
    expected = generate(causal, ids, mask)
    for prompts in (ids, ids.numpy(), ids.tolist(), list(ids), ids.int()):
        assert torch.equal(generate(causal, prompts, mask.tolist()), expected)
        assert torch.equal(generate(causal, prompts, mask.bool().numpy()), expected)
        assert torch.equal(score(causal, prompts, attention_mask=mask.tolist()), score(causal, ids, None, mask))
        assert torch.equal(perplexity(causal, prompts, None, mask.tolist()), perplexity(causal, ids, None, mask))
    assert torch.equal(perplexity(causal, [[5, 6, 7], [8, 9]]), perplexity(causal, ids, None, mask))
    assert torch.equal(generate(causal, [5, 6], [1, 1]), generate(causal, [5, 6]))


WRONG = {
    "max_new_tokens": (2.0, "many", True, [3]),
    "min_new_tokens": (1.0, "1"),
    "do_sample": ("yes", 1),
    "temperature": ("hot", True, 10**400, [1.0]),
    "top_k": (2.0, True, "5"),
    "top_p": ("0.9", False),
    "min_p": ("0.1", True),
    "typical_p": ("0.9",),
    "repetition_penalty": ("2", [1.0]),
    "no_repeat_ngram_size": (2.0, True),
    "bad_words_ids": ([1], 5, "ab", [["a"]], [[1.0]], [[True]], {5: [6]}),
    "suppress_tokens": (5, "5", [1.5], ["a"], [[5]], [True], [torch.ones(9, 9)]),
    "vocab": (0, 2.0, True),
    "num_beams": (True, 2.0, "2"),
    "num_return_sequences": (True, 1.0),
    "length_penalty": ("1", True),
    "early_stopping": (1, "Never"),
    "eos_token_id": ("a", 1.0, ["a"], [1.5], True, [[2]]),
    "pad_token_id": ("a", 1.0, [3], 10**24),
    "stop_strings": (5, [5], [""], "", {"a": "b"}, b"a"),
    "seed": (1.5, 10**24, -1, "1", True, 2**64),
    "prefill_chunk": (True, 2.0, "2"),
    "compile": ("nosuch", 5, "eagr"),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_value_of_another_kind_is_one_line(causal: Any, name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{name}: ") as refused:
        generate(causal, [[5, 6]], **{name: value})
    said = str(refused.value)
    assert len(said.splitlines()) == 1
    assert len(said) < 200
    assert name == "compile" or " expected " in said


def test_every_choice_has_a_check_and_its_default_passes() -> None:
    for field in fields(GenerationConfig):
        assert field.name in CHECKS
        assert field.name in WRONG
        assert field.default is None or checked(field.name, field.default) == field.default
        assert GenerationConfig(**{field.name: None}) == GenerationConfig()


def test_none_is_the_default_and_numbers_may_be_numpys(causal: Any) -> None:
    nothing: dict[str, Any] = {"temperature": None, "top_p": None, "typical_p": None, "repetition_penalty": None}
    draws: dict[str, Any] = {"do_sample": True, "seed": 3, "max_new_tokens": 9}
    assert torch.equal(generate(causal, [[5]], **draws, **nothing), generate(causal, [[5]], **draws))
    config = GenerationConfig(top_k=numpy.int64(3), temperature=numpy.float32(0.5), eos_token_id=torch.tensor([2, 3]))
    assert config == GenerationConfig(top_k=3, temperature=0.5, eos_token_id=[2, 3])
    assert GenerationConfig(seed=2**64 - 1, do_sample=True).seed == 2**64 - 1
    huge = GenerationConfig(max_new_tokens=2, do_sample=True, temperature=10**300, seed=2**64 - 1)
    assert generate(causal, [[5]], generation_config=huge).shape == (1, 3)


def test_words_that_never_come_are_of_the_vocabulary(causal: Any) -> None:
    for words in ([[99]], [[5, 99]], [[-1, 5]]):
        with pytest.raises(ValueError, match=f"bad_words_ids: expected ids of the vocabulary of {VOCAB}, got"):
            generate(causal, [[5]], bad_words_ids=words)


def test_a_config_is_no_dictionary(causal: Any) -> None:
    with pytest.raises(ValueError, match="generation_config: expected a GenerationConfig, got dict"):
        generate(causal, [[5]], generation_config={"num_beams": 2})


def test_each_model_names_the_verb_that_fits(causal: Any, masked: Any) -> None:
    pair = build_model(translator())
    labels = build_model(put(masked.spec, "head", Classify(labels=3)))
    pooled = build_model(put(masked.spec, "head", Pool()))
    ids = torch.tensor([[5, 6]])
    for call, model, says in (
        (generate, masked, "an encoder that sees both sides"),
        (generate, labels, "a classifier of 3 labels; use classify"),
        (generate, pooled, "use embed"),
        (generate, torch.nn.Linear(2, 2), "Linear, which has no spec"),
        (score, masked, "use fill or embed"),
        (classify, causal, "a causal language model; use generate or score"),
        (embed, torch.nn.Linear(2, 2), "Linear"),
    ):
        with pytest.raises(ValueError, match=says):
            call(model, ids)
    sorts = build_model(put(pair.spec, "decoder.head", Classify(labels=2)))
    with pytest.raises(ValueError, match="an encoder-decoder that is a classifier of 2 labels"):
        generate(sorts, ids)
    for model, says in ((causal, "a causal language model"), (pair, "an encoder-decoder"), (labels, "a classifier")):
        with pytest.raises(ValueError, match=says):
            fill(model, ids, 4)
    with pytest.raises(ValueError, match="expected a gap"):
        fill(masked, ids, 4)
    with pytest.raises(ValueError, match="top_k"):
        fill(masked, ids, 5, top_k=0)
    with pytest.raises(ValueError, match="pooling"):
        embed(masked, ids, pooling="max")
    with pytest.raises(ValueError, match="got none; pass targets="):
        score(pair, ids)
    for wrong in (ids[0], ids.float(), ids[:0], ids - 1000, ids + 1000):
        with pytest.raises(ValueError, match=r"^targets: expected ids [^\n]*$"):
            score(pair, ids, wrong)
    with pytest.raises(ValueError, match="join them"):
        score(causal, ids, ids)


def test_a_stream_is_of_one_answer(causal: Any) -> None:
    for prompts, options in (
        ([[5], [6]], {}),
        ([5], {"num_beams": 2}),
        ([5], {"do_sample": True, "num_return_sequences": 2}),
    ):
        with pytest.raises(ValueError, match="stream: expected one prompt and one answer"):
            stream(causal, prompts, **options)


def test_a_cache_of_another_model(causal: Any) -> None:
    with pytest.raises(ValueError, match="cache: expected one for 2 layers, got one for 3"):
        generate(causal, [[5]], cache=make(language_model(depth=3)))


def test_a_config_is_changed_by_options() -> None:
    model = build_model(language_model())
    config = GenerationConfig(max_new_tokens=3)
    assert generate(model, [[5]], generation_config=config, max_new_tokens=2, eos_token_id=[]).shape == (1, 3)
    assert config.max_new_tokens == 3


def test_what_is_scored_must_fit_the_model() -> None:
    model = build_model(language_model(length=8, embedding=Embedding(VOCAB, Learned(8)))).eval()
    with pytest.raises(ValueError, match=f"ids of the vocabulary of {VOCAB}"):
        score(model, torch.tensor([[5, VOCAB]]))
    with pytest.raises(ValueError, match="the model has 8 positions"):
        score(model, torch.full((1, 9), 5))
