"""Tables: every parameter is in them, layers are folded, both languages line up."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneblock.cost import parameters
from oneblock.draw import changes, table, text, width
from oneblock.draw.describe import formula
from oneblock.draw.fold import fold
from oneblock.draw.tree import Row
from oneblock.spec import (
    Alibi,
    Attention,
    Block,
    Causal,
    Classify,
    Embedding,
    FeedForward,
    Full,
    Head,
    LayerNorm,
    Model,
    MoE,
    Pool,
    RMSNorm,
    Rope,
    Smooth,
    Softmax,
    Spec,
    Transform,
    Whole,
    Window,
    diff,
)
from oneblock.words import LANGUAGES
from oneblock.zoo import named
from specs import specs

CHINESE = re.compile(r"[\u4e00-\u9fff]")
LOCAL = Block(Attention(4, mask=Causal() & Window(8)), FeedForward(32))
GLOBAL = Block(Attention(4), FeedForward(32))


def below(rows: tuple[Row, ...], index: int) -> list[Row]:
    """The direct parts of a row."""
    parts = []
    for row in rows[index + 1 :]:
        if row.level <= rows[index].level:
            break
        if row.level == rows[index].level + 1:
            parts.append(row)
    return parts


@settings(max_examples=60, deadline=None)
@given(specs, st.integers(0, 3))
def test_table_totals_are_the_cost(spec: Spec, depth: int) -> None:
    rows = table(spec, depth=depth)
    assert rows[0].total == parameters(spec)


@settings(max_examples=60, deadline=None)
@given(specs)
def test_parts_of_a_stream_and_of_a_block_sum_to_it(spec: Spec) -> None:
    rows = table(spec, depth=2)
    for index, row in enumerate(rows):
        parts = below(rows, index)
        if parts and not row.path.endswith(("embedding", "head")):
            assert sum(part.total for part in parts) == row.parameters, row


def test_equal_layers_are_one_row() -> None:
    rows = {row.path: row for row in table(named("vaswani"), depth=1)}
    assert rows["encoder.layers.0-5"].times == 6
    assert "6 × Block" in text(table(named("vaswani"), depth=1))


def test_patterns_of_layers_are_folded() -> None:
    spec = Model(16, Embedding(10), ((LOCAL,) * 5 + (GLOBAL,)) * 3 + (LOCAL,))
    assert [(run.layers, run.times, len(run.blocks)) for run in fold(spec.layers)] == [("0-17", 3, 6), ("18", 1, 1)]
    rows = table(spec, depth=1)
    assert [(row.path, row.times) for row in rows[2:6]] == [
        ("layers.0-17", 3),
        ("layers.0-4", 5),
        ("layers.5", 1),
        ("layers.18", 1),
    ]
    assert sum(row.total for row in rows if row.level == 1) == parameters(spec)


@given(st.lists(st.sampled_from([LOCAL, GLOBAL]), max_size=12))
def test_folding_loses_no_layer(blocks: list[Block]) -> None:
    assert [block for run in fold(blocks) for block in run.blocks * run.times] == blocks


@pytest.mark.parametrize("lang", LANGUAGES)
def test_lines_of_text_are_equally_wide(lang: str) -> None:
    lines = text(table(named("vaswani"), lang, depth=3), lang).splitlines()
    assert {width(line) for line in lines} == {width(lines[0])}
    assert bool(CHINESE.search(lines[0])) == (lang == "zh")


def test_E7_E4_shapes_inside_attention_say_which_length_and_width() -> None:
    shapes = {row.path: row.shape for row in table(named("vaswani-B-key-16"), depth=3)}
    at = "decoder.layers.0-5.cross"
    assert shapes[f"{at}.q"] == ("batch", 8, "target", 16)
    assert shapes[f"{at}.k"] == ("batch", 8, "source", 16)
    assert shapes[f"{at}.v"] == ("batch", 8, "source", 64)
    assert shapes[f"{at}.scores"] == ("batch", 8, "target", "source")
    assert shapes[f"{at}.out"] == ("batch", "target", 512)


def test_E1_query_from_the_decoder_key_and_value_from_the_memory() -> None:
    formulas = {row.path: row.formula for row in table(named("vaswani", bias=False), depth=3)}
    at = "decoder.layers.0-5.cross"
    assert [formulas[f"{at}.{name}"] for name in "qkv"] == ["q = x W_Q", "k = memory W_K", "v = memory W_V"]


def test_a_length_takes_the_place_of_the_word() -> None:
    assert table(named("vaswani"), depth=0, length=10)[0].shape == ("batch", 10, 37_000)


def test_tied_matrices_say_whose_they_are() -> None:
    said = text(table(named("vaswani"), depth=1))
    assert said.count("= encoder.embedding.token") == 2


@pytest.mark.parametrize(
    ("brick", "expected"),
    [
        (Attention(8, mask=Full()), "softmax(q kᵀ / √64) v W_O"),
        (Attention(8, position=Rope()), "softmax(rot(q) rot(k)ᵀ / √64 + mask) v W_O"),
        (Attention(8, position=Alibi(), scale=1.0), "softmax(1 q kᵀ + B + mask) v W_O"),
        (FeedForward(64, "silu", gated=True), "(SiLU(x W_gate) ⊙ x W_up) W_down"),
        (FeedForward(64, "relu", bias=True), "ReLU(x W_up + b_up) W_down + b_down"),
        (LayerNorm(bias=False), "(x − μ) / √(σ² + ε) ⊙ γ"),
        (RMSNorm(centred=True), "x / √(mean(x²) + ε) ⊙ (1 + γ)"),
        (Head(tied=True, softcap=30.0), "30 tanh(x Eᵀ / 30)"),
        (Embedding(10, scale="sqrt_dim"), "√512 E[id]"),
        (MoE(FeedForward(64), 8), "Σ_{e ∈ top 2} w_e FFN_e(x)"),
        (Softmax(renormalise=False), "w = softmax(r)[top]"),
        (Transform("tanh", None), "tanh(x W_dense + b_dense)"),
        (Pool("last"), "x[last]"),
        (Classify(2, "mean", bias=False), "mean(x) W_out"),
        (Classify(2, "first", Transform()), "T(x[first]) W_out + b_out"),
    ],
)
def test_formulas_leave_out_what_the_spec_leaves_out(brick: object, expected: str) -> None:
    assert formula(brick, 512) == expected


def test_a_mixture_of_experts_is_a_row_of_many_equal_experts() -> None:
    mixture = MoE(FeedForward(32, "silu", gated=True), experts=8)
    spec = Model(16, Embedding(10), (Block(Attention(4, 2, qk_norm=Whole(RMSNorm())), mixture),) * 3)
    rows = {row.path: row for row in table(spec, depth=4)}
    at = "layers.0-2.feedforward"
    assert [rows[f"{at}{name}"].shape for name in (".router", ".weights", ".experts", ".experts.up", ".mix")] == [
        ("batch", "length", 8),
        ("batch", "length", 2),
        ("routed", 16),
        ("routed", 32),
        ("batch", "length", 16),
    ]
    experts = rows[f"{at}.experts"]
    assert (experts.times, experts.parameters, rows[f"{at}.experts.up"].parameters) == (8, 3 * 16 * 32, 16 * 32)
    assert rows[at].parameters == experts.total + rows[f"{at}.router"].parameters
    assert [rows[f"layers.0-2.attention.{name}_norm"].parameters for name in "qk"] == [16, 8]


def test_a_stretched_rotation_says_how() -> None:
    attention = Attention(4, position=Rope(500_000.0, scaling=Smooth(8.0, 8192)))
    rows = {row.path: row for row in table(Model(16, Embedding(10), (Block(attention, None),)), depth=3)}
    assert rows["layers.0.attention.position"].details == "θ = 500,000 · Long waves slowed · s = 8 · trained on 8,192"
    assert rows["layers.0.attention.position.scaling"].name == "Long waves slowed"


@pytest.mark.parametrize(("head", "shape"), [(Pool(), ("batch", 16)), (Classify(3), ("batch", 3)), (None, None)])
def test_what_comes_out_for_a_whole_text_has_no_length(head: Pool | Classify | None, shape: tuple[object, ...]) -> None:
    rows = table(Model(16, Embedding(10), (GLOBAL,), head=head), depth=3)
    assert rows[0].shape == (shape or ("batch", "length", 16))
    assert [row.shape for row in rows if row.path == "head"] == ([shape] if head else [])


@pytest.mark.parametrize("wrong", [{"depth": -1}, {"length": 0}, {"lang": "fr"}])
def test_impossible_wishes_are_refused_in_one_line(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"^\w+: expected [^\n]+ got [^\n]+$"):
        table(named("vaswani"), **wrong)


def test_changes_between_two_sizes_are_lines() -> None:
    said = changes(diff(named("vaswani"), named("vaswani-C-2-layers")))
    assert said.splitlines() == ["encoder.layers.length  6 → 2", "decoder.layers.length  6 → 2"]
    assert changes(diff(named("vaswani"), named("vaswani"))) == ""
