"""A small encoder as people write it by hand: separate projections, sinusoidal positions, post-norm, mean pooling."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.size = heads, dim // heads
        self.q, self.k, self.v, self.out = (nn.Linear(dim, dim) for _ in range(4))

    def split(self, x):
        return x.unflatten(-1, (self.heads, self.size)).transpose(1, 2)

    def forward(self, x, mask):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * self.size**-0.5
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None, :], torch.finfo(scores.dtype).min)
        weights = scores.softmax(-1)
        return self.out(torch.einsum("bhqk,bhkd->bhqd", weights, v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, dim, heads, hidden, dropout):
        super().__init__()
        self.attention = SelfAttention(dim, heads)
        self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps=1e-12), nn.LayerNorm(dim, eps=1e-12)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, mask):
        x = self.norm1(x + self.drop(self.attention(x, mask)))
        return self.norm2(x + self.drop(self.down(F.relu(self.up(x)))))


def sinusoids(length, dim):
    place = torch.arange(length)[:, None]
    speed = torch.exp(-math.log(10_000.0) * torch.arange(0, dim, 2) / dim)
    return torch.stack([torch.sin(place * speed), torch.cos(place * speed)], dim=-1).flatten(1)


class Reader(nn.Module):
    """Answers with a vector per token; `Sorter` below with one per text."""

    def __init__(self, vocab=47, dim=16, depth=2, heads=2, hidden=40, dropout=0.1):
        super().__init__()
        self.token = nn.Embedding(vocab, dim, padding_idx=0)
        self.layers = nn.ModuleList(Layer(dim, heads, hidden, dropout) for _ in range(depth))
        self.drop = nn.Dropout(dropout)
        self.dim = dim

    def forward(self, tokens, mask=None):
        where = sinusoids(tokens.shape[1], self.dim).to(self.token.weight)
        x = self.drop(self.token(tokens) * math.sqrt(self.dim) + where)
        for layer in self.layers:
            x = layer(x, mask)
        return x


class Sorter(nn.Module):
    def __init__(self, classes=3, **sizes):
        super().__init__()
        self.reader = Reader(**sizes)
        self.classes = nn.Linear(self.reader.dim, classes)

    def forward(self, tokens, mask=None):
        x = self.reader(tokens, mask)
        if mask is None:
            return self.classes(x.mean(1))
        real = mask[..., None].to(x)
        return self.classes((x * real).sum(1) / real.sum(1).clamp_min(1))
