"""One step: one shift, real tokens only, batches of any sizes weighed by their tokens."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

from oneblock.bricks import build_model
from oneblock.spec import Tokens
from oneblock.train.config import OptimizerPart
from oneblock.train.data import Batch, collate
from oneblock.train.optimizer import make_optimizer
from oneblock.train.task import loss_sum, mean_loss, precision, reseed, update
from oneblock.zoo import named

TOKENS = Tokens(pad=0, bos=1, eos=2, start=1)
ROWS = [([3, 7, 8, 2], [9, 2]), ([3, 9, 2], [7, 8, 2]), ([3, 8, 2], [8, 9, 10, 11, 2]), ([3, 11, 2], [2])]


def model(dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(0)
    return build_model(named("vaswani", dim=16, depth=1, heads=2, hidden=32, vocab=12, dropout=dropout)).train()


def batch(*numbers: int) -> Batch:
    return collate([ROWS[number] for number in numbers], TOKENS)


def step(windows: list[list[Batch]], smoothing: float = 0.0, clip: float = 0.0) -> tuple[nn.Module, list]:
    made = model()
    optimizer = make_optimizer(made, OptimizerPart(eps=1e-3))
    return made, [update(made, optimizer, window, lr=0.01, smoothing=smoothing, clip=clip) for window in windows]


def distance(one: nn.Module, other: nn.Module) -> float:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return max(float((a - b).detach().abs().max()) for a, b in pairs)


def test_N15_the_loss_is_that_of_the_logits_at_real_tokens() -> None:
    made, given = model(), batch(0, 1, 2)
    labels = torch.full(given.inputs.shape, -100).flatten()
    labels[given.places] = given.labels
    logits = made(given.source, given.mask, decoder_input_ids=given.inputs).logits
    expected = nn.functional.cross_entropy(logits.flatten(0, 1), labels, reduction="sum", label_smoothing=0.1)
    assert loss_sum(made, given, 0.1).item() == pytest.approx(expected.item(), rel=1e-5)


def test_B32_the_shift_is_exactly_one_and_rows_do_not_touch() -> None:
    class Oracle(nn.Module):
        """Knows the row [4, 5, 6, 2] by heart: sees token t, says token t + 1."""

        def __init__(self) -> None:
            super().__init__()
            self.decoder = nn.Module()
            self.decoder.head = nn.Identity()

        def encode(self, source: torch.Tensor, _: torch.Tensor | None) -> torch.Tensor:
            return source

        def features(self, _: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor]:
            follower = torch.zeros(12, dtype=torch.int64)
            follower[torch.tensor([1, 4, 5, 6])] = torch.tensor([4, 5, 6, 2])
            return (20.0 * nn.functional.one_hot(follower[ids], 12),)

    with torch.no_grad():
        known = collate([([3, 2], [4, 5, 6, 2])], TOKENS)
        assert float(loss_sum(Oracle(), known)) < 1e-6
        both = collate([([3, 2], [4, 5, 6, 2]), ([3, 2], [9, 9, 2])], TOKENS)
        alone = collate([([3, 2], [9, 9, 2])], TOKENS)
        assert float(loss_sum(Oracle(), both)) == pytest.approx(float(loss_sum(Oracle(), alone)), abs=1e-5)


def test_B35_accumulating_equals_one_batch_of_all_rows() -> None:
    whole, (done,) = step([[batch(0, 1, 2, 3)]], smoothing=0.1)
    parts, (again,) = step([[batch(0), batch(1), batch(2), batch(3)]], smoothing=0.1)
    assert again.tokens == done.tokens == 11
    assert again.loss == pytest.approx(done.loss, rel=1e-5)
    assert distance(whole, parts) < 1e-6


def test_B35_a_mean_of_means_would_differ() -> None:
    made, losses = model(), []
    for number in range(4):
        given = batch(number)
        losses.append((loss_sum(made, given).item(), given.tokens))
    right = sum(loss for loss, _ in losses) / sum(tokens for _, tokens in losses)
    wrong = sum(loss / tokens for loss, tokens in losses) / 4
    _, (done,) = step([[batch(number) for number in range(4)]])
    assert done.loss / done.tokens == pytest.approx(right, rel=1e-5)
    assert abs(right - wrong) > 1e-3


def test_B37_a_shorter_last_window_counts_its_own_tokens() -> None:
    whole, _ = step([[batch(0, 1)], [batch(2)]])
    parts, _ = step([[batch(0), batch(1)], [batch(2)]])
    assert distance(whole, parts) < 1e-6


def test_B34_a_window_without_tokens_changes_nothing() -> None:
    empty = Batch(
        *(getattr(batch(0), name) for name in ("source", "mask", "inputs")), torch.empty(0), torch.empty(0), 0
    )
    made, outcomes = step([[empty], [empty, batch(0)]])
    alone, _ = step([[batch(0)]])
    assert outcomes[0] is None
    assert outcomes[1].tokens == 2
    assert distance(made, alone) == 0


def test_clipping_bounds_the_norm_and_zero_means_never() -> None:
    _, (free,) = step([[batch(0, 1)]])
    clipped, (done,) = step([[batch(0, 1)]], clip=free.norm / 10)
    unclipped, _ = step([[batch(0, 1)]], clip=free.norm * 10)
    plain, _ = step([[batch(0, 1)]])
    assert done.norm == pytest.approx(free.norm), "the norm before clipping is reported"
    assert distance(unclipped, plain) == 0
    assert distance(clipped, plain) > 0


def test_a_loss_that_is_not_finite_stops_before_the_weights_are_touched() -> None:
    made = model()
    with torch.no_grad():
        made.encoder.layers[0].feedforward.up.weight[0, 0] = math.nan
    before = copy.deepcopy(made.state_dict())
    with pytest.raises(ValueError, match="not finite"):
        update(made, make_optimizer(made, OptimizerPart()), [batch(0)], lr=0.1)
    assert all(torch.equal(value, before[key]) or value.isnan().any() for key, value in made.state_dict().items())
    assert all(parameter.grad is None for parameter in made.parameters())


def test_B40_validation_draws_nothing_and_leaves_training_mode() -> None:
    made = model(dropout=0.5)
    state = torch.get_rng_state()
    losses = [mean_loss(made, [batch(0), batch(1, 2)], 0.1, torch.device("cpu")) for _ in range(2)]
    assert losses[0] == losses[1]
    assert torch.equal(torch.get_rng_state(), state)
    assert made.training
    whole = mean_loss(made, [batch(0, 1, 2)], 0.1, torch.device("cpu"))
    assert losses[0] == pytest.approx(whole, rel=1e-5)
    assert whole[0] != pytest.approx(whole[1], rel=1e-3)


def test_dropout_of_a_step_depends_on_seed_and_step_only() -> None:
    drawn = []
    for seed, number in ((1, 5), (1, 6), (1, 5), (2, 5)):
        reseed(seed, number)
        drawn.append(torch.rand(3).tolist())
        torch.rand(number)
    assert drawn[0] == drawn[2]
    assert len({tuple(values) for values in drawn}) == 3


def test_bfloat16_products_keep_weights_and_loss_in_float32() -> None:
    made = model()
    optimizer = make_optimizer(made, OptimizerPart())
    cast = torch.autocast("cpu", torch.bfloat16)
    done = update(made, optimizer, [batch(0, 1, 2)], lr=0.01, autocast=cast)
    _, (wide,) = step([[batch(0, 1, 2)]])
    assert done.loss == pytest.approx(wide.loss, rel=0.02)
    assert done.loss != wide.loss
    assert {parameter.dtype for parameter in made.parameters()} == {torch.float32}
    assert {entry["exp_avg"].dtype for entry in optimizer.state.values()} == {torch.float32}


def test_dtype_is_a_known_word(monkeypatch: pytest.MonkeyPatch) -> None:
    for able, expected in (({"avx512_bf16": True}, torch.bfloat16), ({}, torch.float32)):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda able=able: able)
        assert precision("auto", torch.device("cpu")) == expected
    assert precision("float32", torch.device("cpu")) == torch.float32
    assert precision("auto", torch.device("cuda")) == torch.bfloat16
    with pytest.raises(ValueError, match="dtype: expected auto, float32 or bfloat16, got 'fp16'"):
        precision("fp16", torch.device("cpu"))
