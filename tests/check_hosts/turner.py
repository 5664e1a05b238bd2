"""A small decoder as people write it by hand: grouped heads, rotary positions in halves, RMS norms, a gate."""

import torch
import torch.nn.functional as F
from torch import nn


def halves(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([-b, a], dim=-1)


class Turn(nn.Module):
    def __init__(self, size, base=10_000.0):
        super().__init__()
        self.size, self.base = size, base

    def forward(self, position_ids):
        speed = self.base ** (-torch.arange(0, self.size, 2, device=position_ids.device) / self.size)
        angle = position_ids[:, None, :, None].float() * speed
        angle = torch.cat([angle, angle], dim=-1)
        return angle.cos(), angle.sin()


class Attention(nn.Module):
    def __init__(self, dim, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, dim // heads
        self.q = nn.Linear(dim, dim, bias=False)
        self.k = nn.Linear(dim, kv_heads * self.size, bias=False)
        self.v = nn.Linear(dim, kv_heads * self.size, bias=False)
        self.o = nn.Linear(dim, dim, bias=False)

    def forward(self, x, cos, sin, visible):
        q = self.q(x).unflatten(-1, (self.heads, self.size)).transpose(1, 2)
        k = self.k(x).unflatten(-1, (self.kv_heads, self.size)).transpose(1, 2)
        v = self.v(x).unflatten(-1, (self.kv_heads, self.size)).transpose(1, 2)
        cos, sin = cos.to(x), sin.to(x)
        q = q * cos + halves(q) * sin
        k = k * cos + halves(k) * sin
        k, v = (t.repeat_interleave(self.heads // self.kv_heads, dim=1) for t in (k, v))
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
        return self.o(out.transpose(1, 2).flatten(2))


class Gate(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate, self.up = nn.Linear(dim, hidden, bias=False), nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class DecoderBlock(nn.Module):
    def __init__(self, dim, heads, kv_heads, hidden):
        super().__init__()
        self.norm1, self.attention = nn.RMSNorm(dim, eps=1e-6), Attention(dim, heads, kv_heads)
        self.norm2, self.gate = nn.RMSNorm(dim, eps=1e-6), Gate(dim, hidden)

    def forward(self, x, cos, sin, visible):
        x = x + self.attention(self.norm1(x), cos, sin, visible)
        return x + self.gate(self.norm2(x))


class Turner(nn.Module):
    def __init__(self, vocab=53, dim=16, depth=2, heads=4, kv_heads=2, hidden=40):
        super().__init__()
        self.token = nn.Embedding(vocab, dim)
        self.turn = Turn(dim // heads)
        self.blocks = nn.ModuleList(DecoderBlock(dim, heads, kv_heads, hidden) for _ in range(depth))
        self.norm = nn.RMSNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, input_ids, attention_mask=None, position_ids=None, targets=None):
        batch, length = input_ids.shape
        if position_ids is None:
            position_ids = torch.arange(length, device=input_ids.device).expand(batch, length)
        visible = torch.ones(length, length, dtype=torch.bool, device=input_ids.device).tril()
        if attention_mask is not None:
            visible = visible & (attention_mask[:, None, None, :] != 0)
        x = self.token(input_ids)
        cos, sin = self.turn(position_ids)
        for block in self.blocks:
            x = block(x, cos, sin, visible)
        logits = self.head(self.norm(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
