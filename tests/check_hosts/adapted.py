"""A small language model with low-rank adapters beside frozen projections, as people write them by hand."""

import torch
import torch.nn.functional as F
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, inputs, outputs, rank=2, alpha=8):
        super().__init__()
        self.base = nn.Linear(inputs, outputs)
        self.base.weight.requires_grad_(False)
        self.base.bias.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, inputs) / rank)
        self.b = nn.Parameter(torch.zeros(outputs, rank))
        self.scale = alpha / rank
        self.merged = False

    def forward(self, x):
        y = self.base(x)
        return y if self.merged else y + self.scale * (x @ self.a.T @ self.b.T)

    @torch.no_grad()
    def merge(self):
        self.base.weight += self.scale * self.b @ self.a
        self.merged = True

    @torch.no_grad()
    def unmerge(self):
        self.base.weight -= self.scale * self.b @ self.a
        self.merged = False


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.q, self.v = LoRALinear(dim, dim), LoRALinear(dim, dim)
        self.k, self.out = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 3 * dim), nn.Linear(3 * dim, dim)

    def forward(self, x):
        h = self.norm1(x)
        q, k, v = (f(h).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Adapted(nn.Module):
    def __init__(self, vocab=53, dim=16, depth=2, heads=2, length=32):
        super().__init__()
        self.token, self.position = nn.Embedding(vocab, dim), nn.Embedding(length, dim)
        self.blocks = nn.Sequential(*(Block(dim, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab, bias=False)
        for name, weight in self.named_parameters():
            weight.requires_grad_(name.endswith((".a", ".b")))

    def forward(self, ids):
        x = self.token(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.norm(self.blocks(x)))


class Tuned(nn.Module):
    """An encoder layer whose feed-forward is adapted, with A and B as linear layers of their own."""

    def __init__(self, vocab=43, dim=16, heads=2, rank=3):
        super().__init__()
        self.token = nn.Embedding(vocab, dim)
        self.mix = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.up, self.down = Beside(nn.Linear(dim, 40), rank), Beside(nn.Linear(40, dim), rank)

    def forward(self, tokens):
        x = self.token(tokens)
        x = self.norm1(x + self.mix(x, x, x, need_weights=False)[0])
        return self.norm2(x + self.down(F.relu(self.up(x))))


class Beside(nn.Module):
    def __init__(self, linear, rank):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.lora_a = nn.Linear(linear.in_features, rank, bias=False)
        self.lora_b = nn.Linear(rank, linear.out_features, bias=False)
        nn.init.zeros_(self.lora_b.weight)

    def forward(self, x):
        return self.linear(x) + 2.0 * self.lora_b(self.lora_a(x))

    def merge(self):
        with torch.no_grad():
            self.linear.weight.add_(self.lora_b.weight @ self.lora_a.weight, alpha=2.0)
            self.lora_b.weight.zero_()
