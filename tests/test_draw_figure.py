"""Figures: any spec draws, as sound XML that stands alone, reads in both languages, and breaks out of nothing."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneblock.draw import svg
from oneblock.draw.glyphs import CELLS, visible
from oneblock.draw.style import FILLS, INK
from oneblock.spec import (
    Alibi,
    Attention,
    Block,
    Causal,
    Classify,
    Embedding,
    FeedForward,
    Full,
    Mask,
    Model,
    MoE,
    Pool,
    Relative,
    Rope,
    Spec,
    Transform,
    Window,
    Wiring,
    put,
)
from oneblock.words import LANGUAGES
from oneblock.zoo import named
from specs import specs

SVG = "{http://www.w3.org/2000/svg}"
CHINESE = re.compile(r"[\u4e00-\u9fff]")
ONE = Model(16, Embedding(10), (Block(Attention(4), FeedForward(32)),) * 3)


def drawn(spec: Spec, **wishes: object) -> ElementTree.Element:
    return ElementTree.fromstring(svg(spec, **wishes))  # type: ignore[arg-type]


def paths(figure: ElementTree.Element) -> list[str]:
    return [brick.get("data-path", "") for brick in figure.iter(f"{SVG}g") if brick.get("class") == "brick"]


def texts(figure: ElementTree.Element) -> list[str]:
    return ["".join(mark.itertext()) for mark in figure.iter(f"{SVG}text")]


def count(figure: ElementTree.Element, role: str) -> int:
    return sum(mark.get("class") == role for mark in figure.iter())


@settings(max_examples=60, deadline=None)
@given(specs, st.sampled_from(LANGUAGES), st.none() | st.integers(1, 4096))
def test_any_spec_draws_as_sound_xml_within_its_bounds(spec: Spec, lang: str, length: int | None) -> None:
    figure = drawn(spec, lang=lang, length=length)
    left, top, wide, high = map(float, figure.get("viewBox", "").split())
    assert 0 < wide < 10_000
    assert 0 < high < 20_000
    for text in figure.iter(f"{SVG}text"):
        assert text.text
    assert "nan" not in svg(spec, lang, length)
    assert (left, top) != (0.0, 0.0)


def test_blocks_and_models_that_are_empty_draw_too() -> None:
    assert count(drawn(replace(ONE, layers=(Block(None, None),))), "frame") == 1
    assert count(drawn(replace(ONE, layers=())), "frame") == 0


@pytest.mark.parametrize("wiring", get_args(Wiring))
def test_N9_each_wiring_draws_its_norms(wiring: Wiring) -> None:
    norms = {
        "pre": {"attention_pre", "feedforward_pre"},
        "post": {"attention_post", "feedforward_post"},
        "branch": {"attention_branch", "feedforward_branch"},
        "sandwich": {"attention_pre", "attention_branch", "feedforward_pre", "feedforward_branch"},
        "parallel": {"attention_pre", "feedforward_pre"},
        "parallel-shared": {"attention_pre"},
        "bare": set(),
    }
    found = paths(drawn(put(ONE, "layers.*.wiring", wiring)))
    assert {path.rpartition(".")[2] for path in found if ".norms." in path} == norms[wiring]
    assert {"layers.0.attention", "layers.0.feedforward"} <= set(found)


@pytest.mark.parametrize("wiring", ["pre", "post", "parallel", "parallel-shared"])
def test_N6_without_residual_no_way_round_is_drawn(wiring: Wiring) -> None:
    with_residual = drawn(put(ONE, "layers.*.wiring", wiring))
    without = drawn(put(put(ONE, "layers.*.wiring", wiring), "layers.*.skip", 0))
    assert count(without, "wire") < count(with_residual, "wire")
    assert count(without, "dot") < count(with_residual, "dot")
    assert not any("Add" in text for text in texts(without))


def test_N12_N13_the_figure_of_2017_has_its_parts() -> None:
    figure = drawn(named("vaswani"))
    said = texts(figure)
    assert said.count("6 ×") == 2
    assert {"Encoder", "Decoder", "Inputs", "Outputs (shifted right)", "Softmax", "Linear"} <= set(said)
    assert {"Self-attention", "Causal self-attention", "Cross-attention", "8 heads × 64", "× √512"} <= set(said)
    assert said.count("Add & layer norm") == 5
    assert count(figure, "glyph") == 3
    assert count(figure, "badge") == 3
    assert "63,082,496 parameters · dimension 512 · dropout 0.1" in said
    assert "encoder.layers.0.attention" in paths(figure)


def test_E1_the_memory_reaches_every_cross_attention_that_is_drawn() -> None:
    spec = named("vaswani")
    alone = replace(spec, decoder=put(spec.decoder, "layers.*.cross", None))
    varied = replace(spec, decoder=put(spec.decoder, "layers.1.attention.heads", 4))
    assert "(source, 512)" in texts(drawn(spec))
    assert texts(drawn(alone)).count("(source, 512)") == texts(drawn(spec)).count("(source, 512)") - 1
    assert texts(drawn(varied)).count("Cross-attention") == 3
    assert count(drawn(varied), "frame") == 4


@pytest.mark.parametrize("lang", LANGUAGES)
def test_texts_are_in_the_language_asked_for(lang: str) -> None:
    figure = drawn(named("vaswani"), lang=lang)
    words = " ".join(texts(figure) + [mark.text or "" for mark in figure.iter(f"{SVG}desc")])
    assert bool(CHINESE.search(words)) == (lang == "zh")
    assert figure.get("lang") == lang


def test_layers_that_differ_are_drawn_apart_and_patterns_in_a_bracket() -> None:
    local = put(ONE.layers[0], "attention.mask", Causal() & Window(4096))
    pattern = drawn(replace(ONE, layers=(local, ONE.layers[0]) * 13))
    assert "13 ×" in texts(pattern)
    assert (count(pattern, "bracket"), count(pattern, "frame")) == (1, 2)
    assert "window 4,096" in texts(pattern)


def test_rotary_marks_query_and_key_but_not_value() -> None:
    assert count(drawn(put(ONE, "layers.*.attention.position", Rope())), "knob") == 2


def test_a_shared_position_bias_reaches_every_attention() -> None:
    figure = drawn(replace(ONE, position_bias=Relative()))
    assert "position_bias" in paths(figure)
    assert count(figure, "wire") > count(drawn(ONE), "wire")


@pytest.mark.parametrize(("experts", "boxes"), [(1, "1"), (3, "123"), (8, "12⋯8")])
@pytest.mark.parametrize("wiring", ["pre", "parallel"])
def test_a_mixture_of_experts_is_a_router_and_experts(experts: int, boxes: str, wiring: Wiring) -> None:
    mixture = MoE(FeedForward(32, "silu", gated=True), experts, active=min(2, experts))
    figure = drawn(put(put(ONE, "layers.*.feedforward", mixture), "layers.*.wiring", wiring))
    found = paths(figure)
    assert found.count("layers.0.feedforward") == found.count("layers.0.feedforward.router") == 1
    assert found.count("layers.0.feedforward.experts") == len(boxes.replace("⋯", ""))
    said = texts(figure)
    assert {"Mixture of experts", "Router", f"{min(2, experts)} of {experts} per token", *boxes} <= set(said)
    assert any("used per token" in text for text in said) == (experts > 2)


@pytest.mark.parametrize("transform", [None, Transform("tanh", None)])
def test_an_output_for_a_whole_text_is_drawn_to_its_end(transform: Transform | None) -> None:
    encoder = put(ONE, "layers.*.attention.mask", Full())
    labelled = drawn(replace(encoder, head=Classify(3, "mean", transform)))
    assert {"Pooled output", "Mean of tokens", "16 → 3", "Scores of the labels", "(3)"} <= set(texts(labelled))
    pooled = drawn(replace(encoder, head=Pool("first", transform)))
    assert {"Pooled output", "First token", "One vector per text"} <= set(texts(pooled))
    for figure in (labelled, pooled):
        assert ("head.transform" in paths(figure)) == (transform is not None)
        assert not {"Softmax", "Output probabilities"} & set(texts(figure))


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (Full(), "###/###/###"),
        (Causal(), "#../##./###"),
        (Causal() & Window(1), "#../.#./..#"),
        (Window(2, ahead=1), "##./###/.##"),
        (Window(2), "###/###/.##"),
    ],
)
def test_N3_the_sign_of_a_mask_shows_who_is_seen(mask: Mask, expected: str) -> None:
    attention = Attention(4, mask=mask)
    rows = ["".join("#" if visible(attention, q, k) else "." for k in range(3)) for q in range(3)]
    assert "/".join(rows) == expected


def test_a_bias_fades_with_distance() -> None:
    row = [visible(Attention(4, position=Alibi()), CELLS - 1, key) for key in range(CELLS)]
    assert row == sorted(row)
    assert row[0] < row[-1] == 1


@pytest.mark.parametrize(
    "hostile",
    ["</title><script>alert(1)</script>", '" onload="alert(1)', "a & b < c", "]]>", "\x00\x1b[31m\ud800", "名"],
)
def test_a_hostile_title_stays_text(hostile: str) -> None:
    figure = drawn(ONE, title=hostile)
    assert not list(figure.iter(f"{SVG}script"))
    assert not any(name.startswith("on") for mark in figure.iter() for name in mark.attrib)
    plain = re.sub("[\x00\x1b\ud800]", "", hostile)
    assert plain in texts(figure)


def test_a_figure_refers_to_nothing_outside_itself() -> None:
    figure = svg(named("vaswani"), title="https://example.org")
    inner = figure.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"href|url\(|@import|<script|<image|<foreignObject", inner)
    assert inner.count("http") == 2


def test_a_figure_says_what_it_is_to_those_who_do_not_see_it() -> None:
    figure = drawn(named("vaswani"), title="base")
    assert figure.get("role") == "img"
    ids = {mark.get("id") for mark in figure if mark.tag in (f"{SVG}title", f"{SVG}desc")}
    assert set(figure.get("aria-labelledby", "").split()) == ids
    described = figure.findtext(f"{SVG}desc") or ""
    assert "6 × Block" in described
    assert "Cross-attention" in described


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("night", [0, 1])
@pytest.mark.parametrize("ground", [*FILLS, "paper", "frame"])
def test_text_stands_out_from_its_ground(ground: str, night: int) -> None:
    back = luminance((FILLS | INK)[ground][night])
    for ink in ("ink", "soft"):
        fore = luminance(INK[ink][night])
        assert (max(back, fore) + 0.05) / (min(back, fore) + 0.05) >= 4.5


def test_the_same_spec_gives_the_same_figure() -> None:
    assert svg(named("vaswani")) == svg(named("vaswani"))
