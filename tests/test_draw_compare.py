"""What tells two architectures apart: every change in one line, in both languages, few lines."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneblock.draw.brief import TOPICS as BRIEF
from oneblock.draw.brief import brief
from oneblock.draw.compare import TOPICS, compare, topic
from oneblock.draw.price import remembered
from oneblock.spec import (
    Attention,
    Block,
    Causal,
    Classify,
    Embedding,
    FeedForward,
    Full,
    Head,
    LayerNorm,
    Learned,
    Model,
    MoE,
    Relative,
    RMSNorm,
    Rope,
    Seq2Seq,
    Spec,
    Tokens,
    Whole,
    Window,
    diff,
    put,
)
from oneblock.words import LANGUAGES
from oneblock.zoo import named
from specs import language_model, specs, translator

CHINESE = re.compile(r"[\u4e00-\u9fff]")
OLD = Model(
    768,
    Embedding(50_257, Learned(1024), dropout=0.1),
    (Block(Attention(12, bias=True), FeedForward(3072, "gelu_tanh", bias=True)),) * 12,
    norm=LayerNorm(),
    head=Head(tied=True),
    length=1024,
)
NEW = Model(
    4096,
    Embedding(128_256),
    (Block(Attention(32, 8, position=Rope(500_000.0)), FeedForward(14_336, "silu", gated=True), norm=RMSNorm()),) * 32,
    norm=RMSNorm(),
    length=8192,
)


def said(before: Spec, after: Spec, lang: str = "en") -> dict[str, str]:
    return {line.topic: line.said for line in compare(before, after, lang)}


@settings(max_examples=100)
@given(specs, specs, st.sampled_from(LANGUAGES))
def test_every_change_stands_in_one_line_and_lines_are_few(a: Any, b: Any, lang: str) -> None:
    lines = compare(a, b, lang)
    last = [spec.decoder if isinstance(spec, Seq2Seq) and type(a) is not type(b) else spec for spec in (a, b)]
    assert sorted(map(repr, diff(*last))) == sorted(repr(change) for line in lines for change in line.changes)
    assert len(lines) <= len(TOPICS)
    assert bool(lines) == (a != b)
    for line in lines:
        assert " → " in line.said
        assert "\n" not in line.said
        assert bool(CHINESE.search(line.name)) == (lang == "zh")
        assert line.topic == "sizes" or bool(CHINESE.search(line.why)) == (lang == "zh")
        assert line.topic == "sizes" or line.why


@settings(max_examples=30)
@given(specs)
def test_equal_specs_have_no_lines(spec: Any) -> None:
    assert compare(spec, spec) == ()


def test_N19_seven_years_are_eight_lines() -> None:
    assert said(OLD, NEW) == {
        "position": "Learned position (1,024 positions) → Rotary position (θ = 500,000)",
        "norm": "Layer norm · ε = 1e-05 → RMS norm · ε = 1e-05",
        "attention": "keys and values per head → 32 heads share 8 for keys and values",
        "feedforward": "GELU, by tanh → gated SiLU",
        "biases": "Attention, Feed-forward → none",
        "head": "Output head, tied → Output head · a matrix of its own",
        "training": "Dropout 0.1 (embedding) → none",
        "sizes": "dimension 768 → 4,096 · layers 12 → 32 · heads 12 × 64 → 32 × 128 · hidden 3,072 → 14,336 · "
        "vocabulary 50,257 → 128,256 · context 1,024 → 8,192",
    }
    assert said(OLD, NEW, "zh")["feedforward"] == "GELU（tanh 近似） → 门控 SiLU"


def test_N14_an_encoder_that_goes_is_said_and_the_decoder_is_compared() -> None:
    old = named("vaswani")
    lines = said(old, NEW)
    assert lines["structure"].startswith(
        "encoder and decoder → one stream; Attention + Cross-attention + Feed-forward →"
    )
    assert lines["wiring"] == "Post-norm → Pre-norm + final norm"
    assert said(NEW, old)["structure"].startswith("one stream → encoder and decoder")
    purposes = {line.topic: line.why for line in compare(old, NEW)}
    assert "a prompt takes the place of the source" in purposes["structure"]


@pytest.mark.parametrize(
    ("path", "value", "topic_", "expected"),
    [
        ("layers.*.attention.mask", Full(), "mask", "causal → full"),
        ("layers.*.attention.mask", Causal() & Window(4096), "mask", "causal → causal · window 4,096"),
        ("layers.1.attention.mask", Causal() & Window(8), "mask", "→ causal (1 of 2 layers), causal · window 8 (1 of"),
        ("layers.*.wiring", "post", "wiring", "Pre-norm + final norm → Post-norm + final norm"),
        ("norm", None, "wiring", "Pre-norm + final norm → Pre-norm"),
        ("layers.*.attention.kv_heads", 1, "attention", "keys and values per head → one key head"),
        ("layers.*.attention.qk_norm", Whole(RMSNorm()), "attention", "Norm of q and k (Norm over all heads: RMS norm"),
        ("layers.*.attention.bias", False, "biases", "Attention, Feed-forward → Feed-forward"),
        ("layers.*.feedforward", MoE(FeedForward(24, "silu", True), 8), "feedforward", "→ 2 of 8 experts (gated SiLU)"),
        ("head", Classify(2), "head", "a matrix of its own → Classifier · First token · 2 labels"),
        ("position_bias", Relative(), "position", "→ Relative position bias (32 / 128), shared by all layers"),
        ("embedding.scale", "sqrt_dim", "embedding", "none → × √d"),
        ("layers.*.dropout", 0.1, "training", "none → Dropout 0.1 (sublayers)"),
        ("tokens", Tokens(0, stop=(3, 4)), "tokens", "none → pad 0, stop 3, 4"),
        ("layers.*.attention.kv_heads", 4, "attention", "layers.*.attention.kv_heads none → 4"),
    ],
)  # fmt: skip
def test_a_change_is_said_in_its_topic(path: str, value: Any, topic_: str, expected: str) -> None:
    lines = said(language_model(), put(language_model(), path, value))
    assert expected in lines.pop(topic_)
    assert not set(lines) - {"biases", "norm"}


def test_what_both_streams_share_is_said_once_and_what_one_has_by_its_name() -> None:
    spec = translator()
    both = put(spec, "*.layers.*.norm", RMSNorm())
    assert said(spec, both) == {"norm": "Layer norm · ε = 1e-05 → RMS norm · ε = 1e-05"}
    assert said(spec, replace(both, encoder=spec.encoder))["norm"].startswith("Decoder: Layer norm")
    assert said(spec, replace(spec, share=False)) == {
        "embedding": "one token matrix for both → a token matrix for each"
    }


def test_every_place_of_a_spec_has_a_topic() -> None:
    for change in diff(OLD, NEW):
        assert topic(change) in TOPICS
        assert topic(change) != "structure"


@settings(max_examples=40)
@given(specs, st.sampled_from(list(BRIEF)), st.sampled_from(LANGUAGES))
def test_any_spec_is_said_in_brief(spec: Any, name: str, lang: str) -> None:
    assert brief(name, spec, lang)


def test_the_cache_is_said_with_its_windows_and_its_source() -> None:
    local = put(NEW, "layers.[0-9].attention.mask", Causal() & Window(512))
    assert remembered(local, "en") == "131,072 bytes per token, 40,960 of them for the last 512 tokens only"
    assert remembered(named("vaswani"), "zh") == "每个词元 12,288 字节 + 每个源词元 12,288 字节"
    assert remembered(put(NEW, "layers.*.attention.mask", Full()), "en") == "none"
