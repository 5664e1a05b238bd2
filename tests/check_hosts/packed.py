"""A small language model by hand: windows in some layers, several documents in a row, grouped heads."""

import torch
import torch.nn.functional as F
from torch import nn


def turn(x, place):
    size = x.shape[-1]
    speed = 10_000.0 ** (-torch.arange(0, size, 2, device=x.device).double() / size)
    angle = place[:, None, :, None].double() * speed
    cos, sin = angle.cos().to(x), angle.sin().to(x)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class Attention(nn.Module):
    def __init__(self, dim, heads, groups, window, number):
        super().__init__()
        self.heads, self.groups, self.window, self.number = heads, groups, window, number
        size = dim // heads
        self.wq = nn.Linear(dim, heads * size, bias=False)
        self.wk, self.wv = (nn.Linear(dim, groups * size, bias=False) for _ in range(2))
        self.wo = nn.Linear(heads * size, dim, bias=False)

    def forward(self, x, place, documents, cache):
        q = turn(self.wq(x).unflatten(-1, (self.heads, -1)).transpose(1, 2), place)
        k = turn(self.wk(x).unflatten(-1, (self.groups, -1)).transpose(1, 2), place)
        v = self.wv(x).unflatten(-1, (self.groups, -1)).transpose(1, 2)
        index, text = place, documents
        if cache is not None:
            k, v, index, text = cache.add(self, k, v, place, documents)
        far = place[:, :, None] - index[:, None, :]
        seen = (far >= 0) & (documents[:, :, None] == text[:, None, :])
        if self.window:
            seen = seen & (far < self.window)
        k, v = (t.repeat_interleave(self.heads // self.groups, dim=1) for t in (k, v))
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None])
        return self.wo(out.transpose(1, 2).flatten(2))


class Memory:
    """What attention remembers; layers with a window keep no more than they may look at."""

    def __init__(self):
        self.held, self.length = {}, 0

    def add(self, layer, *new):
        old = self.held.get(layer.number)
        axes = (2, 2, 1, 1)
        joined = (
            new if old is None else tuple(torch.cat(pair, axis) for *pair, axis in zip(old, new, axes, strict=True))
        )
        keep = layer.window or joined[0].shape[2]
        self.held[layer.number] = tuple(
            t.narrow(axis, max(0, t.shape[axis] - keep), min(keep, t.shape[axis]))
            for t, axis in zip(joined, axes, strict=True)
        )
        return joined

    def reorder(self, rows):
        self.held = {key: tuple(t[rows] for t in kept) for key, kept in self.held.items()}


class Layer(nn.Module):
    def __init__(self, dim, heads, groups, hidden, window, number):
        super().__init__()
        self.attention = Attention(dim, heads, groups, window, number)
        self.before, self.between = nn.RMSNorm(dim, eps=1e-6), nn.RMSNorm(dim, eps=1e-6)
        self.gate, self.up = nn.Linear(dim, hidden, bias=False), nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x, place, documents, cache):
        x = x + self.attention(self.before(x), place, documents, cache)
        h = self.between(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class PackedLM(nn.Module):
    def __init__(self, vocab=61, dim=16, depth=2, heads=4, groups=2, hidden=40, window=4):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(
            Layer(dim, heads, groups, hidden, window if number % 2 == 0 else 0, number) for number in range(depth)
        )
        self.norm = nn.RMSNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, vocab, bias=False)

    def make_cache(self):
        return Memory()

    def forward(self, ids, doc_ids=None, cache=None):
        start = cache.length if cache is not None else 0
        place = torch.arange(start, start + ids.shape[1], device=ids.device).expand(ids.shape)
        documents = torch.zeros_like(ids) if doc_ids is None else doc_ids
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, place, documents, cache)
        if cache is not None:
            cache.length += ids.shape[1]
        return self.head(self.norm(x))
