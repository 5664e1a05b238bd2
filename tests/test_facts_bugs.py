"""Faults that others reported, each on its own small input: the right value, by the numbers of the report."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from oneblock.bricks import Context, build
from oneblock.bricks.attend import Softmax as Scores
from oneblock.bricks.attend import attend
from oneblock.bricks.positions import rotate
from oneblock.cache import make
from oneblock.mask import Sight, places
from oneblock.spec import (
    Attention,
    Causal,
    DynamicBase,
    FeedForward,
    Full,
    Interpolate,
    LayerNorm,
    RMSNorm,
    Rope,
    diff,
)
from oneblock.tap import listen
from oneblock.zoo import FAMILIES, named
from oneblock.zoo.config import read_config
from specs import exact, gradients, language_model, same

WAYS = ["fused", "written"]


def looked(way: str, brick: nn.Module, call: Any) -> Tensor:
    """What a call gives when scores are written out, or left to the kernel."""
    with listen(brick, only="pattern" if way == "written" else "nothing"):
        return call()


def test_B01_a_causal_model_never_sees_the_next_token() -> None:
    model, ids = exact(language_model(attention={"mask": Causal()})), torch.tensor([[5, 6, 7, 8]])
    for at in range(1, 4):
        other = ids.clone()
        other[0, at] = 9
        moved = (model(ids).logits != model(other).logits).any(-1)[0].tolist()
        assert moved == [place >= at for place in range(4)]


def test_B10_greedy_tokens_of_prompts_of_3_and_6_padded_on_the_left() -> None:
    """With a cache and without, in a batch and alone: the same eight tokens."""
    model = exact(language_model(norm=RMSNorm(), attention={"bias": False}))
    prompts = [torch.tensor([5, 6, 7]), torch.tensor([8, 9, 10, 11, 12, 3])]
    x = torch.stack([torch.cat([torch.zeros(6 - len(row), dtype=torch.long), row]) for row in prompts])
    mask, cache = torch.tensor([[0, 0, 0, 1, 1, 1], [1] * 6]), make(model.spec)
    step, alone = x, [row[None] for row in prompts]
    for _ in range(8):
        cached = model(step, mask, cache=cache).logits[:, -1].argmax(-1)
        assert torch.equal(cached, model(x, mask).logits[:, -1].argmax(-1))
        assert cached.tolist() == [int(model(row).logits[0, -1].argmax()) for row in alone]
        x, step, mask = (
            torch.cat([x, cached[:, None]], 1),
            cached[:, None],
            torch.cat([mask, torch.ones(2, 1).long()], 1),
        )
        alone = [torch.cat([row, token[None, None]], 1) for row, token in zip(alone, cached, strict=True)]


@pytest.mark.parametrize("way", WAYS)
def test_B11_padding_and_a_causal_mask_leave_a_query_without_keys(way: str) -> None:
    brick = exact(Attention(2, bias=True), 4)
    with torch.no_grad():
        brick.out.bias.zero_()
    x, ctx = torch.randn(1, 3, 4, dtype=torch.float64), Context(places(3, torch.tensor([[0, 1, 1]])))
    out = looked(way, brick, lambda: brick(x, ctx))
    assert out[0, 0].tolist() == [0, 0, 0, 0]
    assert (out[0, 1:] != 0).all()
    out.square().sum().backward()
    assert all(gradient.isfinite().all() for gradient in gradients(brick).values())
    with listen(brick, only="pattern") as seen:
        brick(x, ctx)
    assert (seen["pattern"][:, :, 0] == 0).all()
    same(seen["pattern"][:, :, 1:].sum(-1), torch.ones(1, 2, 2, dtype=torch.float64))


@pytest.mark.parametrize("way", WAYS)
def test_B13_a_row_that_may_see_nothing_is_zeros_and_no_mean(way: str) -> None:
    q, k, v = torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 2, 2), torch.eye(2)[None, None]
    for real, expected in (([0, 0], [0, 0]), ([1, 1], [0.5, 0.5]), ([0, 1], [0, 1])):
        sight = Sight(Full(), places(1), places(2, torch.tensor([real])))
        found = looked(way, nn.Identity(), lambda sight=sight: attend(q, k, v, sight, Scores(1.0)))
        assert found.flatten().tolist() == expected
    assert torch.full((2,), torch.finfo(torch.float32).min).softmax(-1).tolist() == [0.5, 0.5]  # a finite fill


@pytest.mark.parametrize("room", [None, 4])
def test_B13_from_a_cache_too(room: int | None) -> None:
    model = exact(language_model(depth=1))
    cache, at = make(model.spec, room), "layers.0.attention.z"
    with listen(model, only=at) as seen:
        model(torch.tensor([[5, 6]]), torch.tensor([[0, 0]]), cache=cache)
        model(torch.tensor([[7]]), torch.tensor([[0, 0, 0]]), cache=cache)
    assert [bool((z == 0).all()) for z in seen.values()] == [True, True]


def wide(activation: str = "relu") -> Any:
    """The feed-forward of the report: h = [200, 200], and rows of 200 that add it up to 80,000."""
    brick = build(FeedForward(2, activation), 1)  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in brick.parameters():
            parameter.fill_(200.0)
    return brick


def test_B17_half_precision_overflows_where_bfloat16_and_float32_do_not() -> None:
    for dtype, value in ((torch.float32, 80_000.0), (torch.bfloat16, 79_872.0), (torch.float16, math.inf)):
        assert wide().to(dtype)(torch.ones(1, 1, dtype=dtype)).item() == value
    with torch.autocast("cpu", torch.bfloat16):
        assert wide()(torch.ones(1, 1)).isfinite().all()


@pytest.mark.parametrize("norm", [LayerNorm(bias=False), RMSNorm()], ids=["layer", "rms"])
def test_B17_norms_square_in_float32(norm: Any) -> None:
    x = torch.tensor([[60_000.0, -60_000.0, 30_000.0, -30_000.0]])
    expected = x / x.square().mean().sqrt()
    same(build(norm, 4).half()(x.half()).float(), expected, 1e-3)


def test_B17_the_first_tensor_that_is_no_number_is_found_by_name() -> None:
    model = exact(language_model(depth=3)).half()
    with torch.no_grad():
        model.layers[1].feedforward.down.weight.fill_(60_000.0)

    def broken() -> list[str]:
        with listen(model) as seen:
            model(torch.tensor([[5, 6, 7]]))
        return [name for name, x in seen.items() if not (x.isfinite().all() or name.endswith(".masked"))]

    assert broken()[0] == "layers.1.feedforward.out"
    model.to(torch.bfloat16)
    assert broken() == []


def test_B20_one_vector_turned_in_both_layouts() -> None:
    here = places(1, position=torch.tensor([[1]]))
    one = torch.tensor([1.0, 0, 0, 0])[None, None, None]
    for layout, expected in (("interleaved", [0.5403, 0.8415, 0, 0]), ("half", [0.5403, 0, 0.8415, 0])):
        given = rotate(Rope(layout=layout), one, here, Context(here)).flatten()  # type: ignore[arg-type]
        assert given.tolist() == pytest.approx(expected, abs=5e-5)


def test_B22_angles_in_half_precision_are_off_by_0_78_and_ours_are_not() -> None:
    here = places(2048)
    one = torch.tensor([1.0] * 16 + [0.0] * 16)
    given = rotate(Rope(), one.half().expand(1, 1, 2048, 32), here, Context(here))[0, 0, :, :16].double()
    frequencies = 10_000.0 ** -(torch.arange(16, dtype=torch.float64) / 16)
    angles = torch.arange(2048)[:, None] * frequencies
    assert (given - angles.cos()).abs().max() < 5e-4
    narrow = torch.arange(2048).half()[:, None] * frequencies.half()
    assert (narrow.float().cos() - angles.cos()).abs().max().item() == pytest.approx(0.78, abs=0.01)


def turned(rope: Rope, positions: Tensor, length: int) -> Tensor:
    """(tokens, 8): [1, 1, 1, 1, 0, 0, 0, 0] turned at each position of a text of so many tokens."""
    here = places(len(positions), position=positions[None])
    x = torch.tensor([1.0] * 4 + [0.0] * 4, dtype=torch.float64).expand(1, 1, len(positions), 8)
    assert len(positions) == length
    return rotate(rope, x, here, Context(here))[0, 0]


def test_B25_a_dynamic_base_changes_nothing_up_to_the_trained_length() -> None:
    rope = Rope(scaling=DynamicBase(2.0, 16))
    for length in (1, 7, 16):
        here = torch.arange(length)
        assert torch.equal(turned(rope, here, length), turned(Rope(), here, length))
    longer = torch.arange(17)
    stretched = 10_000.0 * (2.0 * 17 / 16 - 1) ** (8 / 6)
    same(turned(rope, longer, 17), turned(Rope(stretched), longer, 17))
    assert (turned(rope, longer, 17) - turned(Rope(), longer, 17)).abs().max() > 1e-3


def test_B25_interpolated_by_4_position_p_is_p_over_4() -> None:
    here = torch.arange(33)
    same(turned(Rope(scaling=Interpolate(4.0)), here, 33)[::4], turned(Rope(), here[:9], 9))


LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 16, "intermediate_size": 24,
    "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 13, "max_position_embeddings": 64,
}  # fmt: skip


@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
@pytest.mark.parametrize("words", [("rope_type",), ("type",), ("type", "rope_type")], ids=str)
def test_B25_both_spellings_load_and_unknown_kinds_are_refused(key: str, words: tuple[str, ...]) -> None:
    def position(kind: str) -> Any:
        said = dict.fromkeys(words, kind) | {"factor": 4.0}
        return read_config(LLAMA | {key: said}, FAMILIES)[2].layers[0].attention.position

    assert position("linear") == Rope(scaling=Interpolate(4.0))
    assert position("dynamic") == Rope(scaling=DynamicBase(4.0, 64))
    with pytest.raises(ValueError, match=r"rope_type: 'foo' is no scaling we know"):
        position("foo")


def test_B28_two_functions_called_gelu_have_two_names() -> None:
    def through(activation: str, x: Tensor) -> Tensor:
        brick = build(FeedForward(1, activation), 1).double()  # type: ignore[arg-type]
        with torch.no_grad():
            for parameter in brick.parameters():
                parameter.fill_(1.0)
        return brick(x[:, None])[:, 0].detach()

    one = torch.ones(1, dtype=torch.float64)
    assert through("gelu", one).item() == pytest.approx(0.8413447, abs=5e-8)
    assert through("gelu_tanh", one).item() == pytest.approx(0.8411920, abs=5e-8)
    grid = torch.linspace(-6, 6, 12_001, dtype=torch.float64)
    apart = (through("gelu", grid) - through("gelu_tanh", grid)).abs()
    assert apart.max().item() == pytest.approx(4.732e-4, abs=1e-7)
    assert grid[apart.argmax()].abs().item() == pytest.approx(2.699, abs=2e-3)
    both = [named(name).layers[0].feedforward for name in ("gpt2", "bert")]
    assert [one.activation for one in both] == ["gelu_tanh", "gelu"]
    assert [change.path for change in diff(FeedForward(9, "gelu"), FeedForward(9, "gelu_tanh"))] == ["activation"]
