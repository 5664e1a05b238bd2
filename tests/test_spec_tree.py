"""Specs are trees: walked, read and changed in places, compared, and turned into each other."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oneblock.spec as spec_room
from oneblock.spec import (
    Causal,
    Change,
    LayerNorm,
    LongRope,
    Model,
    RMSNorm,
    Rope,
    Window,
    apply,
    diff,
    get,
    put,
    walk,
)
from oneblock.tree import from_patch, to_patch
from specs import blocks, language_model, models, norms, specs, translator


@settings(max_examples=60)
@given(specs, specs)
def test_a_diff_of_any_two_turns_one_into_the_other_both_ways(a: Any, b: Any) -> None:
    assert apply(a, diff(a, b)) == b
    assert apply(b, diff(b, a)) == a
    assert diff(a, a) == ()


@settings(max_examples=60)
@given(specs, specs)
def test_a_patch_in_json_turns_one_into_the_other(a: Any, b: Any) -> None:
    patch = json.loads(json.dumps(to_patch(diff(a, b))))
    assert from_patch(patch) == diff(a, b)
    assert apply(a, patch) == apply(a, from_patch(patch)) == b


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({}, "patch: expected changes: list and no more, got nothing"),
        ({"changes": 3}, "patch: expected changes: list and no more, got changes: int"),
        ({"changes": [], "more": 1}, "got changes: list, more: int"),
        ({"changes": [3]}, "patch.changes.0: expected path, before and after, got int"),
        ({"changes": [{"path": "dim", "after": 8}]}, "expected path, before and after, got after, path"),
        ({"changes": [{"path": 1, "before": 8, "after": 8}]}, "patch.changes.0: expected path"),
        ({"changes": [{"path": "dim", "before": 16, "after": "wide"}]}, "Model.dim: expected a whole number"),
        ({"changes": [{"path": "norm", "before": None, "after": {"type": "LayerNrom"}}]}, "did you mean LayerNorm?"),
        ({"changes": [{"path": "layers.*.wirin", "before": "pre", "after": "post"}]}, "did you mean wiring?"),
        (
            {
                "changes": [
                    {"path": "layers.0.attention.position", "before": None, "after": {"type": "Learned", "length": 9}}
                ]
            },
            "spec.layers.0.attention.position: expected Rope",
        ),
    ],
)
def test_what_is_no_patch_is_refused_in_one_line(patch: Any, message: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+$") as refused:
        apply(language_model(), patch)
    assert message in str(refused.value)


def test_combined_masks_and_lists_of_numbers_change_whole() -> None:
    def stretched(by: float, back: int) -> Model:
        position = Rope(scaling=LongRope((1.0, by), (2.0, by), 64))
        return language_model(attention={"position": position, "mask": Causal() & Window(back)})

    a, b = stretched(1.5, 3), stretched(2.0, 4)
    assert [change.path for change in diff(a, b)] == [
        "layers.*.attention.mask",
        "layers.*.attention.position.scaling.short",
        "layers.*.attention.position.scaling.long",
    ]
    assert apply(a, json.loads(json.dumps(to_patch(diff(a, b))))) == b


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[Model, Model]:
    """Two models that differ in a few places, one of them perhaps with other layers."""
    a = draw(models())
    layers = draw(st.permutations(a.layers))[: draw(st.integers(1, 3))]
    b = put(a, "layers", tuple(layers) + tuple(draw(st.lists(blocks(), max_size=1))))
    changes = st.tuples(st.sampled_from(["layers.*.norm", "layers.0.norm"]), norms)
    for path, value in draw(st.lists(changes, max_size=2)):
        b = put(b, path, value)
    return a, draw(st.sampled_from([b, put(b, "dim", 32)]))


@settings(max_examples=60)
@given(neighbours())
def test_a_diff_of_neighbours_is_exact_and_says_only_what_differs(pair: tuple[Model, Model]) -> None:
    a, b = pair
    changes = diff(a, b)
    assert apply(a, changes) == b
    assert apply(b, diff(b, a)) == a
    for change in changes:
        assert change.before != change.after or type(change.before) is not type(change.after)


@settings(max_examples=60)
@given(specs)
def test_walk_names_every_part_by_the_path_that_get_takes(spec: Any) -> None:
    seen = list(walk(spec))
    assert seen[0] == ("", spec)
    assert len({path for path, _ in seen}) == len(seen)
    for path, value in seen:
        assert get(spec, path) == value
        assert put(spec, path, value) == spec


def test_a_change_that_is_alike_in_every_layer_is_said_once() -> None:
    a = language_model(depth=3)
    assert diff(a, put(a, "layers.*.norm", RMSNorm())) == (Change("layers.*.norm", LayerNorm(), RMSNorm()),)
    assert diff(a, put(a, "layers.1.norm", RMSNorm())) == (Change("layers.1.norm", LayerNorm(), RMSNorm()),)


def test_other_numbers_of_layers_are_one_change() -> None:
    assert diff(language_model(depth=2), language_model(depth=5)) == (Change("layers.length", 2, 5),)
    assert apply(language_model(depth=5), (Change("layers.length", 5, 2),)) == language_model(depth=2)


def test_the_context_length_is_not_the_number_of_layers() -> None:
    a, b = language_model(length=None), language_model(length=8, depth=3)
    assert [change.path for change in diff(a, b)] == ["layers.length", "length"]
    assert apply(a, diff(a, b)) == b


def test_heads_and_groups_change_at_once() -> None:
    a = language_model(attention={"heads": 4, "kv_heads": 2})
    b = language_model(attention={"heads": 9, "kv_heads": 3})
    assert apply(a, diff(a, b)) == b


def test_put_takes_globs_values_and_functions() -> None:
    spec = translator(depth=3)
    assert put(spec, "*.layers.*.attention.heads", 2).decoder.layers[2].attention.heads == 2
    assert put(spec, "encoder.layers.[01].dropout", 0.5).encoder.layers[2].dropout == 0.0
    doubled = put(spec, "encoder.layers.*.feedforward.hidden", lambda hidden: 2 * hidden)
    assert {layer.feedforward.hidden for layer in doubled.encoder.layers} == {48}
    assert len(put(spec, "decoder.layers.length", 7).decoder.layers) == 7
    assert put(spec, "decoder.layers.length", lambda n: n - 1).decoder.layers == spec.decoder.layers[:2]
    assert spec == translator(depth=3)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("layers.0.attention.head", r"no 'head' in Attention; did you mean heads\?"),
        ("layers.7", "no '7' in tuple"),
        ("layer.0", r"no 'layer' in Model; did you mean layers\?"),
        ("dim.x", "no 'x' in int"),
    ],
)
def test_a_path_that_leads_nowhere_is_named_with_the_nearest(path: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        get(language_model(), path)
    with pytest.raises(ValueError, match="no '"):
        put(language_model(), path, 1)
    with pytest.raises(ValueError, match="no '"):
        apply(language_model(), (Change(path, 0, 1),))


def test_specs_are_frozen_hashable_and_print_themselves() -> None:
    block = language_model().layers[0]
    with pytest.raises(FrozenInstanceError):
        block.dropout = 0.5  # type: ignore[misc]
    assert len({block, language_model().layers[1], block}) == 1


@settings(max_examples=60)
@given(specs)
def test_every_spec_says_the_python_that_makes_it(spec: Any) -> None:
    assert eval(repr(spec), vars(spec_room).copy()) == spec
