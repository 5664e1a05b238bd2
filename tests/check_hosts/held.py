"""A small language model as people write it by hand: it holds its own cache, in buffers with room for a whole text."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, heads, length):
        super().__init__()
        self.heads, self.size, self.length = heads, dim // heads, length
        self.query, self.key, self.value, self.out = (nn.Linear(dim, dim) for _ in range(4))
        self.register_buffer("later", torch.ones(length, length).triu(1), persistent=False)
        self.kept = None

    def forward(self, x, start, remember):
        batch, length, dim = x.shape
        q = self.query(x).view(batch, length, self.heads, self.size)
        k = self.key(x).view(batch, length, self.heads, self.size)
        v = self.value(x).view(batch, length, self.heads, self.size)
        if remember:
            if self.kept is None:
                self.kept = tuple(x.new_zeros(batch, self.length, self.heads, self.size) for _ in range(2))
            self.kept[0][:, start : start + length] = k
            self.kept[1][:, start : start + length] = v
            k, v = (t[:, : start + length] for t in self.kept)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / self.size**0.5
        hidden = self.later[start : start + length, : k.shape[1]].bool()
        weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)
        return self.out(torch.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, dim))


class Layer(nn.Module):
    def __init__(self, dim, heads, length):
        super().__init__()
        self.attention = Attention(dim, heads, length)
        self.first, self.second = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.feed = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, start, remember):
        x = x + self.attention(self.first(x), start, remember)
        return x + self.feed(self.second(x))


class HeldLM(nn.Module):
    def __init__(self, vocab=53, dim=16, depth=2, heads=2, context_length=32):
        super().__init__()
        self.context_length = context_length
        self.words, self.places = nn.Embedding(vocab, dim), nn.Embedding(context_length, dim)
        self.layers = nn.ModuleList(Layer(dim, heads, context_length) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab, bias=False)
        self.start = 0

    def reset_cache(self):
        self.start = 0
        for layer in self.layers:
            layer.attention.kept = None

    def forward(self, idx, use_cache=False):
        start = self.start if use_cache else 0
        x = self.words(idx) + self.places(torch.arange(start, start + idx.shape[1], device=idx.device))
        for layer in self.layers:
            x = layer(x, start, use_cache)
        if use_cache:
            self.start += idx.shape[1]
        return self.head(self.norm(x))
