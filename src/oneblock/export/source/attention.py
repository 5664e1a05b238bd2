"""Attention: each token asks, every token it may see answers. x: (batch, length, dim)."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Attention(nn.Module):
    """softmax(q k^T) v."""

    def __init__(self, spec: Any) -> None:
        super().__init__()
        self.q = nn.Linear(spec.dim, spec.heads * spec.head_dim, bias=spec.bias)
        self.k = nn.Linear(spec.dim, spec.kv_heads * spec.head_dim, bias=spec.bias)
        self.v = nn.Linear(spec.dim, spec.kv_heads * spec.value_dim, bias=spec.bias)
        self.out = nn.Linear(spec.heads * spec.value_dim, spec.dim, bias=spec.out_bias)
        self.q_norm = spec.q_norm
        self.k_norm = spec.k_norm
        self.rotary = spec.rotary
        self.position = spec.position

    def forward(self, x: Tensor, see: Tensor, position: Tensor, bias: Any, memory: Any, there: Any) -> Tensor:
        """x: (batch, length, dim); see: (batch, 1, query | 1, key), True where a query may look at a key."""
        if self.spec.lent == "sometimes":
            memory = x if memory is None else memory  # who answers: the same text, or what the encoder made of another
        if self.spec.whole:
            q, k, v = self.q_norm["norm"](self.q(x)), self.k_norm["norm"](self.k(memory)), self.v(memory)
        else:
            q, k, v = self.q(x), self.k(memory), self.v(memory)
        q = q.unflatten(-1, (self.spec.heads, self.spec.head_dim)).transpose(1, 2)  # (batch, heads, query, head_dim)
        k = k.unflatten(-1, (self.spec.kv_heads, self.spec.head_dim)).transpose(1, 2)
        v = v.unflatten(-1, (self.spec.kv_heads, self.spec.value_dim)).transpose(1, 2)
        if self.spec.each:
            q, k = self.q_norm(q), self.k_norm(k)
        if self.spec.rotary is not None:
            q, k = self.rotary(q, position), self.rotary(k, position)
        if self.spec.placed == "sometimes":
            there = position if there is None else there  # where the answering tokens stand
        if self.spec.own:
            bias = self.spec.lacking if self.spec.position is None else self.position(position, there)
        if self.spec.softcap is None:
            if self.spec.added == "always":
                see = bias.masked_fill(~see, -torch.inf).type_as(q)  # (batch, heads, query, key): added to the scores
            if self.spec.added == "sometimes":
                see = see if bias is None else bias.masked_fill(~see, -torch.inf).type_as(q)
            z = F.scaled_dot_product_attention(
                q, k, v, see, dropout_p=(self.spec.dropout if self.training else 0.0) if self.spec.drops else 0.0,
                scale=self.spec.scale, enable_gqa=self.spec.grouped
            )  # fmt: skip
        else:
            if self.spec.grouped:
                k, v = (f.repeat_interleave(self.spec.heads // self.spec.kv_heads, 1) for f in (k, v))
            scores = q @ k.mT / self.spec.head_dim**0.5 if self.spec.scale is None else self.spec.scale * q @ k.mT
            scores = self.spec.softcap * (scores / self.spec.softcap).tanh()  # (batch, heads, query, key)
            if self.spec.added == "always":
                scores = scores + bias.type_as(q)
            if self.spec.added == "sometimes":
                scores = scores if bias is None else scores + bias.type_as(q)
            pattern = scores.masked_fill(~see, -torch.inf).softmax(-1).masked_fill(~see, 0)
            z = F.dropout(pattern, self.spec.dropout, self.training) @ v if self.spec.dropout else pattern @ v
        return self.out(z.transpose(1, 2).flatten(2))  # (batch, length, dim)
