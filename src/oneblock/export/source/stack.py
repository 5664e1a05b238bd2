"""A stack of blocks from ids to logits, or an encoder and a decoder. ids: (batch, length); x: (batch, length, dim).

What the blocks are told, `see`, `bias`, `reach` and more, is spelt out by a fold where it says `spec.context`.
"""
# ruff: noqa: ARG002, B020, F821, F841, SIM102

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_model
from torch import Tensor, nn


class Stack(nn.Module):
    """Embedding, blocks, norm, head."""

    def __init__(self, spec: Any) -> None:
        super().__init__()
        self.embedding = spec.embedding
        self.layers = nn.ModuleList(spec.layers)
        self.position_bias = spec.position_bias
        self.norm = spec.norm
        self.dropout = spec.dropout
        self.head = spec.head
        if spec.alone:
            self.apply(initialise)
        if spec.tied:
            self.head.out.weight = self.embedding.token.weight  # one matrix reads and writes

    def forward(self, ids: Tensor, mask: Tensor, segment: Tensor, memory: Tensor, memory_real: Tensor) -> Tensor:
        """ids: (batch, length)."""
        if self.spec.masked:
            real = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask.bool()  # (batch, length)
        if self.spec.segment == "asked":
            segment = torch.zeros_like(ids) if segment is None else segment
        if self.spec.segment == "none":
            segment = torch.zeros_like(ids)
        if self.spec.counted == "real":
            position = (real.cumsum(1) - 1).clamp(min=0)  # (batch, length): padding is not counted
        if self.spec.counted == "all":
            position = torch.arange(ids.shape[1], device=ids.device)[None]  # (1, length)
        x = self.embedding(ids, *self.spec.placing)  # (batch, length, dim)
        if self.spec.sight is not None:
            see = self.spec.sight  # (batch, 1, query, key): who may look at whom
        if self.spec.biased:
            bias = self.position_bias(position, position)  # (batch, heads, query, key)
        if self.spec.reach is not None:
            reach = self.spec.reach  # (batch, 1, query | 1, source): who may look at what
        if self.spec.windows is not None:
            # who may look at whom, (batch, 1, query, key) each
            sights = {window: visible(real, *self.spec.window) for window in set(self.spec.windows)}
        if self.spec.ranges is not None:
            # who may look at whom in the memory, (batch, 1, query, source) each
            reaches = {span: reachable(memory_real, ids.shape[1], *self.spec.span) for span in set(self.spec.ranges)}
        if self.spec.there == "real":
            there = (memory_real.cumsum(1) - 1).clamp(min=0)  # (batch, source): positions in the memory
        if self.spec.there == "all":
            there = torch.arange(memory.shape[1], device=ids.device)[None]  # (1, source): positions in the memory
        if self.spec.windows is not None or self.spec.ranges is not None:
            for layer, *self.spec.turns in zip(self.layers, *self.spec.each, strict=True):
                x = layer(x, *self.spec.context)
        else:
            for layer in self.layers:
                x = layer(x, *self.spec.context)
        if self.spec.norm is not None:
            x = self.norm(x)
        if self.spec.dropout is not None:
            x = self.dropout(x)
        if self.spec.head is not None:
            x = self.head(x, *self.spec.heading)
        return x


class Pair(nn.Module):
    """An encoder, and a decoder that looks at what it made."""

    def __init__(self, spec: Any) -> None:
        super().__init__()
        self.encoder = Encoder()
        self.decoder = Decoder()
        self.apply(initialise)
        if spec.share:
            self.encoder.embedding.token = self.decoder.embedding.token  # one table for source and target
        if spec.tied:
            self.decoder.head.out.weight = self.decoder.embedding.token.weight  # one matrix reads and writes

    def forward(self, source: Tensor, target: Tensor, mask: Tensor, target_mask: Tensor, segment: Tensor) -> Tensor:
        """source: (batch, source)."""
        real = torch.ones_like(source, dtype=torch.bool) if mask is None else mask.bool()  # (batch, source)
        if self.spec.classifies:
            target = F.pad(source[:, :-1], (1, 0), value=self.spec.first)  # the decoder reads the source, too
        if self.spec.written:
            written = torch.ones_like(target, dtype=torch.bool) if target_mask is None else target_mask.bool()
        memory = self.encoder(source, *self.spec.encoding)  # (batch, source, dim)
        return self.decoder(target, *self.spec.decoding)


def initialise(module: nn.Module, spec: Any) -> None:
    """Start as in Glorot and Bengio 2010, tables with deviation dim^-0.5; norms start as the identity."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if spec.biases == "some":
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        if spec.biases == "all":
            nn.init.zeros_(module.bias)
    if isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)


def load(path: str | Path = Path(__file__).with_name("model.safetensors")) -> Model:
    """The model with the weights of a safetensors file, in eval mode; each must be there and fit, and no other."""
    model = Model()
    load_model(model, path)
    return model.eval()
