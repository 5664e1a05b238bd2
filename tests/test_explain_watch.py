"""What cannot be adopted is watched: torch's operations in order, with what they are in a Transformer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from oneblock.explain import trace
from oneblock.explain.watch import KINDS
from oneblock.words import say


class Own(nn.Module):
    """A block of somebody's own."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8) for _ in "qkv")
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: Tensor, scale: float = 8**-0.5) -> Tensor:
        pattern = (self.q(x) @ self.k(x).mT * scale).softmax(-1)
        x = self.norm(x + pattern @ self.v(x))
        return x + self.down(nn.functional.gelu(self.up(x)))


def test_operations_in_order_with_what_they_are() -> None:
    module, x = Own().eval(), torch.randn(2, 3, 8)
    t = trace(module, x)
    kinds = [step.kind for step in t if step.kind != "op.other"]
    matmul, softmax, norm, gelu, add = (f"op.{word}" for word in ("matmul", "softmax", "norm", "activation", "add"))
    assert kinds == [matmul] * 3 + [softmax] + [matmul] * 2 + [add, norm, matmul, gelu, matmul, add]
    assert {"q.addmm", "down.addmm", "norm.native_layer_norm"} <= {step.path for step in t}
    assert max(t.check().values()) == 0
    assert torch.equal(t.output, module(x))
    pattern = next(step for step in t if step.kind == "op.softmax").tensor
    torch.testing.assert_close(pattern.sum(-1), torch.ones(2, 3))


def test_an_operand_knows_the_step_it_comes_from() -> None:
    t = trace(Own(), torch.randn(2, 3, 8))
    softmax = next(step for step in t if step.kind == "op.softmax")
    before = {operand.path for operand in softmax.operands.values()}
    assert before == {"mul"}
    last = t.steps[-1].operands
    assert {operand.path for operand in last.values()} == {"norm.native_layer_norm", "down.addmm"}


def test_modules_of_torch_and_keyword_arguments() -> None:
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(1, 3, 8)
    t = trace(attention, {"query": x, "key": x, "value": x})
    assert any(step.kind in ("op.softmax", "op.attention") for step in t)
    assert len(trace(attention, (x, x, x))) == len(t)


def test_a_forward_that_fails_is_our_line_then_its_own() -> None:
    with pytest.raises(ValueError, match=r"^trace: the forward of Own failed: RuntimeError: [^\n]*$") as caught:
        trace(Own(), torch.randn(2, 3, 7))
    assert isinstance(caught.value.__cause__, RuntimeError)
    healthy: Any = Own()
    assert len(trace(healthy, torch.randn(2, 3, 8)))


@pytest.mark.parametrize("kind", sorted({*KINDS.values(), "op.other"}))
def test_every_kind_has_words(kind: str) -> None:
    assert all(say(kind, lang).purpose for lang in ("en", "zh"))
