"""Dropout: it acts in training only, at every site a spec names, with the share it says."""

from __future__ import annotations

import pytest
import torch

from oneblock.bricks.dropout import Dropout, dropout
from oneblock.spec import Spec, put, walk
from oneblock.tap import listen
from specs import exact, ids, language_model, translator

SITES = [path for path, _ in walk(translator(depth=1)) if path.endswith(".dropout")]


def test_every_site_is_named_in_the_spec() -> None:
    assert [
        f"{stack}.{site}"
        for stack, sites in {
            "encoder": ["embedding.dropout", "layers.0.attention.dropout", "layers.0.feedforward.dropout"],
            "decoder": ["embedding.dropout", "layers.0.attention.dropout", "layers.0.feedforward.dropout"],
        }.items()
        for site in [
            *sites,
            *(["layers.0.cross.dropout"] if stack == "decoder" else []),
            "layers.0.dropout",
            "dropout",
        ]
    ] == SITES


@pytest.mark.parametrize("site", SITES)
def test_each_site_acts_on_its_own_and_only_in_training(site: str) -> None:
    model, x = exact(put(translator(depth=1), site, 0.5)), ids(2, 5)
    shown = model(x, decoder_input_ids=x).logits
    assert torch.equal(model(x, decoder_input_ids=x).logits, shown)
    model.train()
    first, second = model(x, decoder_input_ids=x).logits, model(x, decoder_input_ids=x).logits
    assert not torch.equal(first, second)
    assert not torch.equal(first, shown)
    torch.manual_seed(5)
    again = model(x, decoder_input_ids=x).logits
    torch.manual_seed(5)
    assert torch.equal(model(x, decoder_input_ids=x).logits, again)


@pytest.mark.parametrize("wiring", ["parallel", "parallel-shared", "sandwich", "post"])
def test_a_blocks_dropout_acts_in_every_wiring(wiring: str) -> None:
    model, x = exact(language_model(block={"wiring": wiring, "dropout": 0.5})).train(), ids(2, 5)
    assert not torch.equal(model(x).logits, model(x).logits)


def zeros(spec: Spec, name: str) -> float:
    """Which share of a tapped tensor is 0 in training."""
    model, x = exact(spec).train(), ids(8, 40)
    with listen(model, only=name) as seen:
        model(x)
    tensor = seen[name] if not name.endswith("stream") else seen.operands[name]["branch"]
    return float((tensor == 0).double().mean())


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_E15_sites_drop_what_they_say_they_drop(share: float) -> None:
    spec = language_model(depth=1)
    assert zeros(put(spec, "embedding.dropout", share), "embedding.embedded") == pytest.approx(share, abs=0.03)
    assert zeros(put(spec, "layers.*.dropout", share), "layers.0.stream") == pytest.approx(share, abs=0.03)
    seen = 21 / 40  # of 40 x 40 weights the mask hides 780
    expected = 1 - seen * (1 - share) * 40 / 41
    weights = zeros(put(spec, "layers.*.attention.dropout", share), "layers.0.attention.pattern")
    assert weights == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.9])
@pytest.mark.parametrize("shape", [(400, 500), (7, 3), (1,)])
def test_share_and_mean_are_right(share: float, shape: tuple[int, ...]) -> None:
    draws = [dropout(torch.ones(shape), share) for _ in range(max(2, 2000 // shape[0]))]
    y = torch.stack(draws)
    kept = y[y != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - share)))
    spread = 5 * (share * (1 - share) / y.numel()) ** 0.5 + 2**-15
    assert (y == 0).double().mean().item() == pytest.approx(share, abs=spread)


def test_neighbours_are_dropped_independently() -> None:
    y = (dropout(torch.ones(200_000), 0.5) == 0).double() - 0.5
    for distance in (1, 2, 3, 4, 8):
        assert abs((y[distance:] * y[:-distance]).mean() * 4) < 0.02


def test_gradient_passes_where_values_do() -> None:
    x = torch.randn(50, requires_grad=True)
    y = dropout(x, 0.4)
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.where(y == 0, 0.0, 1 / 0.6))


def test_no_dropout_is_the_tensor_itself_and_draws_nothing() -> None:
    x, state = torch.randn(9), torch.get_rng_state()
    assert dropout(x, 0.0) is x
    assert Dropout(0.9).eval()(x) is x
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_dtype_and_layout_stay(dtype: torch.dtype) -> None:
    x = torch.ones(6, 5, dtype=dtype).T
    y = dropout(x, 0.5)
    assert y.dtype == dtype
    assert y.shape == x.shape
    assert set(y.unique().tolist()) == {0.0, 2.0}


def test_attention_with_dropout_is_right_on_average() -> None:
    spec = language_model(depth=1, attention={"dropout": 0.3}).layers[0].attention
    brick, x = exact(spec, 16), torch.randn(1, 6, 16, dtype=torch.float64)
    expected = brick(x)
    brick.train()
    draws = torch.cat([brick(x.expand(200, -1, -1)) for _ in range(10)])
    error = (draws.mean(0) - expected[0]).abs()
    spread = draws.std(0) / len(draws) ** 0.5
    assert (error < 5 * spread + 1e-9).all()
