"""A small language model as people write it by hand: fused projection, learned positions, pre-norm, a cache."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, pad, past):
        batch, length, dim = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (t.view(batch, length, self.heads, dim // self.heads).transpose(1, 2) for t in (q, k, v))
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        later = torch.ones(length, k.shape[2], dtype=torch.bool, device=x.device).triu(k.shape[2] - length + 1)
        hidden = later if pad is None else later | pad[:, None, None, :]
        scores = scores.masked_fill(hidden, float("-inf"))
        weights = torch.nan_to_num(torch.softmax(scores, dim=-1))
        weights = F.dropout(weights, self.dropout, self.training)
        out = (weights @ v).transpose(1, 2).reshape(batch, length, dim)
        return self.proj(out), (k, v)


class Block(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attention = SelfAttention(dim, heads, dropout)
        self.norm2 = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, pad, past):
        mixed, kept = self.attention(self.norm1(x), pad, past)
        x = x + self.drop(mixed)
        hidden = F.gelu(self.up(self.norm2(x)))
        x = x + self.drop(self.down(hidden))
        return x, kept


class TinyGPT(nn.Module):
    def __init__(self, vocab=53, dim=16, depth=2, heads=2, length=32, dropout=0.1):
        super().__init__()
        self.token = nn.Embedding(vocab, dim)
        self.position = nn.Embedding(length, dim)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(dim, heads, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)
        self.head.weight = self.token.weight
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
                if getattr(module, "bias", None) is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, input_ids, attention_mask=None, position_ids=None, labels=None, cache=None, use_cache=False):
        start = cache[0][0].shape[2] if cache is not None else 0
        if position_ids is None and attention_mask is not None:
            position_ids = (attention_mask.long().cumsum(-1) - 1).clamp_min(0)[:, start:]
        if position_ids is None:
            position_ids = torch.arange(start, start + input_ids.shape[1], device=input_ids.device)[None]
        pad = None if attention_mask is None else attention_mask == 0
        x = self.drop(self.token(input_ids) + self.position(position_ids))
        kept = []
        for number, block in enumerate(self.blocks):
            x, one = block(x, pad, cache[number] if cache is not None else None)
            kept.append(one)
        logits = self.head(self.norm(x))
        loss = None
        if labels is not None:
            goal = labels[:, 1:].reshape(-1)
            count = (goal != -100).sum().clamp_min(1)
            parts = F.cross_entropy(
                logits[:, :-1].reshape(-1, logits.shape[-1]), goal, ignore_index=-100, reduction="sum"
            )
            loss = parts / count
        return {"logits": logits, "loss": loss, "cache": tuple(kept) if use_cache else None}
