"""Two models that differ in one thing: the brick where they part is named, and the cause, after it was tried.

Differences are planted in the module alone (its spec does not tell), in its weights, or in its spec.
"""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oneblock
from oneblock.bricks import build_model
from oneblock.explain.causes_of_place import Opposite
from oneblock.explain.compare import compare
from oneblock.explain.guess import scopes
from oneblock.explain.variant import Variant
from oneblock.spec import Causal, Seq2Seq, SigmaNorm, Spec, get, put
from oneblock.words import ENTRIES
from oneblock.zoo import FAMILIES
from planted import PLANTS, TEXT, hidden
from specs import exact, language_model, models, pairs, readers, translator
from test_explain_trace import call_of
from test_families_cached import model_of


@pytest.mark.parametrize("name", PLANTS)
def test_N22_the_right_brick_and_cause_are_named(name: str) -> None:
    family, plant, brick, kind = PLANTS[name]
    model = model_of(family)
    call = {"input_ids": torch.tensor([TEXT])}
    if isinstance(model.spec, Seq2Seq):
        call["decoder_input_ids"] = torch.tensor([TEXT[:5]])
    found = compare(model, plant(model), call)
    assert found.first is not None
    assert found.first.brick == brick
    assert found.first.cause is not None
    assert found.first.cause.kind == kind
    assert found.first.cause.agrees


@pytest.mark.parametrize("name", FAMILIES)
def test_a_model_agrees_with_its_copy_in_every_step(name: str) -> None:
    model = model_of(name)
    call = {"input_ids": torch.tensor([TEXT])}
    if isinstance(model.spec, Seq2Seq):
        call["decoder_input_ids"] = torch.tensor([TEXT[:5]])
    found = compare(model, copy.deepcopy(model), call)
    assert found.agrees
    assert (found.output, found.rounded, found.weights) == (0.0, 0, 0)
    assert found.steps == len(oneblock.trace(model, call))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_rounding_of_how_weights_are_stored_is_no_difference(dtype: torch.dtype) -> None:
    model = exact(language_model())
    found = compare(model, copy.deepcopy(model).to(dtype), TEXT)
    assert found.agrees
    assert found.rounded > 10
    moved = copy.deepcopy(model).to(dtype)
    with torch.no_grad():
        moved.layers[1].feedforward.down.weight[3, 4] *= 1 + 4 * torch.finfo(dtype).eps
    apart = compare(model, moved, TEXT)
    assert apart.first is not None
    assert apart.first.step == "layers.1.feedforward.out"
    assert apart.weights == 1


def test_other_numbers_of_one_brick_are_said_to_be_that() -> None:
    model = exact(language_model())
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.layers[1].attention.k.weight += 0.1 * torch.randn_like(other.layers[1].attention.k.weight)
    found = compare(model, other, TEXT).first
    assert found is not None
    assert found.cause is not None
    assert (found.brick, found.cause.kind) == ("layers.1.attention.k", "weights")


@settings(max_examples=60)
@given(spec=models() | pairs() | readers(), seed=st.integers(0, 999), side=st.sampled_from(["left", "right"]))
def test_numbers_that_were_moved_are_never_taken_for_another_cause(spec: Spec, seed: int, side: str) -> None:
    torch.manual_seed(seed)
    model = exact(spec)
    call = call_of(spec, length=5, vocab=13, side=side)
    other = copy.deepcopy(model)
    name, parameter = Random(seed).choice(list(other.named_parameters()))
    with torch.no_grad():
        parameter += 0.1 * torch.randn_like(parameter)
    found = compare(model, other, call).first
    if found is not None:  # a row that no token reads changes nothing
        path = name.rpartition(".")[0]
        assert found.cause is not None
        assert (found.cause.kind, found.cause.where, found.cause.agrees) == ("weights", path, True)


def test_models_that_share_nothing_have_no_known_cause() -> None:
    found = compare(exact(language_model()), exact(language_model(), seed=1), TEXT)
    assert [one.cause for one in found.differences] == [None]
    assert found.first is not None
    assert found.first.brick == "embedding.token"
    assert found.weights > 10
    assert "No cause that we know makes embedding.token agree." in str(found)


def test_two_differences_are_followed_one_after_the_other() -> None:
    model = model_of("gpt2")
    lying = Variant.of(model, {}).with_spec("layers.*.feedforward.activation", "gelu")
    both = lying.with_spec("layers.*.attention.scale", 1.0).built()
    both.spec = model.spec
    found = compare(model, both, TEXT).differences
    assert [(one.step, one.cause and one.cause.kind, one.cause and one.cause.agrees) for one in found] == [
        ("layers.0.attention.scores", "scale", False),
        ("layers.0.feedforward.hidden", "activation", True),
    ]


def test_a_cause_that_only_the_first_model_has_is_found_by_changing_the_second() -> None:
    model = model_of("gpt2")
    wrong = hidden("layers.*.attention.scale", 1.0)(model)
    found = compare(wrong, model, TEXT).first
    assert found is not None
    assert found.cause is not None
    assert (found.cause.kind, found.cause.model, found.cause.after) == ("scale", "B", "1")
    assert found.a == pytest.approx(2 * found.b)  # head_dim 4: without a scale twice as large


def test_a_difference_without_a_known_cause_has_none() -> None:
    model = exact(language_model())
    other = copy.deepcopy(model)
    other.layers[1].feedforward.activation = torch.sin
    found = compare(model, other, TEXT).differences
    assert [(one.brick, one.cause) for one in found] == [("layers.1.feedforward", None)]


def test_a_translator_reads_a_text_for_both() -> None:
    translator = oneblock.Translator.default()
    other = copy.deepcopy(translator.model)
    other.decoder.layers[2].cross.scale = 1.0
    found = compare(translator, other, "我爱你").first
    assert found is not None
    assert found.cause is not None
    assert (found.step, found.cause.where) == ("decoder.layers.2.cross.scores", "decoder.layers.2.cross.scale")


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (language_model(), language_model(depth=3), r"lined up: layers.length is 2 in A, 3 in B"),
        (
            language_model(),
            language_model(attention={"kv_heads": 2}),
            r"layers.\*.attention.kv_heads is None in A, 2 ",
        ),
        (language_model(), language_model(block={"wiring": "post"}), r"layers.\*.wiring is 'pre' in A, 'post' in B"),
        (language_model(), translator(), "Model in A, Seq2Seq in B"),
        (
            replace(language_model(), length=9, tokens=replace(language_model().tokens, eos=2)),
            language_model(block={"norm": SigmaNorm(1e-3, bias=False), "wiring": "branch"}),
            r"layers.\*.norm is LayerNorm\(eps=1e-05, bias=True\) in A|layers.\*.wiring is 'pre' in A",
        ),
    ],
)
def test_models_that_cannot_be_lined_up_are_refused_by_their_first_difference(a: Spec, b: Spec, message: str) -> None:
    call = {"input_ids": torch.tensor([TEXT]), "decoder_input_ids": torch.tensor([TEXT])}
    one, other = exact(a), exact(b)
    if not isinstance(a, Seq2Seq):
        del call["decoder_input_ids"]
    with pytest.raises(ValueError, match=message) as caught:
        compare(one, other, call)
    assert "\n" not in str(caught.value)


def test_only_models_of_ours_and_texts_that_can_be_read() -> None:
    model = exact(language_model())
    with pytest.raises(ValueError, match=r"expected a model of ours, got Linear; `adopt`"):
        compare(model, torch.nn.Linear(2, 2), TEXT)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a text needs a tokenizer"):
        compare(model, model, "text")
    with pytest.raises(ValueError, match="empty"):
        compare(oneblock.Translator.default(), oneblock.Translator.default(), " ")


def test_every_kind_of_cause_has_words_and_is_planted_or_known() -> None:
    words = {kind.removeprefix("cause.") for kind in ENTRIES if kind.startswith("cause.")}
    assert {kind for *_, kind in PLANTS.values()} <= words
    assert len({kind for *_, kind in PLANTS.values()}) >= 15
    assert len(PLANTS) >= 20


def test_what_was_found_is_said_in_both_languages_and_as_json() -> None:
    model = exact(language_model())
    other = copy.deepcopy(model)
    other.layers[0].attention.scale = 1.0
    found = compare(model, other, TEXT)
    assert "scale (layers.0.attention.scale): A has 1/√head_dim, B behaves as 1" in str(found)
    assert "缩放（layers.0.attention.scale）：A 为 1/√head_dim，B 表现为 1" in str(found.table("zh"))
    assert found._repr_html_().count("<tr>") == 2
    said = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert said["differences"][0]["cause"]["kind"] == "scale"
    open_ = compare(model_of("llama"), PLANTS["no mask"][1](model_of("llama")), TEXT).to_dict()
    assert json.loads(json.dumps(open_, allow_nan=False))["differences"][0]["relative"] is None


def test_a_path_is_tried_on_ever_fewer_layers() -> None:
    assert scopes("layers.1.attention.scale") == ("layers.*.attention.scale", "layers.1.attention.scale")
    assert scopes("embedding.scale") == ("embedding.scale",)


def test_a_mask_read_the_wrong_way_round_is_its_complement() -> None:
    spec = put(language_model(), "layers.*.attention.mask", Opposite(Causal()))
    assert get(spec, "layers.0.attention.mask") == Opposite(Causal())
    model = build_model(spec).double().eval()
    with oneblock.listen(model, only="*.pattern") as seen:
        model(torch.tensor([[4, 5, 6]]))
    pattern = seen["layers.0.attention.pattern"][0, 0]
    assert pattern.tril().abs().max() == 0
    assert pattern[0].sum().item() == pytest.approx(1.0)
