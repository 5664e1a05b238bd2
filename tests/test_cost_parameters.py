"""Parameter counts from the spec alone agree with what was published, row by row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oneblock.cost import parameters, parts
from oneblock.spec import (
    Attention,
    Block,
    Embedding,
    FeedForward,
    Full,
    Head,
    LayerNorm,
    Learned,
    Model,
    RMSNorm,
    Rope,
    Seq2Seq,
    Transform,
    Wiring,
    put,
)
from oneblock.zoo import named

TABLE_3 = [
    ("base", 65, 63.05),
    ("A-1-head", 65, 63.05),
    ("A-4-heads", 65, 63.05),
    ("A-16-heads", 65, 63.05),
    ("A-32-heads", 65, 63.05),
    ("B-key-16", 58, 55.97),
    ("B-key-32", 60, 58.33),
    ("C-2-layers", 36, 33.64),
    ("C-4-layers", 50, 48.35),
    ("C-8-layers", 80, 77.75),
    ("C-dim-256", 28, 26.82),
    ("C-dim-1024", 168, 163.82),
    ("C-hidden-1024", 53, 50.45),
    ("C-hidden-4096", 90, 88.24),
    ("D-dropout-0.0", 65, 63.05),
    ("D-dropout-0.2", 65, 63.05),
    ("D-smoothing-0.0", 65, 63.05),
    ("D-smoothing-0.2", 65, 63.05),
    ("big", 213, 214.17),
]
"""Row, millions published, millions in closed form at a vocabulary of 37,000 without attention biases."""


def millions(row: str) -> float:
    return parameters(named(f"vaswani-{row}", bias=False)) / 1e6


@pytest.mark.parametrize(("row", "published", "closed"), TABLE_3)
def test_N12_table_3_of_2017(row: str, published: float, closed: float) -> None:
    assert millions(row) == pytest.approx(closed, abs=0.0051)
    assert abs(millions(row) - published) <= 0.07 * published


@pytest.mark.parametrize(
    ("fewer", "more", "published"),
    [
        ("C-2-layers", "C-4-layers", 14),
        ("C-4-layers", "C-8-layers", 30),
        ("C-hidden-1024", "base", 12),
        ("B-key-16", "base", 7),
    ],
)
def test_N12_differences_between_rows_do_not_depend_on_the_vocabulary(fewer: str, more: str, published: float) -> None:
    assert abs(millions(more) - millions(fewer) - published) <= 1.5


def test_N12_base_to_the_last_parameter() -> None:
    assert parameters(named("vaswani", bias=False)) == 63_045_632
    assert parameters(named("vaswani")) == 63_082_496


def test_learned_positions_add_their_tables_once_per_stream() -> None:
    more = parameters(named("vaswani-E-learned")) - parameters(named("vaswani"))
    assert more == 2 * 1024 * 512


def decoder_only(depth: int, block: Block, **model: object) -> Model:
    return Model(layers=(block,) * depth, **model)  # type: ignore[arg-type]


def test_published_counts_of_later_models_to_the_last_parameter() -> None:
    small = Block(Attention(12, bias=True), FeedForward(3072, "gelu_tanh", bias=True))
    size = {"dim": 768, "norm": LayerNorm(), "head": Head(tied=True)}
    assert parameters(decoder_only(12, small, embedding=Embedding(50257, Learned(1024)), **size)) == 124_439_808
    gated = FeedForward(14_336, "silu", gated=True)
    grouped = Block(Attention(32, 8, position=Rope(500_000.0)), gated, norm=RMSNorm())
    assert (
        parameters(decoder_only(32, grouped, dim=4096, embedding=Embedding(128_256), norm=RMSNorm())) == 8_030_261_248
    )
    wide = Block(
        Attention(64, bias=True, position=Rope(fraction=0.25)), FeedForward(24_576, bias=True), wiring="parallel"
    )
    assert parameters(decoder_only(44, wide, dim=6144, embedding=Embedding(50_432), norm=LayerNorm())) == 20_554_567_680
    both = Block(Attention(12, mask=Full(), bias=True), FeedForward(3072, bias=True), wiring="post")
    embedding = Embedding(30_522, Learned(512), segments=2, norm=LayerNorm(1e-12))
    masked = Head(tied=True, bias=True, transform=Transform())
    assert parameters(decoder_only(12, both, dim=768, embedding=embedding, head=masked)) == 109_514_298
    heads = Attention(8, 4, head_dim=256, position=Rope())
    sandwich = Block(heads, FeedForward(9216, "gelu_tanh", gated=True), norm=RMSNorm(), wiring="sandwich")
    model = decoder_only(26, sandwich, dim=2304, embedding=Embedding(256_000), norm=RMSNorm(), head=Head(tied=True))
    assert parameters(model) == 2_614_341_888


@pytest.mark.parametrize(
    ("wiring", "norms"),
    [("pre", 2), ("post", 2), ("branch", 2), ("sandwich", 4), ("parallel", 2), ("parallel-shared", 1), ("bare", 0)],
)
def test_N9_a_wiring_adds_only_its_norms(wiring: Wiring, norms: int) -> None:
    bare = Model(16, Embedding(10), (Block(Attention(4), FeedForward(32), wiring="bare"),))
    assert parameters(put(bare, "layers.*.wiring", wiring)) - parameters(bare) == norms * 32


def test_shared_and_tied_matrices_count_once() -> None:
    spec = named("vaswani", dim=16, depth=1, heads=2, hidden=32, vocab=100)
    assert isinstance(spec, Seq2Seq)
    untied = put(spec, "decoder.head.tied", False)
    assert parameters(untied) - parameters(spec) == 16 * 100
    assert parameters(replace(untied, share=False)) - parameters(untied) == 16 * 100
    shared = {part.path: part.shared for part in parts(spec) if part.shared}
    assert shared == {
        "decoder.embedding.token": {"weight": "encoder.embedding.token.weight"},
        "decoder.head": {"out.weight": "encoder.embedding.token.weight"},
    }


def test_an_unknown_brick_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a spec, got int"):
        list(parts(3))
