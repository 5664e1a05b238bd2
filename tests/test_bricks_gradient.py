"""Gradients are those of finite differences, for every kind of brick; and finite where a vector is constant."""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck

from oneblock.bricks import Context, Memory
from oneblock.mask import places
from oneblock.spec import (
    Activation,
    Alibi,
    Attention,
    Block,
    Causal,
    FeedForward,
    Full,
    Head,
    LayerNorm,
    Norm,
    Relative,
    RMSNorm,
    Rope,
    SigmaNorm,
    Transform,
    Window,
    Wiring,
)
from specs import SERIAL, VOCAB, exact, language_model

NORMS: tuple[Norm, ...] = (
    LayerNorm(),
    LayerNorm(1e-12, bias=False),
    SigmaNorm(),
    SigmaNorm(1e-2, unbiased=True),
    RMSNorm(),
    RMSNorm(centred=True),
)


def checks(module: nn.Module, *inputs: torch.Tensor, ctx: Context | None = None) -> bool:
    """Finite differences of every input and every parameter."""
    names = [name for name, _ in module.named_parameters()]
    values = [parameter.detach().requires_grad_() for parameter in module.parameters()]

    def call(*tensors: torch.Tensor) -> torch.Tensor:
        given = dict(zip(names, tensors[len(inputs) :], strict=True))
        rest = {} if ctx is None else {"ctx": Context(ctx.here, ctx.memory)}
        return torch.func.functional_call(module, given, tensors[: len(inputs)], rest)

    return gradcheck(call, (*(x.detach().requires_grad_() for x in inputs), *values))


@pytest.mark.parametrize("norm", NORMS, ids=str)
def test_norms(norm: Norm) -> None:
    assert checks(exact(norm, 5), torch.randn(2, 5, dtype=torch.float64))


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("activation", get_args(Activation))
def test_feed_forward(activation: Activation, gated: bool) -> None:
    assert checks(exact(FeedForward(4, activation, gated, bias=True), 3), torch.randn(2, 3, dtype=torch.float64))


@pytest.mark.parametrize(
    "spec",
    [
        Attention(2, bias=True),
        Attention(2, kv_heads=1, head_dim=4, value_dim=3, position=Rope()),
        Attention(2, mask=Full(), position=Relative(4, 8), qk_norm=RMSNorm()),
        Attention(2, mask=Causal() & Window(2), position=Alibi(), softcap=2.0),
    ],
    ids=["plain", "grouped and rotated", "bias table", "window and cap"],
)
@pytest.mark.parametrize("padded", [False, True], ids=["", "padded"])
def test_attention(spec: Attention, padded: bool) -> None:
    real = torch.tensor([[0, 1, 1], [1, 1, 1]]) if padded else None
    x = torch.randn(2, 3, 4, dtype=torch.float64)
    assert checks(exact(spec, 4), x, ctx=Context(places(3, real)))


@pytest.mark.parametrize("wiring", get_args(Wiring))
def test_block(wiring: Wiring) -> None:
    block = Block(
        Attention(2), FeedForward(3, "gelu", bias=True), wiring=wiring, norm=LayerNorm(1e-3), skip=1.5, branch_scale=0.5
    )
    assert checks(exact(block, 4), torch.randn(1, 3, 4, dtype=torch.float64))


@pytest.mark.parametrize("wiring", SERIAL)
def test_block_that_reads_a_memory(wiring: Wiring) -> None:
    block = exact(Block(Attention(1), FeedForward(3), cross=Attention(1, mask=Full()), wiring=wiring), 2)
    there = torch.randn(1, 4, 2, dtype=torch.float64)
    here = places(3)
    ctx = Context(here, Memory(there, places(4, torch.tensor([[1, 1, 0, 1]]))))
    assert checks(block, torch.randn(1, 3, 2, dtype=torch.float64), ctx=ctx)


def test_head_with_everything() -> None:
    head = Head(bias=True, transform=Transform("gelu_tanh", LayerNorm()), softcap=2.0, scale=0.5)
    brick = exact(language_model(depth=0, dim=3, head=head, norm=None)).head
    x = torch.randn(2, 3, dtype=torch.float64)
    assert brick(x).shape == (2, VOCAB)
    assert checks(brick, x)


@pytest.mark.parametrize("norm", NORMS, ids=str)
def test_E11_a_vector_without_any_spread_has_a_finite_gradient(norm: Norm) -> None:
    for value in (0.0, 3.0):
        x = torch.full((1, 4), value, requires_grad=True)
        brick = exact(norm, 4).float()
        (brick(x) * torch.arange(4.0)).sum().backward()
        assert x.grad is not None
        assert x.grad.isfinite().all()
