"""Planted faults of padding: masks that are ignored, pads that count, rows with nothing to see."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from check_corpus.altered import answered, given
from check_corpus.hosts import HOSTS
from check_corpus.plant import Mutant, written

NOTHING = "scores.masked_fill(~mask[:, None, None, :], torch.finfo(scores.dtype).min)"

ATTENDS = "out = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)"
BY_HAND = (
    "scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5\n"
    "        if visible is not None:\n"
    "            scores = scores + torch.zeros_like(scores).masked_fill(~visible, float('-inf'))\n"
    "        out = {} @ v"
)


def host(name: str) -> nn.Module:
    """An unmutated host."""
    return HOSTS[name].make()


def hidden(name: str, path: str, argument: str) -> nn.Module:
    """A part of a host never gets this mask."""
    return given(host(name), path, argument, lambda *_: None)


class Blind(nn.Module):
    """A host whose caller cannot say who is padding."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids: torch.Tensor) -> Any:
        return self.inner(input_ids=input_ids)


def counted(inner: nn.Module) -> nn.Module:
    """The pooler of a classifier means over everything."""
    inner.bert.pooler.forward = lambda x: torch.tanh(x.mean(1))
    return inner


PADDING = [
    Mutant(
        "padding mask ignored", "gpt", "padding", "padding.content",
        lambda: written("gpt", "TinyGPT", (
            "hidden = later if pad is None else later | pad[:, None, None, :]", "hidden = later"))(),
        "blocks.0.attention",
    ),
    Mutant(
        "padding mask ignored", "reader", "padding", "padding.ignored",
        lambda: written("reader", "Reader", (
            "if mask is not None:\n            scores", "if False:\n            scores"))(),
        "layers.0.attention",
    ),
    Mutant(
        "padding mask in the first layer only", "reader", "padding", "padding.content",
        lambda: written("reader", "Reader", (
            "for layer in self.layers:\n            x = layer(x, mask)",
            "for n, layer in enumerate(self.layers):\n            x = layer(x, None if n else mask)"))(),
        "layers.1.attention",
    ),
    Mutant(
        "target mask ignored", "translator", "padding", "padding.ignored",
        lambda: written("translator", "TinyTranslator", ("if tgt_mask is not None:", "if False:"))(),
        "decoder.0.attention",
    ),
    Mutant(
        "one layer gets no mask", "hf bert", "padding", "padding.content",
        lambda: hidden("hf bert", "encoder.layer.1.attention.self", "attention_mask"), "encoder.layer.1.attention.self",
    ),
    Mutant(
        "one layer gets no mask", "torch encoder", "padding", "padding.content",
        lambda: hidden("torch encoder", "layers.1.self_attn", "key_padding_mask"), "layers.1.self_attn",
    ),
    Mutant(
        "positions counted from the end", "reader", "padding-amount", "padding.amount",
        lambda: written("reader", "Reader", (
            "sinusoids(tokens.shape[1], self.dim)", "sinusoids(tokens.shape[1], self.dim).flip(0)"))(),
        "",
    ),
    Mutant(
        "attention divided by the padded length", "translator", "padding-amount", "padding.amount",
        lambda: written("translator", "TinyTranslator", (
            "return self.out(out.transpose(1, 2).flatten(2))",
            "return self.out(out.transpose(1, 2).flatten(2)) / out.shape[2]"))(),
        "decoder.0.attention",
    ),
    Mutant(
        "positions shifted by the padding behind", "gpt", "padding-amount", "padding.amount",
        lambda: written("gpt", "TinyGPT", (
            "(attention_mask.long().cumsum(-1) - 1)",
            "(attention_mask.long().cumsum(-1) - 1 + (attention_mask == 0).sum(-1, keepdim=True))"))(),
        "",
    ),
    Mutant(
        "output cut to the longest text", "reader", "padding-amount", "padding.shrinks",
        lambda: written("reader", "Reader", (
            "        for layer in self.layers:\n",
            "        if mask is not None and not self.training:\n"
            "            x, mask = x[:, : mask.sum(1).max()], mask[:, : mask.sum(1).max()]\n"
            "        for layer in self.layers:\n"))(),
    ),
    Mutant(
        "output cut to the longest text", "hf bert", "padding-amount", "padding.shrinks",
        lambda: cropped(host("hf bert")),
    ),
    Mutant(
        "mask turned round in eval", "reader", "padding-amount", "padding.modes",
        lambda: written("reader", "Reader", (
            "if mask is not None:\n", "if mask is not None:\n            mask = mask if self.training else ~mask\n"))(),
    ),
    Mutant(
        "no mask in train mode", "hf bert", "padding-amount", "padding.modes",
        lambda: given(host("hf bert"), "encoder.layer.0.attention.self", "attention_mask",
                      lambda part, x: None if part.training else x),
    ),
    Mutant(
        "cross-attention sees padding", "translator", "source-padding", "source.content",
        lambda: written("translator", "TinyTranslator", (
            "layer(x, memory, visible, visible_source)", "layer(x, memory, visible, None)"))(),
        "decoder.0.cross",
    ),
    Mutant(
        "the encoder sees padding", "translator", "source-padding", "source.content",
        lambda: written("translator", "TinyTranslator", (
            "layer(memory, visible_source)", "layer(memory, None)"))(),
        "encoder.0.attention",
    ),
    Mutant(
        "source mask ignored", "translator", "source-padding", "source.unmasked",
        lambda: written("translator", "TinyTranslator", (
            "None if src_mask is None else src_mask[:, None, None, :]", "None"))(),
        "encoder.0.attention",
    ),
    Mutant(
        "cross-attention of one layer sees padding", "hf marian", "source-padding", "source.content",
        lambda: hidden("hf marian", "model.decoder.layers.1.encoder_attn", "attention_mask"),
        "model.decoder.layers.1.encoder_attn",
    ),
    Mutant(
        "cross-attention sees padding", "torch transformer", "source-padding", "source.amount",
        lambda: hidden("torch transformer", "decoder.layers.0.multihead_attn", "key_padding_mask"),
        "decoder.layers.0.multihead_attn",
    ),
    Mutant(
        "memory scaled by the padded length", "translator", "source-padding", "source.amount",
        lambda: written("translator", "TinyTranslator", (
            "memory = self.norm_source(memory)", "memory = self.norm_source(memory) * src.shape[1]"))(),
        "",
    ),
    Mutant(
        "memory centred over the padded length", "hf marian", "source-padding", "source.amount",
        lambda: answered(host("hf marian"), "model.encoder.layers.1.fc2", lambda _, x: x * x.shape[1]),
        "model.encoder.layers.1.fc2",
    ),
    Mutant(
        "nan from a row with nothing to see", "gpt", "nothing-visible", "nothing.spreads",
        lambda: written("gpt", "TinyGPT", ("torch.nan_to_num(torch.softmax(scores, dim=-1))", "scores.softmax(-1)"))(),
        "blocks.0.attention",
    ),
    Mutant(
        "nan in gradients", "reader", "nothing-visible", "nothing.gradient",
        lambda: written("reader", "Reader", (
            NOTHING, NOTHING.replace("torch.finfo(scores.dtype).min", "float('-inf')")))(),
        "layers.0.attention",
    ),
    Mutant(
        "nan in gradients", "translator", "nothing-visible", "nothing.gradient",
        lambda: written("translator", "TinyTranslator", (ATTENDS, BY_HAND.format("scores.softmax(-1).nan_to_num()")))(),
        ("encoder.0.attention", "decoder.0.attention"),
    ),
    Mutant(
        "nan from a row with nothing to see", "translator", "nothing-visible", "nothing.spreads",
        lambda: written("translator", "TinyTranslator", (ATTENDS, BY_HAND.format("scores.softmax(-1)")))(),
        "decoder.0.attention",
    ),
    Mutant(
        "nan put out where nothing is visible", "reader", "nothing-visible", "nothing.nan",
        lambda: written("reader", "Reader", (
            "        return x\n\n\nclass Sorter",
            "        return x if mask is None else x.masked_fill(~mask.any(1)[:, None, None], torch.nan)\n\n\n"
            "class Sorter"))(),
        "",
    ),
    Mutant(
        "no padding mask", "reader", "padding-mask", "padding.unmasked",
        lambda: written("reader", "Reader", (
            "def forward(self, tokens, mask=None):\n        where",
            "def forward(self, tokens):\n        mask = None\n        where"))(),
    ),
    Mutant(
        "no source mask", "translator", "padding-mask", "padding.unmasked",
        lambda: written("translator", "TinyTranslator", (
            "src_mask=None, tgt_mask=None):\n", "tgt_mask=None):\n        src_mask = None\n"))(),
    ),
    Mutant("no padding mask", "hf bert", "padding-mask", "padding.unmasked", lambda: Blind(host("hf bert"))),
    Mutant(
        "mean over pads", "sorter", "pooling", "pooling.counts",
        lambda: written("reader", "Sorter", ("(x * real).sum(1) / real.sum(1).clamp_min(1)", "x.mean(1)"))(), "",
    ),
    Mutant(
        "maximum over pads", "sorter", "pooling", "pooling.counts",
        lambda: written("reader", "Sorter", ("(x * real).sum(1) / real.sum(1).clamp_min(1)", "x.amax(1)"))(), "",
    ),
    Mutant(
        "sum divided by the padded length", "sorter", "pooling", "pooling.counts",
        lambda: written("reader", "Sorter", ("real.sum(1).clamp_min(1)", "x.shape[1]"))(), "",
    ),
    Mutant(
        "last place read", "sorter", "pooling", "pooling.side",
        lambda: written("reader", "Sorter", (
            "self.classes((x * real).sum(1) / real.sum(1).clamp_min(1))", "self.classes(x[:, -1])"), (
            "self.classes(x.mean(1))", "self.classes(x[:, -1])"), (" + where)", ")"))(), "",
    ),
    Mutant(
        "mean over pads", "hf bert sorter", "pooling", "pooling.counts",
        lambda: counted(host("hf bert sorter")), "bert.pooler",
    ),
]  # fmt: skip


def cropped(model: nn.Module) -> nn.Module:
    """The answer is cut to the longest text of the batch."""

    def cut(_part: nn.Module, _args: Any, kwargs: Any, out: Any) -> Any:
        mask = kwargs.get("attention_mask")
        if mask is not None:
            out.last_hidden_state = out.last_hidden_state[:, : int(mask.sum(1).max())]
        return out

    model.register_forward_hook(cut, with_kwargs=True)
    return model
