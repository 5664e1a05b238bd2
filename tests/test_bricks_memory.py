"""Attention over long texts: what is kept for backward, and the most at any moment, grow with length only."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from meter import Meter
from oneblock.bricks import Context, build, build_model
from oneblock.mask import places
from oneblock.spec import Attention, Causal, Full, Relative, Window
from oracle import chunked
from specs import language_model

BIG = (2048, 4096, 8192)
CASES: dict[str, dict[str, Any]] = {
    "causal": {},
    "both ways": {"mask": Full()},
    "dropout": {"dropout": 0.1},
    "window": {"mask": Causal() & Window(64)},
    "cap": {"softcap": 5.0},
}


def kept(spec: Attention, length: int, padded: bool = False, backward: bool = False) -> tuple[int, int]:
    """(bytes that stay after the forward pass of one attention, the most at any moment of it and its backward)."""
    torch.manual_seed(0)
    brick, x = build(spec, 8).train(), torch.randn(1, length, 8, requires_grad=True)
    mask = torch.ones(1, length)
    mask[:, length - 5 :] = 1 - padded
    ctx = Context(places(length, mask))
    with Meter() as meter:
        out: Tensor = brick(x, ctx)
        stays = meter.now
        if backward:
            out.sum().backward()
            assert x.grad is not None
            assert x.grad.isfinite().all()
    return stays, meter.most


def grows_with_length(bytes_at: list[int]) -> bool:
    return all(after <= 2.3 * before for before, after in pairwise(bytes_at))


def test_the_meter_counts_what_lives() -> None:
    with Meter() as meter:
        a = torch.zeros(1000)
        b = a.exp()
        assert meter.now == 8000
        del a
        assert meter.now == 4000
        view = b[10:]
        del b
        assert meter.now == 4000
        del view
    assert (meter.now, meter.most) == (0, 8000)


@pytest.mark.parametrize(
    ("case", "padded"),
    [("causal", False), ("causal", True), ("both ways", True), ("dropout", True), ("window", False), ("cap", False)],
)
def test_N19_what_is_kept_for_backward_grows_with_length(case: str, padded: bool) -> None:
    spec = Attention(1, **CASES[case])
    assert grows_with_length([kept(spec, length, padded)[0] for length in BIG])
    assert kept(spec, 4096, padded)[0] < 4096 * 8 * 4 * 16


@pytest.mark.parametrize("padded", [False, True], ids=["", "padded"])
@pytest.mark.parametrize(
    "case",
    [*CASES, "grouped", "values of another width", "bias table"],
)
def test_N19_the_most_at_any_moment_grows_with_length(case: str, padded: bool) -> None:
    more = {
        "grouped": {"heads": 2, "kv_heads": 1},
        "values of another width": {"value_dim": 12},
        "bias table": {"position": Relative()},
    }
    spec = Attention(**({"heads": 1} | (more | CASES)[case]))
    with chunked(32):
        most = [kept(spec, length, padded, backward=True)[1] for length in (256, 512, 1024, 2048)]
        stays = [kept(spec, length, padded)[0] for length in (256, 512, 1024, 2048)]
    assert grows_with_length(most)
    assert grows_with_length(stays)


def test_a_whole_model_keeps_a_multiple_of_its_length() -> None:
    spec = language_model(attention={"dropout": 0.1}, block={"dropout": 0.1})
    torch.manual_seed(0)
    model, sizes = build_model(spec).train(), []
    for length in (256, 512, 1024):
        x = torch.randint(3, 13, (2, length))
        mask = torch.ones_like(x)
        mask[0, :9] = 0
        with chunked(32), Meter() as meter:
            model(x, mask, labels=x, logits_to_keep=0).loss.backward()
        sizes.append(meter.most)
    assert grows_with_length(sizes)
