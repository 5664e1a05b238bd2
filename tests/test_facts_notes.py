"""What study notes on the Transformer say, shown: scores, masks, heads, norms, feed-forward, embeddings, positions."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from oneblock.bricks import Context, Memory, build_model
from oneblock.bricks.positions import sinusoids
from oneblock.cache import make
from oneblock.mask import allowed, places, to_added
from oneblock.spec import (
    Attention,
    Block,
    Causal,
    Embedding,
    FeedForward,
    Full,
    LayerNorm,
    Sinusoidal,
    Wiring,
    diff,
    get,
    put,
)
from oneblock.tap import listen
from oneblock.zoo import named
from specs import VOCAB, exact, ids, language_model, same, translator


def entropy(scores: Tensor) -> float:
    return float(torch.special.entr(scores.softmax(-1)).sum(-1).mean())


def test_N02_variance_of_scores_is_the_width_of_a_head_and_scaling_makes_it_1() -> None:
    for width in (4, 16, 64, 256):
        q, k = torch.randn(20_000, width), torch.randn(20_000, width)
        dots = (q * k).sum(-1)
        assert dots.var().item() == pytest.approx(width, rel=0.06)
        assert (dots / math.sqrt(width)).var().item() == pytest.approx(1, rel=0.06)


def test_N02_without_scaling_the_softmax_saturates() -> None:
    found = []
    for width in (4, 16, 64, 256):
        q, k = torch.randn(500, width), torch.randn(32, width)
        found.append((entropy(q @ k.T), entropy(q @ k.T / math.sqrt(width))))
    unscaled, scaled = zip(*found, strict=True)
    assert all(later < 0.75 * earlier for earlier, later in pairwise(unscaled))
    assert max(scaled) - min(scaled) < 0.3
    assert min(scaled) > 0.8 * math.log(32)


def test_N03_causal_is_0_on_and_below_the_diagonal_and_minus_infinity_above() -> None:
    here, inf = places(3), math.inf
    assert to_added(allowed(Causal(), here, here))[0].tolist() == [[0, -inf, -inf], [0, 0, -inf], [0, 0, 0]]


def test_N03_the_mask_comes_before_the_softmax() -> None:
    model = exact(language_model(depth=1))
    with listen(model, only="layers.0.attention.*") as seen:
        model(ids(2, 5))
    scores, masked, pattern = (seen[f"layers.0.attention.{name}"] for name in ("scores", "masked", "pattern"))
    above = torch.ones(5, 5).triu(1).bool()
    assert (masked[..., above] == -torch.inf).all()
    same(masked[..., ~above], scores[..., ~above], 0)
    assert (pattern[..., above] == 0).all()
    same(pattern, masked.softmax(-1))
    same(pattern.sum(-1), torch.ones(2, 4, 5, dtype=torch.float64))


@settings(max_examples=60)
@given(
    st.integers(1, 4), st.integers(1, 3), st.none() | st.integers(1, 7), st.none() | st.integers(1, 7), st.booleans()
)
def test_N04_heads_groups_and_widths_are_free_and_the_output_projection_is_always_there(
    kv_heads: int, group: int, head_dim: int | None, value_dim: int | None, bias: bool
) -> None:
    heads, dim = kv_heads * group, 12
    if head_dim is None and dim % heads:
        head_dim = 5
    brick = exact(Attention(heads, kv_heads, head_dim, value_dim, bias=bias), dim)
    width = head_dim or dim // heads
    value = value_dim or width
    assert brick.q.weight.shape == (heads * width, dim)
    assert brick.k.weight.shape == (kv_heads * width, dim)
    assert brick.v.weight.shape == (kv_heads * value, dim)
    assert brick.out.weight.shape == (dim, heads * value)
    assert brick(torch.randn(2, 3, dim, dtype=torch.float64)).shape == (2, 3, dim)


def test_N05_cross_attention_over_the_stream_itself_is_self_attention() -> None:
    brick, x = exact(Attention(2, mask=Full(), bias=True), 8), torch.randn(2, 5, 8, dtype=torch.float64)
    same(brick(x, memory=Memory(x, places(5))), brick(x))
    assert brick(x[:, :3], memory=Memory(x, places(5))).shape == (2, 3, 8)


@torch.no_grad()
def silent(wiring: Wiring, **arguments: float) -> torch.nn.Module:
    """A block whose sublayers have learnt to add nothing."""
    spec = Block(Attention(2, bias=True), FeedForward(16, bias=True), wiring=wiring, norm=LayerNorm(), **arguments)
    block = exact(spec, 8)
    for name, parameter in block.named_parameters():
        if ".out." in name or ".down." in name or ("_branch" in name and name.endswith("bias")):
            parameter.zero_()
    return block


@pytest.mark.parametrize("wiring", ["pre", "sandwich", "branch", "parallel", "parallel-shared", "bare"])
def test_N06_sublayers_that_add_nothing_leave_the_stream_and_its_gradient_as_they_are(wiring: Wiring) -> None:
    x = torch.randn(2, 4, 8, dtype=torch.float64, requires_grad=True)
    out = silent(wiring)(x)
    same(out, x, 0)
    slope = torch.randn_like(x)
    same(torch.autograd.grad(out, x, slope)[0], slope, 1e-12)


def test_N06_after_a_post_norm_or_without_a_residual_that_is_lost() -> None:
    x = torch.randn(2, 4, 8, dtype=torch.float64)
    assert (silent("post")(x) - x).abs().max() > 0.1
    assert (silent("pre", skip=0.0)(x) == 0).all()


def test_N06_a_residual_adds_the_sublayers_output_to_the_stream() -> None:
    block, x = exact(language_model(depth=1).layers[0], 16), torch.randn(2, 4, 16, dtype=torch.float64)
    after = x + block.attention(block.norms["attention_pre"](x))
    same(block(x), after + block.feedforward(block.norms["feedforward_pre"](after)))


def test_N07_layer_norm_uses_one_tokens_features_and_no_other_token() -> None:
    brick, x = exact(LayerNorm(), 6), torch.randn(3, 4, 6, dtype=torch.float64)
    out = brick(x)
    same(brick(x[1:2, 2:3])[0, 0], out[1, 2])
    plain = (out - brick.bias) / brick.weight
    same(plain.mean(-1), torch.zeros(3, 4, dtype=torch.float64))
    same(plain.var(-1, correction=0), torch.ones(3, 4, dtype=torch.float64), 1e-3)


def test_N08_feed_forward_treats_each_token_on_its_own() -> None:
    brick, x = exact(FeedForward(20, "relu", bias=True), 6), torch.randn(5, 6, dtype=torch.float64)
    slopes = torch.autograd.functional.jacobian(brick, x)  # (token, feature, token, feature)
    between = slopes.abs().amax((1, 3))
    assert torch.equal(between > 0, torch.eye(5).bool())
    order = torch.tensor([3, 1, 4, 0, 2])
    same(brick(x[order]), brick(x)[order], 1e-12)
    same(brick(x[2]), brick(x)[2], 1e-12)


def test_N08_it_is_wide_inside() -> None:
    spec = named("vaswani").encoder.layers[0].feedforward
    with torch.device("meta"):
        brick = build_model(spec, 512)
    assert (tuple(brick.up.weight.shape), tuple(brick.down.weight.shape)) == ((2048, 512), (512, 2048))
    brick, x = exact(FeedForward(3, "relu", bias=True), 2), torch.randn(2, dtype=torch.float64)
    inside = (brick.up.weight @ x + brick.up.bias).relu()
    same(brick(x), brick.down.weight @ inside + brick.down.bias)


def test_N09_pre_and_post_differ_in_one_word() -> None:
    pre, post = language_model(), put(language_model(), "layers.*.wiring", "post")
    assert [change.path for change in diff(pre, post)] == ["layers.*.wiring"]
    block, x = exact(post.layers[0], 16), torch.randn(2, 4, 16, dtype=torch.float64)
    after = block.norms["attention_post"](x + block.attention(x))
    same(block(x), block.norms["feedforward_post"](after + block.feedforward(after)))


def test_N10_a_lookup_is_a_one_hot_times_the_matrix() -> None:
    brick, x = exact(Embedding(VOCAB), 8), ids(2, 5)
    onehot = torch.nn.functional.one_hot(x, VOCAB).double()
    same(brick(x, places(5)), onehot @ brick.token.weight, 0)
    brick(x, places(5)).sum().backward()
    touched = (brick.token.weight.grad != 0).any(-1)
    assert set(touched.nonzero().flatten().tolist()) == set(x.flatten().tolist())


def test_N11_sin_squared_plus_cos_squared_is_1() -> None:
    table = sinusoids(Sinusoidal(), torch.arange(2000)[None], 64, torch.float64)[0]
    same(table[:, ::2] ** 2 + table[:, 1::2] ** 2, torch.ones(2000, 32, dtype=torch.float64), 1e-12)
    same((table**2).sum(-1), torch.full((2000,), 32.0, dtype=torch.float64), 1e-11)


def test_N11_worked_example_of_four_features() -> None:
    table = sinusoids(Sinusoidal(), torch.arange(4)[None], 4)[0]
    expected = [[0, 1, 0, 1], [0.841, 0.540, 0.010, 1.0], [0.909, -0.416, 0.020, 1.0], [0.141, -0.990, 0.030, 1.0]]
    same(table, torch.tensor(expected), 6e-4)


def test_N11_a_step_of_fixed_length_is_the_same_rotation_everywhere() -> None:
    table = sinusoids(Sinusoidal(), torch.arange(100)[None], 8, torch.float64)[0]
    similar = table @ table.T
    for distance in (1, 7, 30):
        along = similar.diagonal(distance)
        same(along, along[:1].expand_as(along))


def test_N12_the_sizes_of_2017() -> None:
    spec = named("vaswani")
    assert (spec.encoder.dim, len(spec.encoder.layers), len(spec.decoder.layers)) == (512, 6, 6)
    assert get(spec, "encoder.layers.0.attention.heads") == 8
    assert get(spec, "decoder.layers.5.feedforward.hidden") == 2048
    with torch.device("meta"):
        model = build_model(spec)
    assert model.encoder.layers[0].attention.head_dim == 64
    assert sum(p.numel() for p in model.parameters()) == 63_082_496


@pytest.mark.parametrize("cached", [False, True])
def test_N13_all_positions_at_once_are_the_positions_one_by_one(cached: bool) -> None:
    model, x, y = exact(translator()), ids(2, 6), ids(2, 7)
    at_once, memory, cache = model(x, decoder_input_ids=y).logits, model.encode(x), make(model.spec.decoder)
    for t in range(7):
        if cached:
            step = model(encoder_outputs=memory, decoder_input_ids=y[:, t : t + 1], cache=cache).logits
        else:
            step = model(encoder_outputs=memory, decoder_input_ids=y[:, : t + 1]).logits
        same(step[:, -1], at_once[:, t])


def test_N13_a_decoder_block_looks_at_itself_then_at_the_source_then_thinks() -> None:
    model = exact(translator(depth=1))
    with listen(model, only="decoder.layers.0.*.out") as seen:
        model(ids(1, 4), decoder_input_ids=ids(1, 3))
    assert [name.split(".")[-2] for name in seen] == ["attention", "cross", "feedforward"]


def test_N14_encoder_decoder_and_language_model_are_one_block_with_other_parts() -> None:
    spec = translator()
    changes = {change.path: change.after for change in diff(spec.encoder.layers[0], spec.decoder.layers[0])}
    assert changes == {"attention.mask": Causal(), "cross": spec.decoder.layers[0].cross}
    alone = put(spec.decoder.layers[0], "cross", None)
    assert [change.path for change in diff(spec.encoder.layers[0], alone)] == ["attention.mask"]


def test_N14_only_the_encoder_sees_what_comes_later() -> None:
    model, x = exact(translator()), ids(1, 5)
    later = x.clone()
    later[0, 4] = 3 + (x[0, 4] - 2) % (VOCAB - 3)
    assert (model.encode(later).x[:, 0] - model.encode(x).x[:, 0]).abs().max() > 1e-3
    same(model(x, decoder_input_ids=later).logits[:, :4], model(x, decoder_input_ids=x).logits[:, :4])


def test_N23_without_positions_a_sentence_is_a_bag_of_tokens() -> None:
    model, order = exact(language_model(attention={"position": None, "mask": Full()})), torch.tensor([2, 1, 0])
    me_love_you = torch.tensor([[5, 6, 7]])
    same(model(me_love_you[:, order]).logits, model(me_love_you).logits[:, order])


@pytest.mark.parametrize("position", ["added", "rotated"])
def test_N23_with_positions_order_matters(position: str) -> None:
    rotated = language_model(attention={"mask": Full()})
    added = language_model(attention={"position": None, "mask": Full()}, embedding=Embedding(VOCAB, Sinusoidal()))
    model, order = exact(added if position == "added" else rotated), torch.tensor([2, 1, 0])
    me_love_you = torch.tensor([[5, 6, 7]])
    assert (model(me_love_you[:, order]).logits - model(me_love_you).logits[:, order]).abs().max() > 1e-3


def test_N23_the_causal_mask_alone_already_tells_order() -> None:
    model, order = exact(language_model(attention={"position": None})), torch.tensor([2, 1, 0])
    x = torch.tensor([[5, 6, 7]])
    assert (model(x[:, order]).logits - model(x).logits[:, order]).abs().max() > 1e-3


def test_what_layers_ask_alike_is_answered_once_per_forward() -> None:
    block, x = exact(language_model(depth=1).layers[0], 16), torch.randn(1, 4, 16, dtype=torch.float64)
    ctx = Context(places(4))
    same(block(x, ctx), block(x))
    assert len(ctx.memo) == 2
