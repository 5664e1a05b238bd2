"""Where study notes on the Transformer are wrong or silent: the right thing, shown with numbers."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from oneblock.bricks import Context, Memory
from oneblock.cache import make
from oneblock.mask import places
from oneblock.spec import (
    Attention,
    Embedding,
    FeedForward,
    Full,
    LayerNorm,
    SigmaNorm,
    Sinusoidal,
    Tokens,
    get,
)
from oneblock.tap import listen
from oracle import chunked
from specs import VOCAB, exact, gradients, ids, language_model, padded, same, translator


def test_E01_queries_come_from_the_target_keys_and_values_from_the_source() -> None:
    model, source, target = exact(translator(depth=1)), ids(1, 7), ids(1, 3)
    with listen(model, only="decoder.layers.0.cross.*") as seen:
        model(source, decoder_input_ids=target)
    shapes = {name.split(".")[-1]: tuple(x.shape) for name, x in seen.items()}
    assert shapes["query"] == (1, 4, 3, 4)
    assert shapes["key"] == shapes["value"] == (1, 4, 7, 4)
    assert shapes["pattern"] == (1, 4, 3, 7)
    assert shapes["out"] == (1, 3, 16)


def test_E01_the_other_way_round_does_not_even_fit() -> None:
    brick = exact(Attention(1, mask=Full()), 4)
    source, target = torch.randn(7, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    pattern = (brick.q(source) @ brick.k(source).T).softmax(-1)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        pattern @ brick.v(target)


def test_E01_the_memory_is_heard_through_keys_and_values() -> None:
    brick = exact(Attention(2, mask=Full()), 8)
    x, source = torch.randn(1, 3, 8, dtype=torch.float64), torch.randn(1, 5, 8, dtype=torch.float64)
    heard = brick(x, memory=Memory(source, places(5)))
    k, v = brick.k(source[0]).view(5, 2, 4), brick.v(source[0]).view(5, 2, 4)
    q = brick.q(x[0]).view(3, 2, 4)
    z = [((q[:, h] @ k[:, h].T) / 2).softmax(-1) @ v[:, h] for h in range(2)]
    same(heard[0], brick.out(torch.cat(z, -1)))


def test_E02_epsilon_under_the_root_or_beside_it_differ_by_3_3() -> None:
    x = 1e-3 * torch.tensor([[-1.0, 1.0, -1.0, 1.0]], dtype=torch.float64)
    under, beside = exact(LayerNorm(1e-5, bias=False), 4), exact(SigmaNorm(1e-5, bias=False), 4)
    beside.weight = under.weight
    ratio = beside(x) / under(x)
    same(ratio, torch.full_like(x, math.sqrt(1e-6 + 1e-5) / (1e-3 + 1e-5)))
    assert ratio[0, 0].item() == pytest.approx(3.3, abs=0.05)


def test_E02_the_variance_is_the_biased_one() -> None:
    x, brick = torch.randn(2, 5, dtype=torch.float64), exact(LayerNorm(0.1), 5)
    centred = x - x.mean(-1, keepdim=True)
    expected = centred / (centred.square().mean(-1, keepdim=True) + 0.1).sqrt()
    same(brick(x), expected * brick.weight + brick.bias)
    sigma = exact(SigmaNorm(0.1, unbiased=True), 5)
    same(sigma(x), centred / (x.std(-1, keepdim=True) + 0.1) * sigma.weight + sigma.bias)


def test_E02_without_epsilon_a_constant_vector_is_0_over_0() -> None:
    constant = torch.full((1, 4), 3.0)
    assert exact(LayerNorm(0.0), 4).float()(constant).isnan().all()
    assert exact(LayerNorm(1e-12), 4).float()(constant).isfinite().all()


@pytest.mark.parametrize(("eps", "value"), [(1e-5, 0.15617), (1e-12, 0.999998)])
def test_B26_epsilon_belongs_to_the_spec(eps: float, value: float) -> None:
    brick = exact(LayerNorm(eps), 2)
    x = torch.tensor([[0.0, 1e-3]], dtype=torch.float64)
    plain = (brick(x) - brick.bias) / brick.weight
    assert plain[0].tolist() == pytest.approx([-value, value], abs=1e-5)
    model = exact(language_model(norm=LayerNorm(eps), block={"norm": LayerNorm(eps)}))
    assert {module.eps for module in model.modules() if isinstance(module, nn.LayerNorm)} == {eps}


def influence(brick: nn.Module, x: Tensor) -> Tensor:
    """Which input token moves which output token: bool (token, token)."""
    slopes = torch.autograd.functional.jacobian(lambda x: brick(x[None])[0], x)
    return slopes.abs().amax((1, 3)) > 1e-12


def test_E03_attention_mixes_tokens_and_feed_forward_transforms_each() -> None:
    x = torch.randn(4, 8, dtype=torch.float64)
    assert influence(exact(Attention(2, mask=Full()), 8), x).all()
    assert torch.equal(influence(exact(Attention(2), 8), x), torch.ones(4, 4).tril().bool())
    assert torch.equal(influence(exact(FeedForward(9), 8), x), torch.eye(4).bool())


def test_E04_rows_are_tokens_and_the_stored_matrix_is_the_transpose() -> None:
    brick, x = exact(Attention(2, head_dim=3), 8), torch.randn(5, 8, dtype=torch.float64)
    assert brick.q.weight.shape == (6, 8)
    w = brick.q.weight.T  # (dim, heads * head_dim)
    with listen(brick, only="query") as seen:
        brick(x[None])
    same(seen["query"][0].transpose(0, 1).flatten(1), x @ w)


@pytest.mark.parametrize("value_dim", [4, 3])
def test_E05_the_output_projection_follows_the_joined_heads(value_dim: int) -> None:
    brick, x = exact(Attention(2, value_dim=value_dim, bias=True), 8), torch.randn(1, 5, 8, dtype=torch.float64)
    with listen(brick, only="z") as seen:
        out = brick(x)
    joined = seen["z"].transpose(1, 2).flatten(2)  # (batch, length, heads * value_dim)
    assert joined.shape == (1, 5, 2 * value_dim)
    same(out, joined @ brick.out.weight.T + brick.out.bias)


@pytest.mark.parametrize(
    ("scale", "expected"), [("sqrt_dim", [0.4, 2.0, -0.2, 1.6]), (None, [0.2, 1.5, -0.1, 1.3])], ids=["2017", "raw"]
)
def test_E06_the_embedding_is_multiplied_before_the_position_is_added(scale: str, expected: list[float]) -> None:
    brick = exact(Embedding(1, Sinusoidal(), scale=scale), 4)  # type: ignore[arg-type]
    with torch.no_grad():
        brick.token.weight.copy_(torch.tensor([[0.2, 0.5, -0.1, 0.3]]))
    same(brick(torch.zeros(1, 1, dtype=torch.long), places(1))[0, 0], torch.tensor(expected).double(), 1e-7)


def test_E07_values_have_a_width_of_their_own() -> None:
    brick = exact(Attention(2, head_dim=4, value_dim=3), 8)
    with listen(brick) as seen:
        brick(torch.randn(1, 5, 8, dtype=torch.float64))
    assert seen["key"].shape == (1, 2, 5, 4)
    assert seen["value"].shape == seen["z"].shape == (1, 2, 5, 3)


@pytest.mark.parametrize("head_dim", [None, 4, 9])
def test_E09_scores_are_divided_by_the_root_of_the_heads_width(head_dim: int | None) -> None:
    brick = exact(Attention(4, head_dim=head_dim), 8)
    with listen(brick) as seen:
        brick(torch.randn(1, 5, 8, dtype=torch.float64))
    products = seen["query"] @ seen["key"].mT
    same(seen["scores"], products / math.sqrt(head_dim or 2))
    assert (seen["scores"] - products / math.sqrt(8)).abs().max() > 1e-3


def test_E11_softmax_of_minus_infinity_is_0_and_of_nothing_else_is_0_over_0() -> None:
    assert torch.tensor([0.0, -math.inf]).softmax(-1).tolist() == [1, 0]
    assert torch.tensor([-math.inf, -math.inf]).softmax(-1).isnan().all()


def test_E11_a_finite_fill_can_be_outscored_and_ours_cannot() -> None:
    scores, hidden = torch.tensor([-3e4, 0.0]), torch.tensor([False, True])
    assert scores.masked_fill(hidden, -1e4).softmax(-1).tolist() == [0, 1]
    assert scores.masked_fill(hidden, -math.inf).softmax(-1).tolist() == [1, 0]
    brick = exact(Attention(1, mask=Full(), scale=1e6), 4)
    x = torch.randn(1, 3, 4, dtype=torch.float64)
    for real in ([1, 0, 0], [0, 1, 0], [0, 0, 1]):
        here = places(3, torch.tensor([real]))
        only = brick.out(brick.v(x))[:, real.index(1)]
        same(brick(x, Context(here)), only[:, None].expand(1, 3, 4))
        with listen(brick, only="pattern"):
            same(brick(x, Context(here)), only[:, None].expand(1, 3, 4))


def zero_rows(brick: nn.Module, way: str, real: Tensor) -> tuple[Tensor, Tensor]:
    """(output, gradient of the input) of an attention, computed one way, under left padding."""
    x = torch.randn(2, 4, 8, dtype=torch.float64, requires_grad=True)
    ctx = Context(places(4, real))
    if way == "written":
        with listen(brick, only="pattern"):
            out = brick(x, ctx)
    elif way == "chunks":
        with chunked(2):
            out = brick(x, ctx)
    else:
        out = brick(x, ctx)
    return out, torch.autograd.grad((out**2).sum(), x)[0]


@pytest.mark.parametrize("way", ["fused", "written", "chunks"])
@pytest.mark.parametrize("train", [False, True])
def test_E11_B11_B13_a_row_with_nothing_to_see_is_zeros_forward_and_backward(way: str, train: bool) -> None:
    brick = exact(Attention(2, dropout=0.3 if train else 0.0), 8).train(train)
    real = torch.tensor([[0, 0, 1, 1], [0, 0, 0, 0]])
    out, slope = zero_rows(brick, way, real)
    assert (out[real == 0] == 0).all()
    assert (out[real == 1] != 0).any()
    assert slope.isfinite().all()
    assert (slope[real == 0] == 0).all()


@pytest.mark.parametrize("room", [None, 6])
def test_E11_B13_with_a_cache_it_is_zeros_too(room: int | None) -> None:
    spec = language_model(depth=1, block={"wiring": "bare"})
    model, (x, mask) = exact(spec), padded([ids(2), ids(4)], "left")
    cache, outs = make(spec, room), []
    with torch.no_grad():
        model.layers[0].attention.out.bias.zero_()
    for t in range(4):
        with listen(model, only="layers.0.attention.out") as seen:
            logits = model(x[:, t : t + 1], mask[:, : t + 1], cache=cache).logits
        assert logits.isfinite().all()
        outs.append(seen["layers.0.attention.out"])
    out = torch.cat(outs, 1)
    assert (out[mask == 0] == 0).all()
    assert (out[mask == 1].abs().amax(-1) > 0).all()


def test_E11_training_on_rows_of_padding_stays_finite() -> None:
    model, x = exact(language_model()), ids(2, 4)
    mask = torch.tensor([[0, 0, 0, 0], [0, 1, 1, 1]])
    model(x, mask, labels=x.masked_fill(mask == 0, -100)).loss.backward()
    assert all(gradient.isfinite().all() for gradient in gradients(model).values())


def test_E14_the_decoder_reads_its_target_shifted_right_by_one() -> None:
    model, x, y = exact(translator()), ids(1, 5), torch.tensor([[5, 6, 7, 2]])
    shifted = torch.tensor([[1, 5, 6, 7]])
    same(model(x, labels=y).logits, model(x, decoder_input_ids=shifted).logits)
    assert get(model.spec, "decoder.tokens") == Tokens(pad=0, bos=1, eos=2, start=1)


def test_E14_the_mask_alone_would_let_a_position_read_its_own_answer() -> None:
    model, x = exact(translator()), ids(1, 5)
    one, other = torch.tensor([[5, 6, 7, 2]]), torch.tensor([[5, 6, 8, 2]])
    at, same_until = 2, slice(0, 3)
    forced = [model(x, labels=y).logits for y in (one, other)]
    same(forced[0][:, same_until], forced[1][:, same_until])
    unshifted = [model(x, decoder_input_ids=y).logits for y in (one, other)]
    assert (unshifted[0][:, at] - unshifted[1][:, at]).abs().max() > 1e-3


def test_E14_labels_of_a_language_model_are_its_inputs_one_later() -> None:
    model, x = exact(language_model()), ids(2, 5)
    out = model(x, labels=x)
    same(out.loss, F.cross_entropy(out.logits[:, :-1].flatten(0, 1), x[:, 1:].flatten()))
    assert out.tokens == 8
    assert out.logits.shape[-1] == VOCAB
