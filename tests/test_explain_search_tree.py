"""A search that is looked at finds what it finds alone, and every line of its tree is accounted for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oneblock
from oneblock.explain import beam_tree, draws
from oneblock.explain.search_tree import planned, tree
from oneblock.generate import GenerationConfig, Pipeline, generate
from oneblock.generate.filters import filters
from oneblock.spec import Tokens
from specs import exact, language_model, translator

TEXT = [4, 5, 6]


def writer(seed: int, eos: int | None = 2) -> Any:
    return exact(language_model(tokens=Tokens(0, 1, eos)), seed=seed).float()


def starred(table: Any) -> list[int]:
    return [int(row[2]) for row in table if row[-1] == "★"]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 999),
    beam=st.integers(2, 5),
    length=st.integers(1, 6),
    penalty=st.sampled_from([0.0, 1.0, -1.0, 2.0]),
    early=st.sampled_from([True, False, "never"]),
    pair=st.booleans(),
)
def test_the_starred_path_is_what_beam_search_finds(
    seed: int, beam: int, length: int, penalty: float, early: Any, pair: bool
) -> None:
    model = exact(translator(), seed=seed).float() if pair else writer(seed)
    options = {"num_beams": beam, "max_new_tokens": length, "length_penalty": penalty, "early_stopping": early}
    alone = generate(model, torch.tensor([TEXT]), return_scores=True, **options)
    table = beam_tree(model, TEXT, **options)
    new = alone.sequences[0, (1 if pair else 3) :][: int(alone.lengths[0])].tolist()
    assert starred(table) == new
    assert f"{alone.scores[0].item():.4f}" in table.notes[0]


@settings(max_examples=40)
@given(seed=st.integers(0, 999), beam=st.integers(2, 4))
def test_every_branch_is_its_parents_and_the_models(seed: int, beam: int) -> None:
    model = writer(seed)
    made, _ = planned(model, TEXT, {"num_beams": beam, "max_new_tokens": 4, "early_stopping": "never"})
    branches, best = tree(made)
    live: dict[int, tuple[int, ...]] = {0: ()}
    sums: dict[tuple[int, ...], float] = {(): 0.0}
    for step in range(max(branch.step for branch in branches) + 1):
        here = [branch for branch in branches if branch.step == step]
        assert [branch.total for branch in here] == sorted((branch.total for branch in here), reverse=True)
        following = {}
        for branch in here:
            assert live[branch.parent] == branch.written
            ids = torch.tensor([[*TEXT, *branch.written]])
            logprob = model(ids).logits[0, -1].log_softmax(-1)[branch.token].item()
            assert branch.logprob == pytest.approx(logprob, abs=1e-4)
            whole = (*branch.written, branch.token)
            sums[whole] = sums[branch.written] + branch.logprob
            assert branch.total == pytest.approx(sums[whole], abs=1e-4)
            if branch.fate == "live":
                following[branch.filling[0]] = whole
            if branch.fate in ("ended", "late"):
                assert branch.token == 2
        live = following  # type: ignore[assignment]
    ended = [branch for branch in branches if branch.fate in ("ended", "limit")]
    scored = {(*one.written, one.token): one.total / (one.step + 1) for one in ended}
    assert max(scored, key=lambda whole: scored[whole]) == best.tokens


def test_the_tree_of_the_translator_is_its_own_search() -> None:
    translator_ = oneblock.Translator.default()
    for text in ("我爱你", "他很高。", "I love you."):
        table = beam_tree(translator_, text)
        best = [row for row in table if row[-1] == "★"][-1]
        assert best[6] == translator_(text)[0].text
        assert f"{translator_(text)[0].score:.4f}" in table.notes[0]
    assert beam_tree(translator_, "我爱你", lang="zh").columns[1] == "来自"


def test_looking_changes_no_answer_of_a_pipeline() -> None:
    own = oneblock.Translator.default()
    pipeline = Pipeline(own.model, own.tokenizer)
    answer = pipeline.generate("我爱你", num_beams=3, max_new_tokens=12)[0][0]
    best = [row for row in beam_tree(pipeline, "我爱你", num_beams=3, max_new_tokens=12) if row[-1] == "★"]
    assert len(best) == len(answer.tokens)
    assert best[-1][6] == answer.text


@pytest.mark.parametrize(
    "options",
    [
        {"do_sample": True, "temperature": 0.7},
        {"do_sample": True, "top_k": 3},
        {"do_sample": True, "top_p": 0.6, "temperature": 2.0},
        {"do_sample": True, "repetition_penalty": 1.5, "min_p": 0.05, "suppress_tokens": [7]},
        {},
    ],
)
def test_probabilities_are_the_softmax_of_filtered_scores(options: dict[str, Any]) -> None:
    model = writer(3, eos=None)
    options = options | {"max_new_tokens": 4, "seed": 5}
    table = draws(model, TEXT, top=13, **options)
    ids = torch.tensor([TEXT])
    config = GenerationConfig(**options)
    for step in range(4):
        scores = model(ids).logits[:, -1].detach()
        plain = scores[0].softmax(-1)
        for change in filters(config, [], 3, 13):
            scores = change(scores, ids)
        left = scores[0].softmax(-1)
        here = [row for row in table if row[0] == step]
        assert len(here) == 13
        for _, _, token, probability, after, _ in here:
            assert probability == pytest.approx(plain[token].item(), abs=1e-5)
            assert after == pytest.approx(left[token].item(), abs=1e-5)
        assert sum(row[4] for row in here) == pytest.approx(1, abs=1e-5)
        assert [row[4] for row in here] == sorted((row[4] for row in here), reverse=True)
        drawn = [row[2] for row in here if row[-1] == "★"]
        assert len(drawn) == 1
        ids = torch.cat([ids, torch.tensor([drawn])], 1)
    assert ids.equal(generate(model, torch.tensor([TEXT]), **options))


def test_the_drawn_token_is_shown_also_when_it_is_not_among_the_best() -> None:
    model = writer(3, eos=None)
    options = {"do_sample": True, "temperature": 50.0, "max_new_tokens": 20, "seed": 1}
    table = draws(model, TEXT, top=1, **options)
    new = generate(model, torch.tensor([TEXT]), **options)[0, 3:].tolist()
    assert [row[2] for row in table if row[-1] == "★"] == new
    assert len(table) > 20


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: beam_tree(m, TEXT, num_beams=1), "expected at least 2 beams and no drawing"),
        (lambda m: beam_tree(m, TEXT, do_sample=True), "expected at least 2 beams and no drawing"),
        (lambda m: beam_tree(m, [TEXT, TEXT]), "expected one text, got 2"),
        (lambda m: beam_tree(m, "text"), "a text needs a tokenizer"),
        (lambda m: beam_tree(m, [99]), "expected ids of the vocabulary of 13, got 99"),
        (lambda m: draws(m, TEXT, num_beams=2), "expected one beam, one answer and a top of at least 1"),
        (lambda m: draws(m, TEXT, top=0), "expected one beam, one answer and a top of at least 1"),
        (lambda m: draws(m, TEXT, top_q=1), "top_q is no choice of it; did you mean top_p"),
    ],
)
def test_bad_input_is_one_line(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        call(writer(0))
    assert "\n" not in str(caught.value)
