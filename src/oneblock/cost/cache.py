"""How many bytes a model remembers of each token while it writes: the keys and values of its attentions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from oneblock.cost.count import distinct
from oneblock.hint import nearest
from oneblock.spec import Attention, Causal, Seq2Seq, Spec, Window, atoms, dims

BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "float8": 1, "int8": 1}
"""Bytes of a number of each type."""


@dataclass(frozen=True)
class CacheBytes:
    """Bytes for one text: `per_token` while every layer grows, `endless` when all windows are full.

    `windows` are (tokens that are kept, bytes per token) of layers that see no further back; `per_source_token` is what
    cross-attention keeps of each token of the source, once, however long the target grows.
    """

    endless: int
    windows: tuple[tuple[int, int], ...] = ()
    per_source_token: int = 0

    @property
    def per_token(self) -> int:
        """Bytes that one more token takes as long as no window is full."""
        return self.endless + sum(size for _, size in self.windows)

    def at(self, length: int, source: int = 0) -> int:
        """Bytes after `length` tokens, with a source of `source` tokens.

        >>> CacheBytes(endless=100, windows=((512, 10),)).at(1000)
        105120
        """
        windowed = sum(min(length, kept) * size for kept, size in self.windows)
        return length * self.endless + windowed + source * self.per_source_token


def cache_bytes(spec: Spec, dtype: str = "bfloat16") -> CacheBytes:
    """What a model keeps in memory per token: 2 * layers * kv_heads * head_dim numbers; layers with a window, less.

    An attention that looks ahead keeps nothing: a model that is all such (an encoder) has no next token.

    >>> from oneblock.spec import Block, Embedding, FeedForward, Model
    >>> cache_bytes(Model(768, Embedding(50_257), (Block(Attention(12), FeedForward(3072)),) * 12)).per_token
    36864
    """
    if dtype not in BYTES:
        raise ValueError(f"dtype: no type {dtype!r}; {nearest(dtype, BYTES)}")
    model = spec.decoder if isinstance(spec, Seq2Seq) else spec
    kept: Counter[int | None] = Counter()
    source = 0
    for block, times in distinct(model.layers).items():
        if block.attention is not None and backward(block.attention):
            kept[reach(block.attention)] += times * _numbers(block.attention, model.dim)
        if block.cross is not None:
            source += times * _numbers(block.cross, model.dim)
    size = BYTES[dtype]
    windows = sorted((back, count * size) for back, count in kept.items() if back is not None)
    return CacheBytes(kept[None] * size, tuple(windows), source * size)


def backward(attention: Attention) -> bool:
    """Whether a query sees nothing ahead, so that what was computed stays true when the text grows."""
    rules = atoms(attention.mask)
    return any(isinstance(rule, Causal) or (isinstance(rule, Window) and rule.ahead == 0) for rule in rules)


def reach(attention: Attention) -> int | None:
    """How many tokens back an attention sees, itself included; None: all of them."""
    return min((rule.back for rule in atoms(attention.mask) if isinstance(rule, Window)), default=None)


def _numbers(attention: Attention, dim: int) -> int:
    kv_heads, head_dim, value_dim = dims(attention, dim)
    return kv_heads * (head_dim + value_dim)
