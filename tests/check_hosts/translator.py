"""A small translator as people write it by hand: encoder, decoder, one attention for both, rotary positions."""

import torch
import torch.nn.functional as F
from torch import nn


def rotate(x):
    length, size = x.shape[-2], x.shape[-1]
    speed = 10_000.0 ** (-torch.arange(0, size, 2, device=x.device) / size)
    angle = torch.arange(length, device=x.device)[:, None] * speed
    cos, sin = angle.cos().to(x), angle.sin().to(x)
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, dim, heads, turn):
        super().__init__()
        self.heads, self.turn = heads, turn
        self.q = nn.Linear(dim, dim, bias=False)
        self.k = nn.Linear(dim, dim, bias=False)
        self.v = nn.Linear(dim, dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x, source, visible):
        q, k, v = (
            f(t).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for f, t in ((self.q, x), (self.k, source), (self.v, source))
        )
        if self.turn:
            q, k = rotate(q), rotate(k)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
        return self.out(out.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate, self.up = nn.Linear(dim, hidden, bias=False), nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads, hidden, dropout):
        super().__init__()
        self.attention, self.feedforward = Attention(dim, heads, True), FeedForward(dim, hidden)
        self.norm1, self.norm2 = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, visible):
        h = self.norm1(x)
        x = x + self.drop(self.attention(h, h, visible))
        return x + self.drop(self.feedforward(self.norm2(x)))


class DecoderLayer(nn.Module):
    def __init__(self, dim, heads, hidden, dropout):
        super().__init__()
        self.attention, self.cross = Attention(dim, heads, True), Attention(dim, heads, False)
        self.feedforward = FeedForward(dim, hidden)
        self.norm1, self.norm2, self.norm3 = (nn.RMSNorm(dim) for _ in range(3))
        self.drop = nn.Dropout(dropout)

    def forward(self, x, memory, visible, visible_source):
        h = self.norm1(x)
        x = x + self.drop(self.attention(h, h, visible))
        x = x + self.drop(self.cross(self.norm2(x), memory, visible_source))
        return x + self.drop(self.feedforward(self.norm3(x)))


class TinyTranslator(nn.Module):
    def __init__(self, vocab=59, dim=16, depth=2, heads=2, hidden=40, dropout=0.1):
        super().__init__()
        self.source, self.target = nn.Embedding(vocab, dim), nn.Embedding(vocab, dim)
        self.encoder = nn.ModuleList(EncoderLayer(dim, heads, hidden, dropout) for _ in range(depth))
        self.decoder = nn.ModuleList(DecoderLayer(dim, heads, hidden, dropout) for _ in range(depth))
        self.norm, self.norm_source = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, src, tgt, src_mask=None, tgt_mask=None):
        visible_source = None if src_mask is None else src_mask[:, None, None, :]
        memory = self.source(src)
        for layer in self.encoder:
            memory = layer(memory, visible_source)
        memory = self.norm_source(memory)
        length = tgt.shape[1]
        visible = torch.ones(length, length, dtype=torch.bool, device=tgt.device).tril()
        if tgt_mask is not None:
            visible = visible & tgt_mask[:, None, None, :]
        x = self.target(tgt)
        for layer in self.decoder:
            x = layer(x, memory, visible, visible_source)
        return self.head(self.norm(x))
