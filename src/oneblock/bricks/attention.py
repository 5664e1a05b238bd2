"""Attention: each token asks (query), every token it may see answers (key, value). Mixes tokens, not features.

x: (batch, length, dim); q: (batch, heads, query, head_dim); k, v: (batch, kv_heads, key, head_dim | value_dim).
"""

from __future__ import annotations

from torch import Tensor, nn

from oneblock.bricks.attend import Softmax, attend
from oneblock.bricks.build import build
from oneblock.bricks.context import Context, Memory, alone
from oneblock.bricks.positions import rotate, score_bias
from oneblock.mask import Sight
from oneblock.spec import Attention, Whole, dims, scale
from oneblock.tap import tap


class AttentionBrick(nn.Module):
    """Multi-head attention over the stream itself, or over a memory (Vaswani et al. 2017, arXiv:1706.03762)."""

    def __init__(self, spec: Attention, dim: int) -> None:
        super().__init__()
        kv_heads, head_dim, value_dim = dims(spec, dim)
        self.spec, self.path, self.head_dim, self.value_dim = spec, "attention", head_dim, value_dim
        self.q = nn.Linear(dim, spec.heads * head_dim, bias=spec.bias)
        self.k = nn.Linear(dim, kv_heads * head_dim, bias=spec.bias)
        self.v = nn.Linear(dim, kv_heads * value_dim, bias=spec.bias)
        self.out = nn.Linear(spec.heads * value_dim, dim, bias=spec.bias if spec.out_bias is None else spec.out_bias)
        whole = isinstance(spec.qk_norm, Whole)
        self.q_norm = build(spec.qk_norm, spec.heads * head_dim if whole else head_dim)
        self.k_norm = build(spec.qk_norm, kv_heads * head_dim if whole else head_dim)
        self.position = score_bias(spec.position, spec.heads)
        self.scale = scale(spec, dim)
        # Chosen once: a compiled graph cannot look a type up, nor compare two sets of rules.
        self.rotate, self.word = rotate.dispatch(type(spec.position)), repr(spec.mask)

    def forward(self, x: Tensor, ctx: Context | None = None, memory: Memory | None = None) -> Tensor:
        ctx = ctx or alone(x)
        q = tap(self.turn(self.q_norm(split(self.q(x), self.head_dim)), ctx), "query", x=x)
        k, v, sight = self.own(x, ctx) if memory is None else self.lent(memory, ctx)
        softmax = Softmax(self.scale, self.spec.softcap, self.spec.dropout * self.training)
        z = attend(fold(q, len(k)), tap(k, "key"), tap(v, "value"), sight, softmax)
        z = tap(unfold(z, len(x)), "z")  # (batch, heads, query, value_dim)
        return tap(self.out(z.transpose(1, 2).flatten(2)), "out", z=z)

    def turn(self, x: Tensor, ctx: Context) -> Tensor:
        """Queries or keys, rotated by their positions where the spec says so."""
        return self.rotate(self.spec.position, x, ctx.here, ctx)

    def own(self, x: Tensor, ctx: Context) -> tuple[Tensor, Tensor, Sight]:
        """Keys and values of the stream, after those of the past, and who may see them."""
        k = self.turn(self.k_norm(split(self.k(x), self.head_dim)), ctx)
        kept, there = ctx.remember(self.path, k=k, v=split(self.v(x), self.value_dim))
        return kept["k"], kept["v"], ctx.sight(self.spec.mask, there, self.position or ctx.bias, self.word)

    def lent(self, memory: Memory, ctx: Context) -> tuple[Tensor, Tensor, Sight]:
        """Keys and values of a memory, computed once per memory, and who may see them."""
        k, v = ctx.once(self.path, lambda: self.keys_values(memory.x))
        return k, v, ctx.sight(self.spec.mask, memory.places, self.position, self.word)

    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(keys, values) of x, without positions."""
        return self.k_norm(split(self.k(x), self.head_dim)), split(self.v(x), self.value_dim)


def split(x: Tensor, width: int) -> Tensor:
    """(batch, length, heads * width) -> (batch, heads, length, width)."""
    return x.unflatten(-1, (-1, width)).transpose(1, 2)


def fold(q: Tensor, batch: int) -> Tensor:
    """Beams that share a memory row become its queries: (batch * beams, h, q, d) -> (batch, h, beams * q, d)."""
    return q if len(q) == batch else q.unflatten(0, (batch, -1)).transpose(1, 2).flatten(2, 3)


def unfold(z: Tensor, batch: int) -> Tensor:
    """Undo `fold`."""
    return z if len(z) == batch else z.unflatten(2, (batch // len(z), -1)).transpose(1, 2).flatten(0, 1)


build.register(Attention, AttentionBrick)
