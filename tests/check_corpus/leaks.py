"""Planted leaks: of the future, of other texts, beyond windows and documents, and between source and target."""

from __future__ import annotations

import torch
from torch import nn

from check_corpus.hosts import HOSTS
from check_corpus.plant import Mutant, behaving, written

LATE = ("seen = (far >= 0)", "seen = ((far >= 0) | (place[:, :, None] > 11))")
ONE_HEAD = ("attn_mask=seen[:, None]", "attn_mask=seen[:, None] | (torch.arange(4) == 2)[None, :, None, None]")
CROSS = "x = x + self.drop(self.cross(self.norm2(x), memory, visible_source))"


def of(host: str) -> nn.Module:
    """A host, to be changed."""
    return HOSTS[host].make()


def masked_by(part: nn.Module, change) -> None:
    """A part of the reference library whose mask is changed before it is used."""

    def forward(self, *args, **given):
        given["attention_mask"] = change(given.get("attention_mask"))
        return super(type(self), self).forward(*args, **given)

    behaving(part, forward=forward)


def unmasked_layer() -> nn.Module:
    """The second block's attention sees everything."""
    model = written(
        "gpt", "TinyGPT",
        ("scores = scores.masked_fill(hidden",
         "if getattr(self, 'masked', True):\n            scores = scores.masked_fill(hidden"),
    )()  # fmt: skip
    model.blocks[1].attention.masked = False
    return model


def two_kernels() -> nn.Module:
    """A flag chooses between a fused kernel that hides the future and a written one that does not."""
    return written(
        "gpt", "TinyGPT",
        ("self.heads, self.dropout = heads, dropout", "self.heads, self.dropout, self.flash = heads, dropout, True"),
        ("hidden = later if pad is None else later | pad[:, None, None, :]",
         "if not self.flash:\n            later = torch.zeros_like(later)\n"
         "        hidden = later if pad is None else later | pad[:, None, None, :]"),
    )()  # fmt: skip


def everything_seen(host: str, path: str) -> nn.Module:
    """One layer's attention is given a mask that hides nothing."""
    model = of(host)

    masked_by(model.get_submodule(path), lambda mask: torch.ones(1, 1, 1, 1, dtype=torch.bool))
    return model


class Smear(nn.Module):
    """A feed-forward after a convolution that reaches one token ahead."""

    def __init__(self, inner, dim):
        super().__init__()
        self.inner, self.conv = inner, nn.Conv1d(dim, dim, 3, padding=1)

    def forward(self, x, *more):
        return self.inner(x + self.conv(x.transpose(1, 2)).transpose(1, 2), *more)


def convolved(host: str, path: str, name: str) -> nn.Module:
    """A feed-forward with a convolution before it."""
    model = of(host)
    parent = model.get_submodule(path)
    setattr(parent, name, Smear(getattr(parent, name), 16))
    return model


def straight_through(host: str, path: str) -> nn.Module:
    """A part that adds the mean over time to the gradient alone."""
    model = of(host)

    def forward(self, x, *args, **given):
        y = super(type(self), self).forward(x, *args, **given)
        mean = x.mean(1, keepdim=True)
        return y + (mean - mean.detach())

    behaving(model.get_submodule(path), forward=forward)
    return model


def over_the_batch(host: str, path: str) -> nn.Module:
    """A norm that takes its numbers over the batch."""
    model = of(host)

    def forward(self, x):
        return super(type(self), self).forward(x - x.mean(0, keepdim=True))

    behaving(model.get_submodule(path), forward=forward)
    return model


def rolled() -> nn.Module:
    """One layer's feed-forward takes something of the text before in the batch."""
    model = of("torch transformer")

    def _ff_block(self, x):
        return super(type(self), self)._ff_block(x + 0.1 * x.roll(1, 0))

    behaving(model.decoder.layers[1], _ff_block=_ff_block)
    return model


def unwindowed() -> nn.Module:
    """All layers see the whole past, whatever the configuration says."""
    model = of("hf mistral")
    for layer in model.model.layers:
        masked_by(layer.self_attn, lambda mask: mask if mask is None else torch.ones_like(mask).tril())
    return model


def cross_blind(all_layers: bool) -> nn.Module:
    """Cross-attention that reads the decoder's own stream."""
    model = of("torch decoder")

    def _mha_block(self, x, mem, *args, **given):
        return super(type(self), self)._mha_block(x, x, *args, **given)

    for layer in model.layers if all_layers else [model.layers[1]]:
        behaving(layer, _mha_block=_mha_block)
    return model


def marian_blind() -> nn.Module:
    """One layer's cross-attention is given no source."""
    model = of("hf marian")

    def forward(self, hidden_states, **given):
        given.update(key_value_states=None, attention_mask=None, past_key_values=None)
        return super(type(self), self).forward(hidden_states, **given)

    behaving(model.model.decoder.layers[1].encoder_attn, forward=forward)
    return model


def marian_later() -> nn.Module:
    """Cross-attention with a causal mask."""
    model = of("hf marian")

    def forward(self, hidden_states, **given):
        sizes = hidden_states.shape[1], given["key_value_states"].shape[1]
        given["attention_mask"] = torch.ones(1, 1, *sizes, dtype=torch.bool).tril()
        return super(type(self), self).forward(hidden_states, **given)

    for layer in model.model.decoder.layers:
        behaving(layer.encoder_attn, forward=forward)
    return model


def without_places() -> nn.Module:
    """The encoder's positions are all the same."""
    model = of("hf marian")

    def forward(self, *args, **given):
        return super(type(self), self).forward(*args, **given) * 0

    behaving(model.model.encoder.embed_positions, forward=forward)
    return model


def gpt(*pairs):
    """The hand-written language model, with other words."""
    return lambda: written("gpt", "TinyGPT", *pairs)()


def packed(*pairs):
    """The hand-written model with windows and documents, with other words."""
    return lambda: written("packed", "PackedLM", *pairs)()


def held(*pairs):
    """The hand-written model that holds its cache, with other words."""
    return lambda: written("held", "HeldLM", *pairs)()


def translator(*pairs):
    """The hand-written translator, with other words."""
    return lambda: written("translator", "TinyTranslator", *pairs)()


FUTURE = [
    ("no mask in one layer", "gpt", unmasked_layer, "blocks.1.attention"),
    ("mask one too far", "gpt", gpt(("k.shape[2] - length + 1)", "k.shape[2] - length + 2)")), "blocks.0.attention"),
    ("mask dropped in train mode", "gpt",
     gpt(("hidden = later if pad", "later = later & (not self.training)\n        hidden = later if pad")),
     "blocks.0.attention"),
    ("mask only in one of two kernels", "gpt", two_kernels, "blocks.0.attention"),
    ("mean over time", "gpt", gpt(("self.attention(self.norm1(x), pad", "self.attention(self.norm1(x - x.mean(1, True)), pad")),
     "blocks.0"),
    ("scan from the end", "packed",
     packed(("h = self.between(x)", "h = self.between(x) + 0.1 * x.flip(1).cumsum(1).flip(1)")), "layers.0"),
    ("one head unmasked", "packed", packed(ONE_HEAD), "layers.0.attention"),
    ("future seen late in a text", "packed", packed(LATE), "layers.0.attention"),
    ("no mask with a cache", "held",
     held(("hidden = self.later[start : start + length, : k.shape[1]].bool()",
           "hidden = self.later[start : start + length, : k.shape[1]].bool() & (not remember)")), "layers.0.attention"),
    ("target's mask one too far", "translator", translator(("device=tgt.device).tril()", "device=tgt.device).tril(1)")),
     "decoder.0.attention"),
    ("target in the memory", "translator",
     translator(("memory = self.norm_source(memory)", "memory = self.norm_source(memory) + self.target(tgt).mean(1, True)")),
     ("", "decoder.0.cross")),
    ("convolution ahead", "our llama", lambda: convolved("our llama", "layers.1", "feedforward"), "layers.1.feedforward.conv"),
    ("mask that hides nothing", "hf llama", lambda: everything_seen("hf llama", "model.layers.1.self_attn"),
     "model.layers.1.self_attn"),
    ("mask that hides nothing", "hf marian", lambda: everything_seen("hf marian", "model.decoder.layers.0.self_attn"),
     "model.decoder.layers.0.self_attn"),
    ("convolution ahead", "hf gpt2", lambda: convolved("hf gpt2", "transformer.h.0", "mlp"), "transformer.h.0.mlp.conv"),
]  # fmt: skip
MATES = [
    ("norm over the batch", "gpt", lambda: over_the_batch("gpt", "blocks.1.norm1"), "blocks.1.norm1", "batch.leak"),
    ("norm over the batch", "hf bert", lambda: over_the_batch("hf bert", "encoder.layer.0.output.LayerNorm"),
     "encoder.layer.0.output.LayerNorm", "batch.leak"),
    ("another text's vectors", "torch transformer", rolled, "decoder.layers.1", "batch.leak"),
    ("first text's mask for all", "reader",
     lambda: written("reader", "Reader", ("~mask[:, None, None, :]", "~mask[1:2, None, None, :]"))(),
     "layers.0.attention", "batch.mask"),
    ("first source's mask for all", "translator", translator(("else src_mask[:, None", "else src_mask[1:2, None")),
     ("", "encoder.0.attention"), "batch.mask"),
]  # fmt: skip
BORDERS = [
    ("window forgotten in one layer", "packed", packed(("if self.window:", "if self.window and self.number:")),
     "layers.0.attention", "window", "window.leak"),
    ("window twice as wide", "packed", packed(("(far < self.window)", "(far < 2 * self.window)")),
     "layers.0.attention", "window", "window.leak"),
    ("window never used", "hf mistral", unwindowed, "model.layers.0.self_attn", "window", "window.leak"),
    ("documents forgotten in one layer", "packed",
     packed(("& (documents[:, :, None] == text[:, None, :])",
             "& ((documents[:, :, None] == text[:, None, :]) | (self.number == 1))")),
     "layers.1.attention", "documents", "document.leak"),
    ("token before in another document", "packed",
     packed(("x = self.embed(ids)", "x = self.embed(ids)\n        x = x + F.pad(x, (0, 0, 1, -1))")),
     "", "documents", "document.leak"),
    ("documents forgotten in one layer", "hf llama", lambda: causal_only("hf llama", "model.layers.1.self_attn"),
     "model.layers.1.self_attn", "documents", "document.leak"),
]  # fmt: skip
SOURCES = [
    ("queries and keys swapped", "translator",
     translator((CROSS, "x = x + self.drop(self.cross(memory, self.norm2(x), visible_source))")),
     "decoder.0.cross", "source", "source.swapped"),
    ("values of the target", "translator", translator(("(self.v, source)", "(self.v, x)")), "decoder.0.cross", "source",
     "source.mixed"),
    ("cross-attention to itself", "translator",
     translator((CROSS, CROSS.replace("memory, visible_source", "self.norm2(x), None"))), "decoder.0.cross", "source",
     "source.ignored"),
    ("cross-attention not added", "translator", translator((CROSS, CROSS.replace("x = x +", "_ ="))), "decoder.0.cross",
     "source", "source.ignored"),
    ("cross-attention to itself", "torch decoder", lambda: cross_blind(True), "layers.0.multihead_attn", "source",
     "source.ignored"),
    ("one cross-attention to itself", "torch decoder", lambda: cross_blind(False), "layers.1.multihead_attn", "source",
     "source.ignored_once"),
    ("one cross-attention to itself", "hf marian", marian_blind, "model.decoder.layers.1.encoder_attn", "source",
     "source.ignored_once"),
    ("encoder without positions", "translator",
     translator(("self.attention, self.feedforward = Attention(dim, heads, True), FeedForward(dim, hidden)\n        self.norm1, self.norm2 =",
                 "self.attention, self.feedforward = Attention(dim, heads, False), FeedForward(dim, hidden)\n        self.norm1, self.norm2 =")),
     None, "source-order", "source.order"),
    ("encoder without positions", "hf marian", without_places, None, "source-order", "source.order"),
    ("memory cut to the target's length", "translator",
     translator(("        length = tgt.shape[1]", "        length = tgt.shape[1]\n        memory = memory[:, :length]")),
     "decoder.0.cross", "source-whole", "source.cut"),
    ("causal mask in cross-attention", "hf marian", marian_later, "model.decoder.layers.0.encoder_attn", "source-whole",
     "source.partly"),
]  # fmt: skip
GRADIENTS = [
    ("straight-through mean", "gpt", lambda: straight_through("gpt", "blocks.1.norm2"), "blocks.1.norm2"),
    ("straight-through mean", "hf llama", lambda: straight_through("hf llama", "model.layers.0.mlp"), "model.layers.0.mlp"),
    ("straight-through mean", "torch transformer",
     lambda: straight_through("torch transformer", "decoder.layers.1.norm2"), "decoder.layers.1.norm2"),
]  # fmt: skip


def causal_only(host: str, path: str) -> nn.Module:
    """One layer is told nothing but that it is causal."""
    model = of(host)
    masked_by(model.get_submodule(path), lambda mask: mask if mask is None else torch.ones_like(mask).tril())
    return model


LEAKS = [
    *(Mutant(name, host, "causal", "causal.leak", make, module) for name, host, make, module in FUTURE),
    *(Mutant(name, host, "causal-gradient", "causal.gradient", make, module) for name, host, make, module in GRADIENTS),
    *(Mutant(name, host, "batch", fault, make, module) for name, host, make, module, fault in MATES),
    *(Mutant(name, host, check, fault, make, module) for name, host, make, module, check, fault in BORDERS),
    *(Mutant(name, host, check, fault, make, module) for name, host, make, module, check, fault in SOURCES),
]
