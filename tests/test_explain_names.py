"""Names of steps: TransformerLens's, a hint for a wrong one; edits and targets that would not do what they seem to."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

import oneblock
from oneblock.explain import trace
from oneblock.explain.aliases import ALIASES
from oneblock.explain.placeless import placeless
from oneblock.tree import TYPES
from oneblock.zoo import FAMILIES
from specs import exact, language_model, translator
from test_explain_shown import made_of
from test_explain_trace import call_of
from test_families_cached import model_of


def small(name: str, **sizes: Any) -> Any:
    return oneblock.build(oneblock.named(name, dim=8, depth=2, heads=2, vocab=9, **sizes)).eval()


def test_each_alias_names_a_step() -> None:
    found = {name: trace(small(name), [1, 2, 3]) for name in ("gpt2", "llama", "neox")}
    for alias in ALIASES:
        alias = alias.replace("N", "1")
        there = {name for name, t in found.items() if any(reached(t, alias))}
        assert there >= ({"gpt2"} if "_rot_" not in alias and "linear" not in alias else {"llama"}), alias


def reached(found: Any, name: str) -> list[str]:
    try:
        return [found[name].path]
    except KeyError:
        return []


def test_the_stream_by_its_other_names() -> None:
    serial, parallel = trace(small("gpt2"), [1, 2, 3]), trace(small("neox"), [1, 2, 3])
    for found in (serial, parallel):
        assert found["blocks.0.hook_resid_pre"].path == "embedding.embedded"
        assert found["blocks.1.hook_resid_pre"] is found["blocks.0.hook_resid_post"]
        post = found["blocks.1.hook_resid_post"].tensor
        assert torch.equal(post, [s for s in found if s.kind == "step.stream"][-1].tensor)
    assert serial["blocks.0.hook_resid_post"].path == "layers.0.stream#2"
    assert [s.path for s in serial["blocks.*.attn.hook_pattern"]] == [f"layers.{n}.attention.pattern" for n in (0, 1)]


def test_before_and_after_a_rotation_have_different_names() -> None:
    found = trace(small("llama"), [1, 2, 3])
    plain, turned = found["blocks.0.attn.hook_q"].tensor, found["blocks.0.attn.hook_rot_q"].tensor
    heads = plain.unflatten(-1, (2, -1)).transpose(1, 2)
    assert torch.allclose(heads[:, :, 0], turned[:, :, 0])
    assert not torch.allclose(heads[:, :, 1], turned[:, :, 1])
    assert found["blocks.0.mlp.hook_pre"].path == "layers.0.feedforward.gate"
    assert found["blocks.0.mlp.hook_pre_linear"].path == "layers.0.feedforward.up"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("layers.0.attention.patern", "did you mean layers.0.attention.pattern?"),
        ("zzz", "names are like layers.0.attention.pattern, * matches anything"),
        ("*.foo", "names are like layers.0.attention.pattern"),
        ("blocks.0.hook_foo", "no step 'blocks.0.hook_foo'"),
    ],
)
def test_a_wrong_name_gets_one_short_line(name: str, said: str) -> None:
    with pytest.raises(KeyError) as raised:
        trace(small("gpt2"), [1, 2])[name]
    assert said in raised.value.args[0]
    assert len(raised.value.args[0]) < 160


def test_a_number_is_no_name() -> None:
    with pytest.raises(TypeError, match=r"expected the name of a step, got 0; trace\.steps"):
        trace(small("gpt2"), [1, 2])[0]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"layers.0.attention.patern": torch.zeros_like}, "did you mean layers.0.attention.pattern?"),
        ({"nothing.*": torch.zeros_like}, "'nothing.*' is the name of no step that can be replaced"),
        ({"layers.0.attention.q": torch.zeros_like}, "'layers.0.attention.q' is the name of no step that can be"),
        ({"*.pattern": lambda x: x[0]}, "edit: *.pattern: expected a tensor of shape (1, 2, 2, 2) in its place"),
        ({"*.z": lambda _: None}, "expected a tensor of shape (1, 2, 2, 4) in its place, got NoneType"),
    ],
)
def test_an_edit_that_would_do_nothing_or_something_else_is_refused(edit: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        trace(small("gpt2"), [1, 2], edit=edit)


def test_the_ends_of_two_stacks_are_edited_under_their_names() -> None:
    model = exact(translator())
    found = trace(model, {"input_ids": [5, 6]}, [5, 2], edit={"encoder.final": torch.zeros_like})
    assert not found["encoder.final"].tensor.any()
    assert found["decoder.final"].tensor.any()
    assert found.edited == {"encoder.final"}


@pytest.mark.parametrize(
    "name", ["vaswani", "marian", "bert", "gpt2", "neox", "llama", "mixtral", "qwen3_moe", "gemma2", "olmo2", "t5"]
)
def test_each_step_that_can_be_replaced_can_be_replaced_and_the_rest_still_agrees(name: str) -> None:
    whole = made_of(name)[0]
    model, call = model_of(name), call_of(whole.spec)
    done = set()
    for step in whole:
        if "layers." in step.path and "layers.0." not in step.path:
            continue
        try:
            found = trace(model, call, edit={step.path: lambda x: x / 2})
        except ValueError as error:
            if "the name of no step that can be replaced" not in str(error):
                raise
            continue
        done.add(step.path.rpartition(".")[2].partition("#")[0])
        assert [other.path for other in found] == [other.path for other in whole]
        assert found.edited == {step.path}
        assert max(found.check().values()) < 1e-6, step.path
        if step.kind not in ("step.scores", "step.masked"):  # a column of these may shift by the same, and −∞ / 2 is −∞
            assert not torch.equal(found[step.path].tensor, step.tensor)
    assert {"token", "embedded", "query", "masked", "pattern", "z", "out", "hidden", "final", "logits"} <= done


def test_a_target_is_ids_of_the_vocabulary_in_one_row_or_many() -> None:
    model = small("gpt2")
    assert trace(model, [1, 2, 3], [1, 2, 3]).steps[-1].kind == "step.loss"
    assert trace(model, [1, 2, 3], [[1, 2, -100]]).steps[-1].kind == "step.loss"
    with pytest.raises(ValueError, match=re.escape("target: expected 0 to 8 (-100: no answer there), got 9")):
        trace(model, [1, 2], [1, 9])
    with pytest.raises(ValueError, match=re.escape("target: expected ids of shape (1, 2), as the input's")):
        trace(model, [1, 2], [1, 2, 3])


def test_a_trace_and_a_step_print_in_one_line() -> None:
    found = trace(small("gpt2"), [1, 2])
    assert "\n" not in repr(found)
    assert len(repr(found)) < 100
    assert "tensor(" not in repr(found.steps[3])


@pytest.mark.parametrize("name", FAMILIES)
def test_the_brick_of_a_step_is_a_type_of_spec(name: str) -> None:
    assert {step.brick for step in made_of(name)[0]} <= set(TYPES)


@pytest.mark.parametrize("name", ["gpt2", "llama", "phi3", "t5", "bert"])
def test_N23_without_positions_a_token_has_the_same_query_wherever_it_stands(name: str) -> None:
    model, ids = small(name), [3, 4, 3]
    inputs: Any = {"input_ids": [ids]} if name == "t5" else ids
    both = [trace(one, inputs, ids if name == "t5" else None) for one in (model, placeless(model))]
    stack = "encoder." if name == "t5" else ""
    first, last = ([t[f"{stack}layers.0.attention.masked"].tensor[0, :, at, :1] for at in (0, 2)] for t in both)
    assert torch.allclose(*last, atol=1e-5)
    assert not torch.allclose(*first, atol=1e-5)
    with pytest.raises(ValueError, match="told none; there is nothing to leave out"):
        placeless(placeless(model))


def test_scores_of_a_placeless_model_share_its_weights() -> None:
    model = exact(language_model())
    bare = placeless(model)
    assert all(torch.equal(x, model.state_dict()[name]) for name, x in bare.state_dict().items())
