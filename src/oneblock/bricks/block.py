"""The block: x <- post(skip * x + branch(f(pre(x)))), for attention, cross-attention, feed-forward.

x: (batch, length, dim).
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from oneblock.bricks.build import build
from oneblock.bricks.context import Context, Memory, alone
from oneblock.bricks.dropout import Dropout
from oneblock.spec import SLOTS, Block
from oneblock.tap import tap

Sublayer = Callable[[Tensor], Tensor]


class SerialBlock(nn.Module):
    """One sublayer after the other, each with its own residual and the norms of its wiring."""

    def __init__(self, spec: Block, dim: int) -> None:
        super().__init__()
        self.skip, self.branch_scale = spec.skip, spec.branch_scale
        self.attention = None if spec.attention is None else build(spec.attention, dim)
        self.cross = None if spec.cross is None else build(spec.cross, dim)
        self.feedforward = None if spec.feedforward is None else build(spec.feedforward, dim)
        self.order = [name for name in ("attention", "cross", "feedforward") if getattr(spec, name) is not None]
        self.norms = norms(spec, dim, self.order)
        self.dropout = Dropout(spec.dropout)

    def forward(self, x: Tensor, ctx: Context | None = None) -> Tensor:
        ctx = ctx or alone(x)
        calls = {
            "attention": lambda h: self.attention(h, ctx),
            "cross": lambda h: self.cross(h, ctx, remembered(ctx)),
            "feedforward": lambda h: self.feedforward(h, ctx),
        }
        for name in self.order:
            x = self.add(name, x, calls[name])
        return x

    def add(self, name: str, x: Tensor, f: Sublayer) -> Tensor:
        """x <- post(skip * x + branch(f(pre(x))))."""
        pre, branch, post = (self.norm(f"{name}_{slot}") for slot in ("pre", "branch", "post"))
        y = self.dropout(branch(f(pre(x))))
        return tap(post(times(self.skip, x) + times(self.branch_scale, y)), "stream", x=x, branch=y)

    def norm(self, name: str) -> Sublayer:
        """The norm of that name, or the identity where the wiring has none."""
        return self.norms[name] if name in self.norms else same  # noqa: SIM401 (a ModuleDict has no get)


class ParallelBlock(nn.Module):
    """x <- skip * x + attention(norm(x)) + feedforward(norm'(x)): both read one stream (Wang and Komatsuzaki 2021)."""

    def __init__(self, spec: Block, dim: int) -> None:
        super().__init__()
        self.skip, self.branch_scale = spec.skip, spec.branch_scale
        self.attention, self.feedforward = build(spec.attention, dim), build(spec.feedforward, dim)
        self.shared = spec.wiring == "parallel-shared"
        self.norms = norms(spec, dim, ["attention"] if self.shared else ["attention", "feedforward"])
        self.dropout = Dropout(spec.dropout)

    def forward(self, x: Tensor, ctx: Context | None = None) -> Tensor:
        ctx = ctx or alone(x)
        a = self.norms["attention_pre"](x)
        b = a if self.shared else self.norms["feedforward_pre"](x)
        y = self.dropout(self.attention(a, ctx)) + self.dropout(self.feedforward(b, ctx))
        return tap(times(self.skip, x) + times(self.branch_scale, y), "stream", x=x, branch=y)


def norms(spec: Block, dim: int, sublayers: list[str]) -> nn.ModuleDict:
    """The norms of a wiring, by name: attention_pre, feedforward_post, ..."""
    slots = SLOTS[spec.wiring]
    return nn.ModuleDict({f"{name}_{slot}": build(spec.norm, dim) for name in sublayers for slot in slots})


def times(factor: float, x: Tensor) -> Tensor:
    """factor * x, at no cost where the factor is 1."""
    return x if factor == 1 else factor * x


def same(x: Tensor) -> Tensor:
    """The identity: an absent norm."""
    return x


def remembered(ctx: Context) -> Memory:
    """The memory that cross-attention needs."""
    if ctx.memory is None:
        raise ValueError("cross-attention: expected an encoder's output, got none; pass input_ids or encoder_outputs")
    return ctx.memory


def block(spec: Block, dim: int) -> nn.Module:
    """The module of a block."""
    return (ParallelBlock if spec.wiring.startswith("parallel") else SerialBlock)(spec, dim)


build.register(Block, block)
