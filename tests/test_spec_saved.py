"""Specs as JSON and back, and what they refuse: unknown keys and types by path, numbers that cannot be meant."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneblock.spec import (
    Attention,
    Block,
    Causal,
    Embedding,
    FeedForward,
    Full,
    Head,
    LayerNorm,
    Learned,
    Model,
    Relative,
    Rope,
    Seq2Seq,
    Sinusoidal,
    Window,
    from_dict,
    put,
    to_dict,
    validate,
)
from specs import attentions, blocks, feedforwards, language_model, specs, translator


@settings(max_examples=60)
@given(specs)
def test_saved_as_json_and_read_back_a_spec_is_the_same(spec: Model | Seq2Seq) -> None:
    assert from_dict(to_dict(spec)) == spec
    text = json.dumps(to_dict(spec))
    again = from_dict(json.loads(text))
    assert again == spec
    assert hash(again) == hash(spec)
    assert json.dumps(to_dict(again)) == text
    validate(again)


def keys_of(value: Any, path: str = "spec") -> list[tuple[str, str]]:
    """(path, type) of every dataclass in a spec."""
    found = [(path, type(value).__name__)] if is_dataclass(value) else []
    parts = (
        [(f.name, getattr(value, f.name)) for f in fields(value)]
        if is_dataclass(value)
        else [(str(i), part) for i, part in enumerate(value)]
        if isinstance(value, tuple)
        else []
    )
    return found + [pair for name, part in parts for pair in keys_of(part, f"{path}.{name}")]


@settings(max_examples=40)
@given(specs, st.data())
def test_an_unknown_key_anywhere_is_named_by_its_path(spec: Any, data: st.DataObject) -> None:
    path, name = data.draw(st.sampled_from([pair for pair in keys_of(spec) if pair[1] != "Every"]))
    saved = to_dict(spec)
    place = saved
    for step in path.split(".")[1:]:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place["colour"] = 1
    with pytest.raises(ValueError, match=f"^{path}.colour: {name} has no such key; "):
        from_dict(saved)


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        ({"type": "RMSNorm", "epsilon": 1}, r"spec\.epsilon: RMSNorm has no such key; did you mean eps\?"),
        ({"type": "RmsNorm"}, r"spec\.type: 'RmsNorm' is no type of a spec; did you mean RMSNorm\?"),
        ({"type": "LayerNorm", "eps": "small"}, r"spec\.eps: expected float, got 'small'"),
        ({"type": "LayerNorm", "bias": 1}, r"spec\.bias: expected bool, got 1"),
        ({"type": "Attention", "heads": True}, r"spec\.heads: expected int, got True"),
        ({"type": "Attention", "heads": 2.0}, r"spec\.heads: expected int, got 2\.0"),
        ({"type": "Attention"}, r"spec: Attention needs heads"),
        ({"type": "FeedForward", "hidden": 4, "activation": "swish"}, r"spec\.activation: expected 'relu' or 'gelu'"),
        ({"type": "Attention", "heads": 2, "mask": {"type": "LayerNorm"}}, r"spec\.mask: expected Mask, got Layer"),
        (
            {"type": "Attention", "heads": 2, "position": {"type": "Learned", "length": 3}},
            r"spec\.position: expected Rope",
        ),
        ({}, r"spec\.type: None is no type of a spec"),
        ({"type": 3}, r"spec\.type: 3 is no type of a spec"),
        ({"type": ["Model"]}, r"spec\.type: \['Model'\] is no type of a spec"),
        ({"type": "Every", "rules": [{"type": "Causal"}, 3]}, r"spec\.rules: expected"),
        ({"type": "LayerNorm", "eps": float("nan")}, r"LayerNorm\.eps: expected at least 0, got nan"),
    ],
)
def test_what_is_not_understood_is_refused(saved: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_dict(saved)


def test_a_fault_deep_inside_is_named_by_its_path() -> None:
    saved = to_dict(translator())
    saved["decoder"]["layers"][1]["cross"]["mask"] = {"type": "Causall"}
    with pytest.raises(ValueError, match=r"^spec\.decoder\.layers\.1\.cross\.mask\.type: 'Causall' is no type"):
        from_dict(saved)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Attention(0), r"Attention\.heads: expected a whole number of at least 1, got 0"),
        (lambda: Attention(2.0), r"Attention\.heads: expected a whole number of at least 1, got 2\.0"),
        (lambda: Attention(True), r"Attention\.heads: expected a whole number of at least 1, got True"),
        (lambda: Attention(4, kv_heads=0), r"Attention\.kv_heads: expected a whole number of at least 1, got 0"),
        (lambda: Attention(4, kv_heads=8), r"Attention\.heads: expected a multiple of kv_heads=8, got 4"),
        (lambda: Attention(4, head_dim=0), r"Attention\.head_dim"),
        (lambda: Attention(4, value_dim=-1), r"Attention\.value_dim"),
        (
            lambda: Attention(4, dropout=1.0),
            r"Attention\.dropout: expected a share of at least 0 and below 1",
        ),
        (lambda: Attention(4, softcap=0.0), r"Attention\.softcap: expected a number above 0 or None, got 0\.0"),
        (lambda: Head(softcap=float("nan")), r"Head\.softcap"),
        (lambda: FeedForward(0), r"FeedForward\.hidden"),
        (lambda: FeedForward(4, "swish"), r"FeedForward\.activation: 'swish' is not one of its words"),
        (lambda: FeedForward(4, dropout=-0.1), r"FeedForward\.dropout"),
        (
            lambda: Block(None, None, wiring="prenorm"),
            r"Block\.wiring: 'prenorm' is not one of its words",
        ),
        (
            lambda: Block(None, FeedForward(4), wiring="parallel"),
            r"Block\.wiring: 'parallel' runs attention and feed",
        ),
        (lambda: Block(Attention(1), FeedForward(4), Attention(1), wiring="parallel-shared"), "no cross-attention"),
        (lambda: Block(None, None, dropout=float("nan")), r"Block\.dropout"),
        (lambda: Embedding(0), r"Embedding\.vocab"),
        (lambda: Embedding(4, segments=-1), r"Embedding\.segments"),
        (
            lambda: Embedding(4, scale="sqrt"),
            r"Embedding\.scale: 'sqrt' is not one of .* did you mean sqrt_dim",
        ),
        (lambda: Window(0), r"Window\.back: expected a whole number of at least 1, got 0"),
        (lambda: Window(2, ahead=-1), r"Window\.ahead"),
        (lambda: Rope(fraction=0.0), r"Rope\.fraction: expected above 0 and at most 1, got 0\.0"),
        (lambda: Rope(layout="pairs"), r"Rope\.layout"),
        (lambda: Rope(theta=0.5), r"Rope\.theta: expected at least 1, got 0\.5"),
        (lambda: Sinusoidal("both"), r"Sinusoidal\.layout"),
        (lambda: Learned(0), r"Learned\.length"),
        (lambda: Relative(2), r"Relative\.buckets"),
        (lambda: Relative(32, 8), r"Relative\.distance: expected a whole number of at least 16, got 8"),
        (lambda: LayerNorm(-1.0), r"LayerNorm\.eps: expected at least 0, got -1\.0"),
        (lambda: Embedding(4, position="learned"), r"Embedding\.position: expected Learned or Sinusoidal or None"),
        (lambda: Embedding(4, norm=Head()), r"Embedding\.norm: expected .* or None, got Head\("),
        (lambda: Model(8, Embedding(3), (), tokens=3), r"Model\.tokens: expected Tokens, got 3"),
        (lambda: Model(8, 3, ()), r"Model\.embedding: expected Embedding, got 3"),
        (lambda: Model(8, Embedding(3), (), length="long"), r"Model\.length: expected int or None, got 'long'"),
        (lambda: Model(8, Embedding(3), (), length=0), r"Model\.length: expected a whole number of at least 1, got 0"),
        (lambda: Model(0, Embedding(3), ()), r"Model\.dim"),
        (lambda: Model(8, Embedding(3), [Block(None, None)]), r"Model\.layers: expected a tuple of blocks, got list"),
    ],
)
def test_an_object_refuses_what_it_alone_can_see(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_parts_that_do_not_fit_each_other() -> None:
    with pytest.raises(ValueError, match=r"layers\.1\.attention\.heads: expected a divisor of dim=16, got 5"):
        validate(put(language_model(), "layers.1.attention.heads", 5))
    validate(put(put(language_model(), "layers.1.attention.heads", 5), "layers.1.attention.head_dim", 4))
    with pytest.raises(ValueError, match=r"encoder\.head: expected None"):
        validate(put(translator(), "encoder.head", Head()))
    with pytest.raises(ValueError, match="use one vocabulary or share=False"):
        validate(put(translator(), "decoder.embedding.vocab", 99))
    validate(put(put(translator(), "decoder.embedding.vocab", 99), "share", False))


@pytest.mark.parametrize("spec", [attentions(), feedforwards, blocks()])
def test_parts_too_are_saved_and_read_back(spec: st.SearchStrategy[Any]) -> None:
    @settings(max_examples=30)
    @given(spec)
    def check(part: Any) -> None:
        assert from_dict(json.loads(json.dumps(to_dict(part)))) == part

    check()


def test_a_set_of_rules_is_saved_in_one_order() -> None:
    a, b = Causal() & Window(3) & Window(5, ahead=1), Window(5, ahead=1) & Causal() & Window(3)
    assert json.dumps(to_dict(a)) == json.dumps(to_dict(b))
    assert from_dict(to_dict(Full())) == Full()
