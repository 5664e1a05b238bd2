"""A small language model with a mixture of experts, as people write one by hand, and a loss for their balance."""

import torch
import torch.nn.functional as F
from torch import nn


class Expert(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        return self.down(F.silu(self.up(x)))


class Mixture(nn.Module):
    def __init__(self, dim, hidden, experts, active):
        super().__init__()
        self.active = active
        self.router = nn.Linear(dim, experts, bias=False)
        self.experts = nn.ModuleList(Expert(dim, hidden) for _ in range(experts))

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        shares = self.router(tokens).softmax(-1)
        weights, chosen = shares.topk(self.active, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            rows, place = (chosen == number).nonzero(as_tuple=True)
            if len(rows):
                out = out.index_add(0, rows, expert(tokens[rows]) * weights[rows, place, None])
        return out.view_as(x), (shares, chosen)


def balance(routed, real):
    losses = []
    for shares, chosen in routed:
        keep = real.reshape(-1) if real is not None else torch.ones(len(shares), dtype=torch.bool)
        shares, chosen = shares[keep], chosen[keep]
        counts = F.one_hot(chosen, shares.shape[1]).sum((0, 1)) / len(shares)
        losses.append(shares.shape[1] * (counts * shares.mean(0)).sum())
    return torch.stack(losses).mean()


class Block(nn.Module):
    def __init__(self, dim, heads, hidden, experts, active):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.mixture = Mixture(dim, hidden, experts, active)

    def forward(self, x, visible):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        y, routed = self.mixture(self.norm2(x))
        return x + y, routed


class Expertly(nn.Module):
    def __init__(self, vocab=53, dim=16, depth=2, heads=2, hidden=24, experts=4, active=2, length=32):
        super().__init__()
        self.token, self.position = nn.Embedding(vocab, dim), nn.Embedding(length, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, hidden, experts, active) for _ in range(depth))
        self.norm, self.head = nn.RMSNorm(dim), nn.Linear(dim, vocab, bias=False)

    def forward(self, input_ids, attention_mask=None, position_ids=None):
        length = input_ids.shape[1]
        real = None if attention_mask is None else attention_mask.bool()
        if position_ids is None:
            position_ids = torch.arange(length)[None] if real is None else (real.long().cumsum(-1) - 1).clamp_min(0)
        visible = torch.ones(length, length, dtype=torch.bool, device=input_ids.device).tril()
        if real is not None:
            visible = visible & real[:, None, None, :] | torch.eye(length, dtype=torch.bool)
        x, routed = self.token(input_ids) + self.position(position_ids), []
        for block in self.blocks:
            x, one = block(x, visible)
            routed.append(one)
        return {"logits": self.head(self.norm(x)), "aux_loss": balance(routed, real)}
