"""A trace names every step, and other arithmetic than the bricks' gives the same numbers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oneblock
from oneblock.explain import Trace, memory, trace
from oneblock.explain.cause import CAUSES
from oneblock.generate import Pipeline, Translator
from oneblock.spec import Causal, Head, Learned, Model, Seq2Seq, Spec, Window, put
from oneblock.words import say
from oneblock.zoo import FAMILIES
from specs import exact, language_model, models, pairs, translator
from test_families_cached import VOCAB, model_of


def call_of(spec: Spec, length: int = 6, vocab: int = VOCAB, side: str = "right") -> dict[str, Any]:
    """A batch of two texts, one of them padded; labels where there is a head for tokens."""
    ids, mask = torch.randint(5, vocab, (2, length)), torch.ones(2, length, dtype=torch.long)
    mask[1, slice(0, 2) if side == "left" else slice(length - 2, length)] = 0
    call: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
    if isinstance(spec, Seq2Seq):
        labels = torch.randint(5, vocab, (2, 5))
        call |= {"decoder_input_ids": torch.randint(5, vocab, (2, 5))}
        return call | ({"labels": labels} if isinstance(spec.decoder.head, Head) else {})
    return call | ({"labels": ids} if isinstance(spec.head, Head) else {})


def right(t: Trace, model: Any, call: dict[str, Any]) -> None:
    """Every step is its own arithmetic; the replay is the end; the output is that of an untraced pass."""
    found = t.check()
    assert found.keys() == {step.path for step in t}
    worst = max(found, key=lambda path: found[path])
    assert found[worst] < 1e-10, worst
    assert t.replayed() < 1e-9
    with torch.no_grad():
        plain = model(**call)
    for name in ("logits", "loss", "pooled"):
        if getattr(plain, name, None) is not None:
            torch.testing.assert_close(getattr(t.output, name), getattr(plain, name), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", FAMILIES)
def test_N22_every_family_is_checked_by_other_arithmetic(name: str, side: str) -> None:
    torch.manual_seed(0)
    model = model_of(name)
    call = call_of(model.spec, side=side)
    right(trace(model, call), model, call)


@settings(max_examples=150)
@given(spec=models() | pairs(), seed=st.integers(0, 999), side=st.sampled_from(["left", "right"]))
def test_N22_any_spec_is_checked_by_other_arithmetic(spec: Spec, seed: int, side: str) -> None:
    torch.manual_seed(seed)
    model = exact(spec)
    call = call_of(spec, length=5, vocab=13, side=side)
    call.pop("labels", None)
    right(trace(model, call), model, call)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_step_has_words_operands_and_a_place_in_the_source(name: str) -> None:
    model = model_of(name)
    for step in trace(model, call_of(model.spec)):
        for lang in ("en", "zh"):
            said = step.say(lang)
            assert said.name
            assert said.purpose
            assert said.formula
            assert said.latex
        assert step.symbol == say(step.kind).symbol
        assert step.operands
        assert len(step.dims) == step.tensor.ndim, step.path
        assert step.where.endswith(tuple("0123456789"))
        assert {operand.source for operand in step.operands.values()} <= {"step", "weight", "input", "number"}


def test_a_changed_number_is_found_where_it_was_changed() -> None:
    model = exact(language_model())
    wrong = trace(model, {"input_ids": torch.tensor([[4, 5, 6]])})
    wrong["layers.0.attention.pattern"].tensor[0, 0, 2, 0] += 0.01
    found = {path for path, error in wrong.check().items() if error > 1e-6}
    assert found == {"layers.0.attention.pattern", "layers.0.attention.z"}


def test_names_globs_and_the_names_of_another_library() -> None:
    t = trace(exact(language_model()), [4, 5, 6])
    assert t["layers.0.attention.pattern"].shape == (1, 4, 3, 3)
    assert len(t["layers.*.attention.pattern"]) == 2
    assert t["blocks.1.attn.hook_pattern"] is t["layers.1.attention.pattern"]
    assert t["blocks.0.hook_resid_post"] is t["layers.0.stream#2"]
    with pytest.raises(KeyError, match=r"no step 'layers.0.attention.patern'; did you mean layers.0.attention.pattern"):
        t["layers.0.attention.patern"]


def test_statistics_count_what_is_not_finite() -> None:
    t = trace(exact(language_model()), [4, 5, 6])
    masked = t["layers.0.attention.masked"]
    assert masked.statistics.nonfinite == 4 * 3
    kept = masked.tensor[masked.tensor.isfinite()]
    assert masked.statistics.max == kept.max().item()
    assert masked.statistics.norm == pytest.approx(kept.norm().item())


def test_masks_carry_their_cause() -> None:
    spec = put(language_model(), "layers.*.attention.mask", Causal() & Window(2))
    mask = torch.tensor([[0, 1, 1, 1]])
    t = trace(exact(spec), {"input_ids": torch.tensor([[0, 4, 5, 6]]), "attention_mask": mask})
    cause = t["layers.0.attention.masked"].operands["hidden"].value[0]
    named = [[CAUSES[at] for at in row] for row in cause.tolist()]
    assert named == [
        ["padding", "causal", "causal", "causal"],
        ["padding", "seen", "causal", "causal"],
        ["padding", "seen", "seen", "causal"],
        ["padding", "window", "seen", "seen"],
    ]
    cross = trace(exact(translator()), call_of(translator(), vocab=13))["decoder.layers.0.cross.masked"]
    assert cross.operands["hidden"].value[1].tolist() == [[0, 0, 0, 0, 3, 3]] * 5


def test_gradients_are_those_of_autograd() -> None:
    model = exact(language_model())
    ids = torch.tensor([[4, 5, 6, 7]])
    t = trace(model, ids, target=ids, gradients=True)
    model(ids, labels=ids).loss.backward()
    assert t.gradients is not None
    assert t.gradients.steps["layers.0.attention.pattern"].shape == (1, 4, 4, 4)
    weight = model.layers[0].feedforward.up
    norm = sum(p.grad.square().sum() for p in weight.parameters()) ** 0.5
    assert t.gradients.bricks["layers.0.feedforward.up"] == pytest.approx(norm.item())
    step = t.gradients.steps["layers.1.stream#2"]
    moved = trace(model, {"input_ids": ids, "labels": ids}, edit={"layers.1.stream#2": lambda x: x + 1e-6 * step})
    assert (moved.output.loss - t.output.loss).item() == pytest.approx(1e-6 * step.square().sum().item(), rel=1e-3)


def test_an_edit_is_named_and_everything_after_it_follows() -> None:
    model = exact(language_model())
    t = trace(model, [4, 5, 6], edit={"layers.0.attention.pattern": torch.zeros_like})
    assert t.edited == {"layers.0.attention.pattern"}
    assert "layers.0.attention.pattern" not in t.check()
    assert max(t.check().values()) < 1e-10
    assert not t["layers.0.attention.z"].tensor.any()
    assert t.replayed() < 1e-9


def test_N06_how_much_each_sublayer_adds() -> None:
    t = trace(exact(language_model()), [4, 5, 6])
    found = t.ratios()
    x, branch = t["embedding.embedded"].tensor, t["layers.0.attention.out"].tensor
    assert found["layers.0.stream"] == pytest.approx((branch.norm() / x.norm()).item())
    assert len(found) == 4


def test_a_translator_reads_texts_and_writes_its_own_target() -> None:
    t = trace(Translator.default(), "我爱你")
    assert t.tokens["decoder."][0] == "<s>"
    assert "".join(t.tokens["decoder."]).replace("▁", " ").removeprefix("<s> ").startswith("I love you")
    assert t["loss"].tensor.item() < 0.5
    assert max(t.check().values()) < 1e-5
    taught = trace(Translator.default(), "我爱你", target="You love me.")
    assert taught["loss"].tensor > t["loss"].tensor


@pytest.mark.parametrize(
    ("inputs", "target", "message"),
    [
        ("a text", None, "a text needs a tokenizer"),
        (torch.ones(2, 3), None, "input_ids: expected whole numbers"),
        (torch.ones(1, 2, 3).long(), None, "input_ids: expected whole numbers"),
        ([], None, "input_ids: expected at least one token"),
        ([1, 99], None, "input_ids: expected ids of the vocabulary of 13, got 99"),
        ({"input_ids": torch.tensor([[1, -1]])}, None, "input_ids: expected ids of the vocabulary of 13, got -1"),
        ({}, None, "input_ids: expected token ids, got NoneType"),
        ([1, 2], [1, 2, 3], "target: expected ids of shape"),
        ([1, 2], "text", "target: expected ids of shape"),
    ],
)
def test_bad_input_is_one_line(inputs: Any, target: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        trace(exact(language_model()), inputs, target)
    assert "\n" not in str(caught.value)


def test_prompts_of_several_lengths_are_padded_and_a_text_beyond_the_positions_is_refused() -> None:
    model = exact(language_model())
    t = trace(model, [[4, 5, 6], [7]])
    assert t["layers.0.attention.masked"].operands["hidden"].value[1, 2].tolist() == [0, 3, 3]
    assert max(t.check().values()) < 1e-10
    short = exact(put(language_model(), "embedding.position", Learned(4)))
    with pytest.raises(ValueError, match="input_ids: the model has 4 positions, 5 tokens need more; shorten"):
        trace(short, [4, 5, 6, 7, 8])


def test_what_is_missing_is_said() -> None:
    with pytest.raises(ValueError, match="an encoder-decoder needs a target"):
        trace(exact(translator()), [4, 5])
    with pytest.raises(ValueError, match="gradients: expected a target"):
        trace(exact(language_model()), [4, 5], gradients=True)
    with pytest.raises(ValueError, match="trace: expected a model"):
        trace("gpt2", [4, 5])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="empty"):
        trace(Translator.default(), " ")


def test_a_trace_that_does_not_fit_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    model = exact(language_model())
    call = {"input_ids": torch.zeros(1, 9, dtype=torch.long), "attention_mask": torch.ones(1, 9, dtype=torch.long)}
    t = trace(model, call)
    assert memory.size(model.spec, call, torch.float64) == sum(step.tensor.nbytes for step in t)
    monkeypatch.setattr(memory, "LITTLE", 0)
    monkeypatch.setattr(memory, "available", lambda: 1000)
    with pytest.raises(ValueError, match=r"^trace: the steps of 1 x 9 tokens need 0\.0 GiB, 0\.0 GiB are free; give"):
        trace(model, call)


def test_public_names() -> None:
    assert oneblock.trace is trace
    assert Pipeline is oneblock.Pipeline
    assert isinstance(language_model(), Model)
