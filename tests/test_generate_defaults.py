"""What a model's folder says about tokens is the default of a pipeline; its habits of sampling are not read."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import oneblock
from oneblock.generate import GenerationConfig, Pipeline
from oneblock.generate.mode import evaluating
from oneblock.generate.rule import Rule
from oneblock.spec import Tokens, put
from oneblock.text import Tokenizer
from specs import language_model
from twins import sharp

FILE = "generation_config.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tokenizer = Tokenizer.train(["low lower lowest", "the cat sat"] * 2, vocab=280)
    spec = put(language_model(tokens=Tokens(0, 1, 2)), "embedding.vocab", len(tokenizer) + 7)
    oneblock.save(sharp(oneblock.build(spec)).float(), tmp_path)
    tokenizer.save(tmp_path)
    return tmp_path


def said(folder: Path, **choices: Any) -> Pipeline:
    (folder / FILE).write_text(json.dumps(choices), "utf-8")
    return Pipeline.load(folder)


def tokens(pipeline: Pipeline, **options: Any) -> tuple[int, ...]:
    """An answer's tokens, all different."""
    return pipeline.generate("low", **({"max_new_tokens": 8, "no_repeat_ngram_size": 1} | options))[0][0].tokens


def test_a_file_says_which_tokens_end_and_which_never_come(folder: Path) -> None:
    plain = tokens(Pipeline.load(folder))
    assert len(set(plain)) == 8
    assert tokens(said(folder, eos_token_id=plain[2])) == plain[:3]
    assert tokens(said(folder, eos_token_id=[9, plain[1]])) == plain[:2]
    assert plain[0] not in tokens(said(folder, suppress_tokens=[plain[0]]))
    assert tokens(said(folder, bad_words_ids=[[plain[0], plain[1]]]))[:2] != plain[:2]
    assert said(folder, pad_token_id=5).defaults == {"pad_token_id": 5}


def test_a_choice_counts_more_than_a_file(folder: Path) -> None:
    plain = tokens(Pipeline.load(folder))
    pipeline = said(folder, eos_token_id=plain[2], suppress_tokens=[plain[0]])
    assert tokens(pipeline, suppress_tokens=[], eos_token_id=[]) == plain
    assert tokens(pipeline, suppress_tokens=[], eos_token_id=plain[4]) == plain[:5]
    assert tokens(pipeline, config=GenerationConfig(suppress_tokens=[], eos_token_id=plain[1])) == plain[:2]
    assert "".join(pipeline.stream("low", suppress_tokens=[], no_repeat_ngram_size=1)) == pipeline.decode(plain[:2])


def test_habits_of_sampling_and_searching_are_not_read(folder: Path) -> None:
    plain = tokens(Pipeline.load(folder), no_repeat_ngram_size=None, max_new_tokens=None)
    habits = {"do_sample": True, "temperature": 9.0, "top_p": 0.5, "num_beams": 4, "max_length": 2, "max_new_tokens": 1}
    pipeline = said(folder, **habits, repetition_penalty=5.0, no_repeat_ngram_size=1, forced_eos_token_id=2)
    assert pipeline.defaults == {}
    assert tokens(pipeline, no_repeat_ngram_size=None, max_new_tokens=None) == plain


def test_ids_that_the_model_lacks_are_left_out(folder: Path) -> None:
    pipeline = said(folder, eos_token_id=999, pad_token_id=-1, suppress_tokens=[999, -1], bad_words_ids=[[5], [6, 999]])
    assert pipeline.defaults == {"pad_token_id": -1, "bad_words_ids": [[5]]}
    assert len(tokens(pipeline)) == 8


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", ":1: expected JSON"),
        ("[]", ": expected an object of choices, got list"),
        ('{"eos_token_id": "a"}', ": eos_token_id: expected a token id or a list of them, got 'a'"),
        ('{"bad_words_ids": [1]}', ": bad_words_ids: expected a list of lists"),
        ('{"suppress_tokens": 5}', ": suppress_tokens: expected a list of token ids, got 5"),
        ('{"pad_token_id": [1.5]}', ": pad_token_id: expected a whole number"),
    ],
)
def test_a_damaged_file_is_one_line_that_names_it(folder: Path, text: str, says: str) -> None:
    (folder / FILE).write_text(text, "utf-8")
    with pytest.raises(ValueError, match=f"{FILE}{says}".replace("[", r"\[")) as refused:
        Pipeline.load(folder)
    assert len(str(refused.value).splitlines()) == 1


def test_one_place_switches_dropout_off_and_one_judges_a_rule() -> None:
    for room in ("reading", "translator", "writing"):
        assert import_module(f"oneblock.generate.{room}").evaluating is evaluating
    for value in ("always", 1):
        for make in (lambda x: GenerationConfig(early_stopping=x), lambda x: Rule((2,), 1, 1, 1.0, x)):
            with pytest.raises(ValueError, match=r'^early_stopping: expected True, False or "never", got '):
                make(value)
