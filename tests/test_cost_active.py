"""What one token costs, parameters that it uses and bytes that are remembered of it, is what was published."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from oneblock.cost import active, cache_bytes, parameters, parts
from oneblock.spec import (
    Attention,
    Block,
    Causal,
    Embedding,
    FeedForward,
    Full,
    Head,
    Model,
    MoE,
    Pool,
    RMSNorm,
    Rope,
    Seq2Seq,
    Spec,
    Whole,
    Window,
    put,
)
from oneblock.zoo import named
from specs import specs


def mixture(dim: int, depth: int, heads: int, experts: tuple[int, int, int], vocab: int, head_dim: int = 128) -> Model:
    hidden, many, few = experts
    attention = Attention(heads, 8 if heads > 32 or dim > 2048 else 4, head_dim, position=Rope())
    block = Block(attention, MoE(FeedForward(hidden, "silu", gated=True), many, few), norm=RMSNorm())
    return Model(dim, Embedding(vocab), (block,) * depth, norm=RMSNorm())


SPARSE = {
    "8x7b": mixture(4096, 32, 32, (14_336, 8, 2), 32_000),
    "8x22b": mixture(6144, 56, 48, (16_384, 8, 2), 32_000),
    "30b-a3b": put(mixture(2048, 48, 32, (768, 128, 8), 151_936), "layers.*.attention.qk_norm", RMSNorm(1e-6)),
}


@pytest.mark.parametrize(
    ("name", "whole", "used"),
    [
        ("8x7b", 46_702_792_704, 12_879_925_248),
        ("8x22b", 140_620_634_112, 39_152_031_744),
        ("30b-a3b", 30_532_122_624, 3_353_032_704),
    ],
)
def test_N19_a_token_uses_few_of_the_parameters_of_experts(name: str, whole: int, used: int) -> None:
    spec = SPARSE[name]
    assert (parameters(spec), active(spec)) == (whole, used)
    table = spec.embedding.vocab * spec.dim
    assert [active(spec, embeddings) for embeddings in (1, 0)] == [used - table, used - 2 * table]


def test_a_tied_matrix_is_one_and_counts_until_none_does() -> None:
    spec = replace(SPARSE["8x7b"], head=Head(tied=True))
    table = 32_000 * 4096
    assert active(spec) == active(spec, 1) == active(spec, 0) + table
    encoder = replace(spec, head=Pool())
    assert active(encoder) == active(encoder, 1) == active(encoder, 0) + table
    with pytest.raises(ValueError, match="embeddings: expected 0, 1 or 2 matrices to count, got 3"):
        active(spec, 3)


@settings(max_examples=60)
@given(specs)
def test_counting_equal_layers_once_counts_them_all(spec: Spec) -> None:
    for stack in ("encoder.layers", "decoder.layers") if isinstance(spec, Seq2Seq) else ("layers",):
        spec = put(spec, f"{stack}.length", 5)
    assert parameters(spec) == sum(part.count for part in parts(spec))
    assert 0 <= active(spec, 0) <= active(spec, 1) <= active(spec) <= parameters(spec)


def dense(dim: int, depth: int, heads: int, kv_heads: int | None = None, head_dim: int | None = None) -> Model:
    return Model(dim, Embedding(100), (Block(Attention(heads, kv_heads, head_dim), FeedForward(8)),) * depth)


LOCAL = Block(Attention(4, 1, 256, mask=Causal() & Window(512)), FeedForward(8))
GLOBAL = Block(Attention(4, 1, 256), FeedForward(8))
PATTERN = Model(1152, Embedding(100), ((LOCAL,) * 5 + (GLOBAL,)) * 4 + (LOCAL,) * 2)


@pytest.mark.parametrize(
    ("spec", "bytes_"),
    [
        (dense(768, 12, 12), 36_864),
        (dense(4096, 32, 32), 524_288),
        (dense(8192, 80, 64, 8), 327_680),
        (dense(4096, 32, 32, 8), 131_072),
        (dense(896, 24, 14, 2), 12_288),
        (dense(1024, 28, 16, 8, 128), 114_688),
        (dense(2048, 18, 8, 1, 256), 18_432),
        (PATTERN, 26_624),
    ],
)
def test_E15_bytes_of_the_cache_per_token_as_published(spec: Model, bytes_: int) -> None:
    assert cache_bytes(spec).per_token == bytes_
    assert cache_bytes(spec, "float32").per_token == 2 * bytes_


def test_E15_layers_with_a_window_stop_growing() -> None:
    cache = cache_bytes(PATTERN)
    assert (cache.endless, cache.windows) == (4 * 1024, ((512, 22 * 1024),))
    assert cache.at(512) == 512 * 26_624
    assert cache.at(10_000) == 10_000 * 4096 + 512 * 22_528
    rolling = cache_bytes(put(dense(4096, 32, 32, 8), "layers.*.attention.mask", Causal() & Window(4096)))
    assert rolling.at(5000) == rolling.at(4096) == 4096 * 131_072


def test_what_is_kept_of_a_source_does_not_grow_with_the_target() -> None:
    cache = cache_bytes(named("vaswani"))
    assert (cache.per_token, cache.per_source_token) == (12_288, 2 * 6 * 512 * 2)
    assert cache.at(10, source=7) == 17 * 12_288
    assert cache.at(0, source=7) == 7 * 12_288


def test_an_encoder_keeps_nothing() -> None:
    assert cache_bytes(put(PATTERN, "layers.*.attention.mask", Full())).at(1000) == 0


def test_norms_over_all_heads_are_as_wide_as_the_projections() -> None:
    plain = dense(64, 3, 8, 2)
    each, whole = (put(plain, "layers.*.attention.qk_norm", norm) for norm in (RMSNorm(), Whole(RMSNorm())))
    assert parameters(each) - parameters(plain) == 3 * (8 + 8)
    assert parameters(whole) - parameters(plain) == 3 * (64 + 16)


def test_an_unknown_type_of_number_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"dtype: no type 'bfloat'; did you mean bfloat16\?"):
        cache_bytes(PATTERN, "bfloat")
