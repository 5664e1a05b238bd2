"""Positions: values by hand, and that they survive half precision, padding and long texts."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from oneblock.bricks import Context, build
from oneblock.bricks.positions import AlibiBrick, bucket, rotate, sinusoids, slopes
from oneblock.mask import places
from oneblock.spec import Alibi, Attention, Embedding, Learned, Relative, Rope, Sinusoidal, put
from specs import VOCAB, exact, ids, language_model, same


def turned(spec: Rope, x: Tensor, position: int) -> Tensor:
    here = places(1, position=torch.tensor([[position]]))
    return rotate(spec, x[None, None, None], here, Context(here))[0, 0, 0]


def test_B20_both_layouts_by_hand() -> None:
    x = torch.tensor([1.0, 0, 0, 0], dtype=torch.float64)
    cos, sin = math.cos(1), math.sin(1)
    same(turned(Rope(layout="interleaved"), x, 1), torch.tensor([cos, sin, 0, 0], dtype=torch.float64))
    same(turned(Rope(layout="half"), x, 1), torch.tensor([cos, 0, sin, 0], dtype=torch.float64))


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_each_pair_turns_by_its_own_angle_and_the_rest_stays(layout: str, fraction: float) -> None:
    spec, x, position = Rope(50.0, fraction, layout), torch.randn(8, dtype=torch.float64), 7  # type: ignore[arg-type]
    n = int(8 * fraction)
    expected = x.clone()
    for i in range(n // 2):
        a, b = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + n // 2)
        angle = position * 50.0 ** (-2 * i / n)
        expected[a] = x[a] * math.cos(angle) - x[b] * math.sin(angle)
        expected[b] = x[b] * math.cos(angle) + x[a] * math.sin(angle)
    same(turned(spec, x, position), expected)
    same(turned(spec, x, position).norm(), x.norm())


def test_B20_permuted_rows_turn_one_layout_into_the_other() -> None:
    half = exact(language_model(attention={"position": Rope(layout="half")}))
    pairs = exact(language_model(attention={"position": Rope(layout="interleaved")}))
    pairs.load_state_dict(half.state_dict())
    x = ids(2, 6)
    assert (pairs(x).logits - half(x).logits).abs().max() > 1e-3
    with torch.no_grad():
        for layer in pairs.layers:
            for name in "qk":
                for parameter in getattr(layer.attention, name).parameters():
                    parameter.copy_(parameter.unflatten(0, (4, 2, -1)).transpose(1, 2).flatten(0, 2))
    same(pairs(x).logits, half(x).logits)


def test_scores_of_rotated_queries_and_keys_depend_on_their_distance_only() -> None:
    model, x = exact(language_model()), ids(2, 6)
    same(model(x, position_ids=torch.arange(6)[None] + 1000).logits, model(x).logits, 1e-9)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_B22_B23_angles_stay_float32_in_a_half_precision_model(dtype: torch.dtype) -> None:
    model = build(Attention(1, position=Rope()), 32).to(dtype)
    assert not list(model.buffers())
    for position in (*range(2048), 15962):
        if position % 97 and position not in (257, 15962):
            continue
        here = places(1, position=torch.tensor([[position]]))
        one = torch.tensor([1.0] * 16 + [0.0] * 16)
        exactly = turned(Rope(), one.double(), position)
        given = rotate(Rope(), one.to(dtype)[None, None, None], here, Context(here))[0, 0, 0]
        assert given.dtype == dtype
        same(given.double(), exactly, {torch.float16: 1e-3, torch.bfloat16: 4e-3}[dtype] + position * 1e-7)
    assert abs(float(turned(Rope(), torch.eye(32)[0].to(dtype), 257)[0]) - math.cos(257)) < 4e-3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_B23_sinusoids_tell_257_from_256_in_half_precision(dtype: torch.dtype) -> None:
    embedding = build(Embedding(VOCAB, Sinusoidal()), 16).to(dtype)
    with torch.no_grad():
        embedding.token.weight.zero_()
    here = places(2, position=torch.tensor([[256, 257]]))
    x = embedding(torch.zeros(1, 2, dtype=torch.long), here)
    assert x.dtype == dtype
    same(x.double()[0, :, 1], torch.tensor([256.0, 257.0], dtype=torch.float64).cos(), 4e-3)


def test_a_position_in_double_precision_is_exact() -> None:
    same(turned(Rope(), torch.eye(4, dtype=torch.float64)[0], 15962)[0], torch.tensor(15962.0).double().cos(), 1e-12)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("dim", [6, 7])
def test_sinusoids_by_hand(layout: str, closed: bool, dim: int) -> None:
    spec = Sinusoidal(layout, start=2, theta=100.0, closed=closed)  # type: ignore[arg-type]
    given = sinusoids(spec, torch.tensor([[3, 0]]), dim, torch.float64)[0]
    half = (dim + 1) // 2
    for row, position in enumerate((5, 2)):
        angles = [position / 100 ** (i / ((half - 1) if closed else dim / 2)) for i in range(half)]
        pairs = [(math.sin(a), math.cos(a)) for a in angles]
        if layout == "interleaved":
            numbers = [number for pair in pairs for number in pair]
        else:
            numbers = [s for s, _ in pairs] + [c for _, c in pairs]
        same(given[row], torch.tensor(numbers[:dim], dtype=torch.float64))


def test_sinusoids_far_from_the_start_are_exact_to_single_precision() -> None:
    far = torch.tensor([[511, 100_003]])
    given = sinusoids(Sinusoidal(), far, 64)
    assert given.dtype == torch.float32
    same(given.double(), sinusoids(Sinusoidal(), far, 64, torch.float64), 6e-8)


def test_learned_positions_read_their_row_behind_the_offset() -> None:
    brick = build(Learned(5, offset=2), 4)
    assert brick.weight.shape == (7, 4)
    assert torch.equal(brick(torch.tensor([[0, 4]]))[0], brick.weight[[2, 6]])


def test_alibi_slopes_as_published() -> None:
    assert slopes(8) == [2.0**-i for i in range(1, 9)]
    assert slopes(2) == [1 / 16, 1 / 256]
    assert slopes(6) == [0.25, 0.0625, 1 / 64, 1 / 256, 0.5, 0.125]


def test_alibi_subtracts_slope_times_distance() -> None:
    here = places(3)
    same(
        AlibiBrick(2)(here, here)[0, 0],
        torch.tensor([[0.0, -1, -2], [-1, 0, -1], [-2, -1, 0]]) / 16,
        0,
    )
    brick, plain = exact(Attention(2, position=Alibi()), 8), exact(Attention(2), 8)
    x = torch.randn(1, 4, 8, dtype=torch.float64)
    assert (brick(x) - plain(x)).abs().max() > 1e-4


TWO_WAY = {-200: 15, -128: 15, -20: 10, -8: 8, -7: 7, -1: 1, 0: 0, 1: 17, 7: 23, 8: 24, 20: 26, 128: 31, 200: 31}
ONE_WAY = {-200: 31, -128: 31, -20: 17, -16: 16, -15: 15, -1: 1, 0: 0, 1: 0, 50: 0}


@pytest.mark.parametrize(("both_ways", "table"), [(True, TWO_WAY), (False, ONE_WAY)])
def test_B67_buckets_of_relative_distance(both_ways: bool, table: dict[int, int]) -> None:
    given = bucket(Relative(32, 128, both_ways), torch.tensor(list(table)))
    assert given.tolist() == list(table.values())


@pytest.mark.parametrize("both_ways", [True, False])
def test_buckets_never_go_back_and_all_are_used(both_ways: bool) -> None:
    spec = Relative(32, 128, both_ways)
    behind = bucket(spec, -torch.arange(300))
    assert (behind.diff() >= 0).all()
    ahead = bucket(spec, torch.arange(300))
    assert (ahead.diff()[1:] >= 0).all()
    assert set(behind.tolist()) | set(ahead.tolist()) == set(range(32)) - ({16} if both_ways else set())


def test_a_relative_table_adds_its_number_per_head_and_bucket() -> None:
    brick = exact(Attention(2, position=Relative(8, 20)), 8)
    with torch.no_grad():
        brick.position.weight.copy_(torch.arange(16.0).view(8, 2))
    here = places(4)
    bias = brick.position(here, here)
    assert bias.shape == (1, 2, 4, 4)
    assert bias[0, 1, 3].tolist() == [7.0, 5.0, 3.0, 1.0]


def test_one_shared_table_serves_every_self_attention() -> None:
    shared = exact(language_model(attention={"position": None}, position_bias=Relative(4, 8)))
    assert sum("position_bias" in name for name, _ in shared.named_parameters()) == 1
    x = ids(2, 5)
    before = shared(x).logits
    with torch.no_grad():
        shared.position_bias.weight += torch.randn_like(shared.position_bias.weight)
    assert (shared(x).logits - before).abs().max() > 1e-3


def test_a_shared_table_wants_as_many_heads_in_every_layer() -> None:
    spec = language_model(attention={"position": None}, position_bias=Relative(4, 8))
    with pytest.raises(ValueError, match=r"position_bias: .* expected as many heads in each, got \[2, 4\]"):
        exact(put(spec, "layers.1.attention.heads", 2))
    assert exact(put(spec, "layers.0.attention", None))(ids(1, 3)).logits.isfinite().all()
