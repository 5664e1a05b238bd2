"""Planted faults of norms, activations, residual paths and the start."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import torch
from torch import nn

from check_corpus.altered import answered
from check_corpus.become import become
from check_corpus.hosts import HOSTS
from check_corpus.plant import Mutant, written


def host(name: str) -> nn.Module:
    """A host as it is."""
    return HOSTS[name].make()


def swapped(model: nn.Module, path: str, part: nn.Module) -> nn.Module:
    """Another part in a place."""
    owner, _, name = path.rpartition(".")
    setattr(model.get_submodule(owner), name, part)
    return model


class Norm(nn.Module):
    """A norm as people write it, over any axis, by any formula."""

    def __init__(self, dim, axis=-1, eps=1e-6, outside=False, correction=0):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
        self.axis, self.eps, self.outside, self.correction = axis, eps, outside, correction

    def forward(self, x):
        mean = x.mean(self.axis, keepdim=True)
        if self.outside:
            return (
                self.weight * (x - mean) / (x.std(self.axis, keepdim=True, correction=self.correction) + self.eps)
                + self.bias
            )
        variance = x.var(self.axis, keepdim=True, correction=self.correction)
        return self.weight * (x - mean) / (variance + self.eps).sqrt() + self.bias


class Root(nn.Module):
    """An RMS norm with epsilon outside the root."""

    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x):
        return self.weight * x / (x.pow(2).mean(-1, keepdim=True).sqrt() + self.eps)


class OverBatch(nn.Module):
    """Batch statistics as if texts were images."""

    def __init__(self, dim):
        super().__init__()
        self.norm = nn.BatchNorm1d(dim)

    def forward(self, x):
        return self.norm(x.transpose(1, 2)).transpose(1, 2)


def cloned(make):
    """Layers made by copying the first."""
    model = make()
    for _, part in list(model.named_modules()):
        if isinstance(part, nn.ModuleList) and len(part) > 1:
            for n in range(1, len(part)):
                part[n] = copy.deepcopy(part[0])
    return model


def reused(model: nn.Module, path: str) -> nn.Module:
    """One layer under every number."""
    part = model.get_submodule(path)
    for n in range(1, len(part)):
        part[n] = part[0]
    return model


def redrawn(model: nn.Module, path: str, std: float) -> nn.Module:
    """A weight of another spread."""
    nn.init.normal_(model.get_submodule(path).weight, std=std)
    return model


def zeroed(model: nn.Module, *paths: str) -> nn.Module:
    """Weights at zero, one behind the other."""
    for path in paths:
        for weight in model.get_submodule(path).parameters():
            nn.init.zeros_(weight)
    return model


def extra(model: nn.Module, path: str) -> nn.Module:
    """A layer that nothing calls."""
    model.get_submodule(path).add_module("spare", nn.Linear(16, 16))
    return model


def cut(part: nn.Module, out):
    """No gradient through here."""
    return out.detach()


def configured(model: nn.Module, **said) -> nn.Module:
    """A configuration that says something."""
    model.config = SimpleNamespace(**said)
    return model


def pre_norm() -> nn.Module:
    """Torch's encoder, norms inside its branches, none at the end."""
    layer = nn.TransformerEncoderLayer(16, 2, 40, batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


JOINED = [
    Mutant("norm over time", "gpt", "norm-axis", "norm.time", lambda: swapped(host("gpt"), "blocks.1.norm2", Norm(16, axis=1)),
           "blocks.1.norm2"),
    Mutant("norm over time", "translator", "norm-axis", "norm.time",
           lambda: swapped(host("translator"), "norm_source", Norm(16, axis=1)), "norm_source"),
    Mutant("norm over all of a text", "hf bert", "norm-axis", "norm.time",
           lambda: swapped(host("hf bert"), "encoder.layer.0.output.LayerNorm", Norm(16, axis=(1, 2))),
           "encoder.layer.0.output.LayerNorm"),
    Mutant("norm over the batch", "reader", "norm-axis", "norm.batch",
           lambda: swapped(host("reader"), "layers.1.norm1", Norm(16, axis=0)), "layers.1.norm1"),
    Mutant("axes of batch and length mixed up", "torch encoder, length first", "norm-axis", "norm.time",
           lambda: swapped(host("torch encoder, length first"), "layers.0.norm1", Norm(16, axis=0)), "layers.0.norm1"),
    Mutant("batch norm", "reader", "batch-norm", "norm.batchnorm",
           lambda: swapped(host("reader"), "layers.0.norm2", OverBatch(16)), "layers.0.norm2.norm"),
    Mutant("batch norm", "translator", "batch-norm", "norm.batchnorm",
           lambda: swapped(host("translator"), "encoder.1.norm2", OverBatch(16)), "encoder.1.norm2.norm"),
    Mutant("sigma plus epsilon", "gpt", "norm-formula", "norm.outside",
           lambda: swapped(host("gpt"), "norm", Norm(16, outside=True)), "norm"),
    Mutant("root plus epsilon", "hf llama", "norm-formula", "norm.outside",
           lambda: swapped(host("hf llama"), "model.layers.1.input_layernorm", Root(16)), "model.layers.1.input_layernorm"),
    Mutant("sigma plus epsilon, written in the block", "reader", "norm-formula", "norm.outside",
           lambda: written("reader", "Reader", (
               "return self.norm2(x + self.drop(self.down(F.relu(self.up(x)))))",
               "x = x + self.drop(self.down(F.relu(self.up(x))))\n"
               "        x = x - x.mean(-1, keepdim=True)\n"
               "        return self.norm2.weight * x / (x.var(-1, keepdim=True, unbiased=False).sqrt() + 1e-5) + self.norm2.bias"))(),
           "layers.0"),
    Mutant("unbiased variance", "translator", "norm-variance", "norm.unbiased",
           lambda: swapped(host("translator"), "norm", Norm(16, correction=1)), "norm"),
    Mutant("unbiased deviation", "notes block", "norm-variance", "norm.unbiased",
           lambda: swapped(host("notes block"), "ln2", Norm(16, outside=True, correction=1)), "ln2"),
    Mutant("unbiased variance", "hf bert", "norm-variance", "norm.unbiased",
           lambda: swapped(host("hf bert"), "embeddings.LayerNorm", Norm(16, correction=1)), "embeddings.LayerNorm"),
    Mutant("epsilon left at its default", "hf bert", "epsilon", "norm.epsilon",
           lambda: swapped(host("hf bert"), "encoder.layer.1.output.LayerNorm", nn.LayerNorm(16)),
           "encoder.layer.1.output.LayerNorm"),
    Mutant("epsilon left at its default", "hf llama", "epsilon", "norm.epsilon",
           lambda: swapped(host("hf llama"), "model.norm", Root(16, eps=1e-5)), "model.norm"),
    Mutant("epsilon of another family", "gpt", "epsilon", "norm.epsilon",
           lambda: configured(host("gpt"), layer_norm_eps=1e-12), "blocks.0.norm1"),
    Mutant("erf for tanh", "hf gpt2", "activation", "activation.config",
           lambda: swapped(host("hf gpt2"), "transformer.h.0.mlp.act", nn.GELU()), "transformer.h.0.mlp.act"),
    Mutant("tanh for erf", "hf bert", "activation", "activation.config",
           lambda: swapped(host("hf bert"), "encoder.layer.1.intermediate.intermediate_act_fn", nn.GELU("tanh")),
           "encoder.layer.1.intermediate.intermediate_act_fn"),
    Mutant("relu for swish", "hf llama", "activation", "activation.config",
           lambda: relu_everywhere(host("hf llama")), "model.layers.0.mlp.act_fn"),
    Mutant("erf for tanh", "gpt", "activation", "activation.config",
           lambda: configured(host("gpt"), activation_function="gelu_new"), "blocks.0"),
    Mutant("no residual around attention", "gpt", "residual", "residual.missing",
           lambda: written("gpt", "TinyGPT", ("x = x + self.drop(mixed)", "x = self.drop(mixed)"))(), "blocks.0"),
    Mutant("no residual around the feed-forward", "reader", "residual", "residual.missing",
           lambda: written("reader", "Reader", ("self.norm2(x + self.drop(", "self.norm2(self.drop("))(), "layers.0"),
    Mutant("no residual in an encoder", "translator", "residual", "residual.missing",
           lambda: written("translator", "TinyTranslator", (
               "x = x + self.drop(self.attention(h, h, visible))\n        return x",
               "x = self.drop(self.attention(h, h, visible))\n        return x"))(), "encoder.0"),
    Mutant("no residual", "notes block", "residual", "residual.missing",
           lambda: written("notes_block", "TransformerBlock", ("return x + self.ffn", "return self.ffn"))(), ""),
    Mutant("no residual", "hf t5", "residual", "residual.missing", lambda: no_residual(host("hf t5")), ("decoder.block.1", "decoder.block.1.layer.2")),
    Mutant("no final norm", "gpt", "final-norm", "norm.final", lambda: swapped(host("gpt"), "norm", nn.Identity()), "blocks"),
    Mutant("no final norm", "translator", "final-norm", "norm.final",
           lambda: swapped(host("translator"), "norm", nn.Identity()), "decoder"),
    Mutant("no final norm", "torch encoder", "final-norm", "norm.final", pre_norm, "layers"),
    Mutant("no final norm", "hf llama", "final-norm", "norm.final",
           lambda: swapped(host("hf llama"), "model.norm", nn.Identity()), "model.layers"),
    Mutant("no final norm", "our gpt2", "final-norm", "norm.final",
           lambda: swapped(host("our gpt2"), "norm", nn.Identity()), "layers"),
    Mutant("layers copied from the first", "gpt", "layers-equal", "layers.equal", lambda: cloned(lambda: host("gpt")), "blocks"),
    Mutant("layers copied from the first", "hf bert", "layers-equal", "layers.equal",
           lambda: cloned(lambda: host("hf bert")), "encoder.layer"),
    Mutant("experts copied from the first", "experts", "layers-equal", "layers.equal",
           lambda: cloned_experts(host("experts")), "blocks.0.mixture.experts"),
    Mutant("one layer twice", "gpt", "layers-shared", "layers.shared", lambda: reused(host("gpt"), "blocks"), "blocks"),
    Mutant("one layer twice", "hf gpt2", "layers-shared", "layers.shared",
           lambda: reused(host("hf gpt2"), "transformer.h"), "transformer.h"),
    Mutant("one norm twice", "reader", "layers-shared", "layers.shared",
           lambda: written("reader", "Reader", ("self.drop = nn.Dropout(dropout)\n\n    def forward(self, x, mask):",
                                                "self.norm2 = self.norm1\n        self.drop = nn.Dropout(dropout)\n\n"
                                                "    def forward(self, x, mask):"))(), "layers.0"),
    Mutant("head too wide", "gpt", "start-loss", "start.loss", lambda: redrawn(host("gpt"), "token", 1.0), "head"),
    Mutant("head too wide", "translator", "start-loss", "start.loss", lambda: redrawn(host("translator"), "head", 1.0), "head"),
    Mutant("head too wide", "hf llama", "start-loss", "start.loss", lambda: redrawn(host("hf llama"), "lm_head", 1.0), "lm_head"),
    Mutant("a layer that nothing calls", "gpt", "unused", "weights.unused", lambda: extra(host("gpt"), "blocks.1"), "blocks.1.spare"),
    Mutant("a layer that nothing calls", "hf marian", "unused", "weights.unused",
           lambda: extra(host("hf marian"), "model.encoder.layers.0"), "model.encoder.layers.0.spare"),
    Mutant("attention computed and not added", "reader", "unused", "weights.unused",
           lambda: written("reader", "Reader", ("x = self.norm1(x + self.drop(self.attention(x, mask)))",
                                                "self.drop(self.attention(x, mask))\n        x = self.norm1(x)"))(),
           "layers.0.attention"),
    Mutant("detached", "translator", "unused", "weights.unused",
           lambda: answered(host("translator"), "encoder.0.feedforward", cut), "encoder.0.feedforward"),
    Mutant("multiplied by nothing", "hf bert", "dead", "layer.dead",
           lambda: answered(host("hf bert"), "encoder.layer.0.attention", lambda part, out: (out[0] * 0, *out[1:])),
           ),
    Mutant("multiplied by nothing", "gpt", "dead", "layer.dead",
           lambda: written("gpt", "TinyGPT", ("self.drop(self.down(hidden))", "0 * self.drop(self.down(hidden))"))(),
           ("blocks.0.norm2", "blocks.0.up", "blocks.0.down")),
    Mutant("two zeros in a row", "translator", "dead", "layer.stuck",
           lambda: zeroed(host("translator"), "decoder.0.feedforward.up", "decoder.0.feedforward.down"),
           ("decoder.0.feedforward", "decoder.0.feedforward.up", "decoder.0.feedforward.down")),
    Mutant("two zeros in a row", "adapted", "dead", "layer.stuck", lambda: zero_adapter(host("adapted")), "blocks.0.q"),
]  # fmt: skip


def zero_adapter(model):
    nn.init.zeros_(model.blocks[0].q.a)
    return model


def relu_everywhere(model):
    for layer in model.model.layers:
        layer.mlp.act_fn = nn.ReLU()
    return model


def cloned_experts(model):
    for n in range(1, 4):
        model.blocks[0].mixture.experts[n] = copy.deepcopy(model.blocks[0].mixture.experts[0])
    return model


def no_residual(model):
    """The last feed-forward answers with its branch alone."""
    become(
        model.decoder.block[1].layer[2], lambda self, right, x, *args, **kwargs: self.DenseReluDense(self.layer_norm(x))
    )
    return model
