"""One attention brick: however it is computed it gives the same output and gradients, for every spec there is."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from oneblock.bricks import Context, Memory, build, build_model
from oneblock.mask import Places, places, sight
from oneblock.spec import Alibi, Attention, Causal, Full, Mask, Relative, Rope
from oneblock.tap import listen
from oracle import chunked
from specs import attentions, exact, gradients, ids, language_model, same

WAYS = ("fused", "written", "chunks")


def by(way: str, brick: nn.Module, x: Tensor, here: Places, memory: Memory | None = None) -> Tensor:
    """The brick's output computed one way."""
    ctx = Context(here)
    if way == "written":
        with listen(brick, only="*pattern"):
            return brick(x, ctx, memory)
    if way == "chunks":
        with chunked(2):
            return brick(x, ctx, memory)
    return brick(x, ctx, memory)


def results(way: str, brick: nn.Module, x: Tensor, here: Places, memory: Memory | None = None) -> dict[str, Tensor]:
    """The output, and the gradients of input, memory and parameters."""
    sources = {"x": x.detach().requires_grad_()}
    if memory is not None:
        sources["memory"] = memory.x.detach().requires_grad_()
        memory = Memory(sources["memory"], memory.places)
    out = by(way, brick, sources["x"], here, memory)
    (out * out.detach().sin()).sum().backward()
    return {"out": out.detach()} | {name: s.grad for name, s in sources.items()} | gradients(brick)


paddings = st.none() | st.lists(st.lists(st.integers(0, 1), min_size=6, max_size=6), min_size=2, max_size=2)


@settings(max_examples=80)
@given(attentions(), paddings, st.sampled_from([torch.float64, torch.float32]))
def test_N01_fused_written_and_chunked_agree(spec: Attention, real: list[list[int]] | None, dtype: torch.dtype) -> None:
    brick = exact(replace(spec, dropout=0.0), 16).to(dtype).train()
    x, here = torch.randn(2, 6, 16, dtype=dtype), places(6, None if real is None else torch.tensor(real))
    first, *others = (results(way, brick, x, here) for way in WAYS)
    for name, value in first.items():
        assert value.isfinite().all(), name
        for other in others:
            same(other[name], value, 1e-10 if dtype == torch.float64 else 2e-4)


@settings(max_examples=30)
@given(attentions(cross=True), st.integers(1, 3))
def test_N05_the_same_brick_reads_a_memory(spec: Attention, beams: int) -> None:
    brick = exact(replace(spec, dropout=0.0), 16).train()
    x = torch.randn(2 * beams, 4, 16, dtype=torch.float64)
    there = places(5, torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]))
    memory = Memory(torch.randn(2, 5, 16, dtype=torch.float64), there)
    wide = Memory(memory.x.repeat_interleave(beams, 0), there.rows(torch.arange(2).repeat_interleave(beams)))
    expected = by("fused", brick, x, places(4), wide)
    for way in WAYS:
        same(by(way, brick, x, places(4), memory), expected)
    first, *others = (results(way, brick, x, places(4), memory) for way in WAYS)
    for other in others:
        for name, value in first.items():
            same(other[name], value)


def test_B61_grouped_heads_are_repeated_head_by_head() -> None:
    grouped = exact(Attention(4, kv_heads=2, bias=True), 16)
    whole = exact(Attention(4, bias=True), 16)
    with torch.no_grad():
        for name, parameter in whole.named_parameters():
            given = grouped.get_parameter(name)
            if name[0] in "kv":
                rows = given.unflatten(0, (2, 4))
                given = rows[[0, 0, 1, 1]].flatten(0, 1)
            parameter.copy_(given)
    x = torch.randn(1, 3, 16, dtype=torch.float64)
    for way in WAYS:
        same(by(way, grouped, x, places(3)), by(way, whole, x, places(3)))


def test_B61_heads_that_do_not_group_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Attention\.heads: expected a multiple of kv_heads=3, got 8"):
        Attention(heads=8, kv_heads=3)


@pytest.mark.parametrize("way", WAYS)
def test_a_cap_bounds_the_scores(way: str) -> None:
    x = 40 * torch.randn(1, 6, 16, dtype=torch.float64)
    capped, free = exact(Attention(2, softcap=2.0), 16), exact(Attention(2), 16)
    with listen(capped, only="masked") as seen:
        capped(x)
    finite = seen["masked"][seen["masked"].isfinite()]
    assert finite.abs().max() <= 2
    assert (by(way, capped, x, places(6)) - by(way, free, x, places(6))).abs().max() > 1e-3


@pytest.mark.parametrize("mask", [Causal(), Full()])
def test_dropout_of_0_changes_nothing_and_of_more_drops_in_every_way(mask: Causal | Full) -> None:
    x = torch.randn(3, 6, 16, dtype=torch.float64)
    brick = exact(Attention(2, mask=mask, dropout=0.5), 16)
    expected = brick(x)
    brick.spec = replace(brick.spec, dropout=0.0)
    brick.train()
    for way in WAYS:
        same(by(way, brick, x, places(6)), expected)
    brick.spec = replace(brick.spec, dropout=0.5)
    for way in WAYS:
        first, second = by(way, brick, x, places(6)), by(way, brick, x, places(6))
        assert not torch.equal(first, second)


def test_dropout_in_chunks_is_drawn_again_alike_in_backward() -> None:
    brick = exact(Attention(2, dropout=0.4), 16).train()
    x = torch.randn(1, 7, 16, dtype=torch.float64, requires_grad=True)
    with chunked(2):
        torch.manual_seed(3)
        out = brick(x)
        slope = torch.autograd.grad(out.sum(), x)[0]
        step = torch.randn_like(x) * 1e-6
        torch.manual_seed(3)
        up = brick(x + step).sum()
        torch.manual_seed(3)
        down = brick(x - step).sum()
    same((up - down) / 2, (slope * step).sum(), 1e-12)


@pytest.mark.parametrize("position", [None, Alibi(), Relative(), Rope()])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_every_position_works_in_every_dtype(position: object, dtype: torch.dtype) -> None:
    brick = exact(Attention(2, position=position), 16)  # type: ignore[arg-type]
    x, here = torch.randn(2, 6, 16, dtype=torch.float64), places(6, torch.tensor([[1] * 6, [0, 0, 1, 1, 1, 1]]))
    expected = by("fused", brick, x, here)
    brick.to(dtype)
    for way in WAYS:
        got = by(way, brick, x.to(dtype), here)
        assert got.dtype == dtype
        same(got.double(), expected, {torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 8e-2}[dtype])


def test_under_autocast_training_stays_close_to_float32() -> None:
    brick, x = exact(Attention(2), 16).float().train(), torch.randn(2, 6, 16)
    expected = brick(x)
    with torch.autocast("cpu", torch.bfloat16):
        got = brick(x)
        with torch.no_grad():
            shown = brick(x)
    same(got.float(), expected, 5e-2)
    same(shown.float(), expected, 5e-2)
    got.float().sum().backward()
    assert brick.q.weight.grad.isfinite().all()


def test_a_brick_alone_needs_no_context() -> None:
    x = torch.randn(2, 5, 16, dtype=torch.float64)
    for spec in (Attention(2), language_model(1).layers[0]):
        brick = exact(spec, 16)
        same(brick(x), brick(x, Context(places(5))))


def test_layers_share_one_mask_per_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    real = sight.allowed
    monkeypatch.setattr(sight, "allowed", lambda *a: asked.append(1) or real(*a))
    model = build_model(language_model(depth=4)).eval()
    model(ids(2, 5), torch.tensor([[1, 1, 1, 1, 1], [0, 1, 1, 1, 1]]))
    assert len(asked) == 1


def test_no_heads_are_named_in_forward_so_that_a_shard_of_heads_works() -> None:
    whole, shard = exact(Attention(4, bias=True), 16), exact(Attention(4, bias=True), 16)
    x, parts = torch.randn(2, 5, 16, dtype=torch.float64), []
    for rows in (slice(0, 8), slice(8, 16)):
        for name in "qkv":
            setattr(shard, name, nn.Linear(16, 8).double())
            getattr(shard, name).load_state_dict({k: v[rows] for k, v in getattr(whole, name).state_dict().items()})
        shard.out = nn.Linear(8, 16, bias=False).double()
        shard.out.load_state_dict({"weight": whole.out.weight[:, rows]})
        parts.append(shard(x))
    same(sum(parts) + whole.out.bias, whole(x))


def test_a_mask_without_a_meaning_is_named() -> None:
    class Diagonal(Mask):
        """A mask nobody registered."""

    with pytest.raises(
        TypeError, match=r"no meaning for a mask of type Diagonal; register one with mask\.rule\.register"
    ):
        build(Attention(1, mask=Diagonal()), 4)(torch.randn(1, 2, 4))
