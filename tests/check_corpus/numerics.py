"""Planted faults of range, and wasted work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from check_corpus.attention import (
    BERT,
    GPT,
    GPT_MASKED,
    GPT_WEIGHTS,
    HELD,
    HELD_AT,
    READER,
    TORCH,
    TURNER,
    TURNER_AT,
    attending,
    filled,
    gpt,
    held,
    reader,
    turner,
)  # fmt: skip
from check_corpus.hosts import HOSTS
from check_corpus.plant import Mutant

NO_MAXIMUM = "(lambda e: e / e.sum(-1, keepdim=True))"
ONE_MAXIMUM = "(lambda e: e / e.sum(-1, keepdim=True))((scores - scores.max()).exp())"
WRITTEN_OUT = (
    "(q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)"
    " if visible is None else ~visible, -torch.inf).softmax(-1) @ v"
)
BUFFER = "hidden = self.later[start : start + length, : k.shape[1]].bool()"


def no_maximum(scores: Tensor, hidden: Tensor, *more: Any) -> Tensor:
    """The softmax of textbooks."""
    del more
    return (scores + hidden).exp() / (scores + hidden).exp().sum(-1, keepdim=True)


def eager(host: str) -> Callable[[], nn.Module]:
    """The reference library's own attention written out: it adds finfo.min to scores."""

    def make() -> nn.Module:
        model = HOSTS[host].make()
        model.set_attn_implementation("eager")
        return model

    return make


def enlarged(make: Callable[[], nn.Module], path: str, by: float) -> Callable[[], nn.Module]:
    """Weights that large numbers come from."""

    def change() -> nn.Module:
        model = make()
        with torch.no_grad():
            for weight in model.get_submodule(path).parameters():
                weight.mul_(by)
        return model

    return change


class Weighing(nn.MultiheadAttention):
    """Always weighs, whoever asks."""

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
        return super().forward(*args, **{**kwargs, "need_weights": True})


def weighing(host: str) -> Callable[[], nn.Module]:
    """A host of torch's layers, all of which are asked for weights."""

    def make() -> nn.Module:
        model = HOSTS[host].make()
        for part in model.modules():
            if type(part) is nn.MultiheadAttention:
                part.__class__ = Weighing
        return model

    return make


NUMERICS = [
    Mutant("-1e9 in float16", "gpt", "mask-range", "mask.constant", gpt(('float("-inf")', "-1e9")), GPT),
    Mutant("-1e9 in float16", "reader", "mask-range", "mask.constant",
           reader(("torch.finfo(scores.dtype).min", "-1e9")), READER),
    Mutant("-1e9 in float16", "hf bert", "mask-range", "mask.constant",
           attending("hf bert", "constant", filled(-1e9)), BERT),
    Mutant("smallest number added to scores", "gpt", "mask-range", "mask.sum",
           gpt((GPT_MASKED, "scores = scores + hidden.to(scores) * torch.finfo(scores.dtype).min\n"
                "        weights = torch.softmax(scores, dim=-1)")), GPT),
    Mutant("smallest number added to scores", "hf llama", "mask-range", "mask.sum", eager("hf llama"),
           ("model.layers.0.self_attn", "model.layers.1.self_attn")),
    Mutant("no maximum", "gpt", "softmax-maximum", "softmax.maximum",
           gpt((GPT_WEIGHTS, "weights = scores.exp() / scores.exp().sum(-1, keepdim=True)")), GPT),
    Mutant("no maximum", "reader", "softmax-maximum", "softmax.maximum",
           reader(("scores.softmax(-1)", f"{NO_MAXIMUM}(scores.exp())")), READER),
    Mutant("one maximum for all", "held", "softmax-maximum", "softmax.maximum",
           held((HELD, f"(scores := scores.masked_fill(hidden, -torch.inf), {ONE_MAXIMUM})[1]")), HELD_AT),
    Mutant("no maximum", "hf bert", "softmax-maximum", "softmax.maximum",
           attending("hf bert", "no maximum", no_maximum), BERT),
    Mutant("feed-forward too large", "gpt", "half", "half.overflow",
           enlarged(gpt(), "blocks.1.down", 1e8), "blocks.1.down"),
    Mutant("feed-forward too large", "hf t5", "half", "half.overflow",
           enlarged(HOSTS["hf t5"].make, "encoder.block.0.layer.1.DenseReluDense.wo", 1e7),
           "encoder.block.0.layer.1.DenseReluDense.wo"),
    Mutant("feed-forward too large", "our llama", "half", "half.overflow",
           enlarged(HOSTS["our llama"].make, "layers.0.feedforward.down", 1e9), "layers.0.feedforward.down"),
    Mutant("starts one-hot", "gpt", "saturation", "attention.sharp", gpt(("std=0.02", "std=2.0")), GPT),
    Mutant("starts one-hot", "reader", "saturation", "attention.sharp",
           reader(("* self.size**-0.5", "* 100.0")), READER),
    Mutant("scores times 0", "turner", "saturation", "attention.flat",
           turner((TURNER, TURNER[:-1] + ", scale=0.0)")), TURNER_AT),
    Mutant("one key for all", "reader", "saturation", "attention.flat",
           reader(("self.split(self.k(x)), self", "self.split(self.k(x).mean(1, True).expand_as(x)), self")),
           READER),
    Mutant("weights of every layer", "torch encoder", "weights-unused", "attention.weights_unused",
           weighing("torch encoder"), TORCH),
    Mutant("weights of every layer", "torch decoder", "weights-unused", "attention.weights_unused",
           weighing("torch decoder"), TORCH),
    Mutant("a triangle per layer", "turner", "masks-rebuilt", "mask.rebuilt",
           turner((TURNER, TURNER.replace("visible", "visible & torch.ones_like(q @ k.mT).tril().bool()"))), TURNER_AT),
    Mutant("a triangle per layer", "held", "masks-rebuilt", "mask.rebuilt",
           held((BUFFER, "hidden = torch.ones(length, k.shape[1]).triu(start + 1).bool()")), HELD_AT),
    Mutant("written out", "turner", "fused-kernel", "attention.unfused", turner((TURNER, WRITTEN_OUT)), TURNER_AT),
    Mutant("written out", "hf bert", "fused-kernel", "attention.unfused", eager("hf bert"), BERT),
]  # fmt: skip
