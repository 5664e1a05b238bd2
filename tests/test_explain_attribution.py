"""The parts of a logit sum to it, in every family and every wiring, and each is what that part wrote."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oneblock
from oneblock.explain import attribute, attribution, patch, trace
from oneblock.spec import Head, Pool, Seq2Seq, Spec, Transform, put
from oneblock.zoo import FAMILIES
from specs import exact, language_model, models, pairs, translator
from test_explain_trace import call_of
from test_families_cached import VOCAB, model_of


def head(spec: Spec) -> Any:
    return spec.decoder.head if isinstance(spec, Seq2Seq) else spec.head


def uncapped(spec: Spec) -> float:
    """The factor of logits."""
    return head(spec).scale or 1.0


def summed(model: Any, call: dict[str, Any], position: int, row: int) -> None:
    """Parts of every kind sum to the logit that the model gives, before its cap."""
    t = trace(model, call)
    stack = "decoder." if isinstance(model.spec, Seq2Seq) else ""
    final, out = t[f"{stack}final"].tensor[row, position], model.get_submodule(f"{stack}head").out
    for per in ("sublayer", "head"):
        for token, against in ((5, None), (5, 7)):
            found = attribution(t, token, against, position, row=row, per=per)
            logits = uncapped(model.spec) * out(final)
            logit = logits[token] - (0 if against is None else logits[against])
            assert sum(found.parts.values()) == pytest.approx(logit.item(), rel=1e-9, abs=1e-9)
            assert found.logit == pytest.approx(logit.item(), rel=1e-9, abs=1e-9)
            assert abs(found.rest) < 1e-9


@pytest.mark.parametrize("name", FAMILIES)
def test_the_parts_sum_to_the_logit_in_every_family(name: str) -> None:
    torch.manual_seed(0)
    model = model_of(name)
    if head(model.spec).transform is not None:
        with pytest.raises(ValueError, match="the head bends the stream before its product"):
            attribute(trace(model, call_of(model.spec)))
        return
    for row, position in ((0, -1), (1, 0)):
        summed(model, call_of(model.spec, vocab=VOCAB), position, row)


@settings(max_examples=60)
@given(spec=models() | pairs(), seed=st.integers(0, 99))
def test_the_parts_sum_to_the_logit_of_any_spec(spec: Spec, seed: int) -> None:
    torch.manual_seed(seed)
    path = "decoder.head.transform" if isinstance(spec, Seq2Seq) else "head.transform"
    model = exact(put(spec, path, None))
    call = call_of(model.spec, length=5, vocab=13)
    call.pop("labels", None)
    summed(model, call, 1, 0)


def test_a_part_is_what_it_wrote_in_a_model_without_norms() -> None:
    spec = language_model(norm=None, block={"wiring": "bare"})
    model = exact(spec)
    t = trace(model, [4, 5, 6])
    direction = model.head.out.weight[7]
    found = attribution(t, 7)
    for part, step in (("layers.0.attention", "layers.0.attention.out"), ("embedding.token", "embedding.token")):
        assert found.parts[part] == pytest.approx((t[step].tensor[0, -1] @ direction).item())
    heads = attribution(t, 7, per="head").parts
    names = [f"layers.0.attention.{part}" for part in (0, 1, 2, 3, "bias")]
    assert sum(heads[name] for name in names) == pytest.approx(found.parts["layers.0.attention"])


def test_by_default_the_likeliest_token_at_the_last_position() -> None:
    t = trace(exact(language_model()), [4, 5, 6])
    best = int(t["head.logits"].tensor[0, -1].argmax())
    assert attribution(t).token == best
    assert attribution(t).parts == attribution(t, best, position=2).parts
    assert attribution(t, position=0).logit == pytest.approx(t["head.logits"].tensor[0, 0].max().item())


def test_what_lifts_all_tokens_alike_drops_out_against_another() -> None:
    t = trace(exact(language_model()), [4, 5, 6])
    one, other, both = (attribution(t, *tokens).parts for tokens in ((4,), (5,), (4, 5)))
    for name, value in both.items():
        assert value == pytest.approx(one[name] - other[name])


def test_the_table_says_the_sum_in_both_languages() -> None:
    t = trace(oneblock.Translator.default(), "我爱你")
    found = attribution(t)
    table, chinese = attribute(t), attribute(t, lang="zh")
    assert table.columns == ("part", "contribution")
    assert sum(table.column("contribution")) == pytest.approx(found.logit, rel=1e-5)
    assert f"the logit is {found.logit:.4f}" in table.notes[0]
    assert f"得分为 {found.logit:.4f}" in chinese.notes[0]


def test_edits_of_what_is_added_still_sum_and_edits_of_the_stream_are_refused() -> None:
    model = exact(language_model())
    t = trace(model, [4, 5, 6], edit={"layers.0.attention.out": torch.zeros_like})
    assert attribution(t).parts["layers.0.attention"] == 0
    other = trace(model, [7, 8, 9])
    moved = trace(model, [4, 5, 6], edit=patch(other, "layers.0.stream"))
    with pytest.raises(ValueError, match="was the stream of this trace edited") as caught:
        attribute(moved)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"token": 13}, "expected an id of the vocabulary of 13, got 13"),
        ({"token": 1, "against": -1}, "expected an id of the vocabulary of 13, got -1"),
        ({"position": 3}, "expected one of 3 tokens and 1 texts, got 3, 0"),
        ({"row": 1}, "expected one of 3 tokens and 1 texts, got -1, 1"),
        ({"per": "layer"}, "expected 'sublayer' or 'head', got 'layer'"),
    ],
)
def test_bad_input_is_one_line(options: dict[str, Any], message: str) -> None:
    t = trace(exact(language_model()), [4, 5, 6])
    with pytest.raises(ValueError, match=message):
        attribute(t, **options)


def test_models_without_a_head_for_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match="expected a head for tokens, got Pool"):
        attribute(trace(exact(language_model(head=Pool())), [4, 5]))
    with pytest.raises(ValueError, match="the head bends the stream"):
        attribute(trace(exact(language_model(head=Head(transform=Transform()))), [4, 5]))
    with pytest.raises(ValueError, match="expected a trace of a model of ours"):
        attribute(trace(torch.nn.Linear(2, 2), torch.ones(1, 2)))
    assert attribution(trace(exact(translator()), call_of(translator(), vocab=13))).parts["layers.1.cross"] != 0
