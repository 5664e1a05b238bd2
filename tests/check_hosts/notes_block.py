"""The block that introductions print: no mask, no dropout, no final norm, weights asked for and thrown away."""

from torch import nn


class TransformerBlock(nn.Module):
    def __init__(self, d_model=16, n_heads=8, d_ff=64):
        super().__init__()
        self.attn = nn.MultiheadAttention(d_model, n_heads, batch_first=True)
        self.ln1 = nn.LayerNorm(d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))
        self.ln2 = nn.LayerNorm(d_model)

    def forward(self, x):
        h = self.ln1(x)
        out, _ = self.attn(h, h, h)
        x = x + out
        return x + self.ffn(self.ln2(x))
