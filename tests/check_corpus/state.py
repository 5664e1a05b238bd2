"""Planted faults of state: dropout in the wrong mode, draws, memory, and ways that part."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from check_corpus.altered import answered
from check_corpus.become import become
from check_corpus.hosts import HOSTS
from check_corpus.plant import Mutant, written


def host(name: str) -> nn.Module:
    """A host as it is."""
    return HOSTS[name].make()


def always(model: nn.Module, path: str, rate: float) -> nn.Module:
    """A dropout that does not ask for the mode."""
    part = model.get_submodule(path)
    part.forward = lambda x: F.dropout(x, rate)
    return model


class StuckMode(nn.Dropout):
    """A dropout that stays in the mode it was made in."""

    def train(self, mode: bool = True) -> nn.Module:
        return self


def stuck(model: nn.Module, path: str) -> nn.Module:
    owner, _, name = path.rpartition(".")
    setattr(model.get_submodule(owner), name, StuckMode(0.1))
    return model


class Forgets(nn.Dropout):
    """A dropout whose rate is set to 0 for evaluation and never set back."""

    def train(self, mode: bool = True) -> nn.Module:
        if not mode:
            self.p = 0.0
        return super().train(mode)


def forgets(model: nn.Module, path: str) -> nn.Module:
    owner, _, name = path.rpartition(".")
    setattr(model.get_submodule(owner), name, Forgets(0.1))
    return model


def bypassed(model: nn.Module, path: str) -> nn.Module:
    """A dropout that answers with what it reads."""
    model.get_submodule(path).forward = lambda x: x
    return model


def draws(model: nn.Module, path: str) -> nn.Module:
    """A part that draws a number and throws it away."""
    return answered(model, path, lambda part, out: (torch.rand(1), out)[1])


def in_train(part: nn.Module, out: torch.Tensor) -> torch.Tensor:
    """Half of it, in train mode only."""
    return out * 0.5 if part.training else out


def counted(part: nn.Module, out: torch.Tensor) -> torch.Tensor:
    """A little more with every call."""
    part.calls = getattr(part, "calls", 0) + 1
    return out * (1 + 0.1 * part.calls)


def mean_over_batch(part: nn.Module, out: torch.Tensor) -> torch.Tensor:
    """Divided by the number of texts."""
    return out / out.shape[0]


def when_compiled(part: nn.Module, out: torch.Tensor) -> torch.Tensor:
    """Another answer where it is traced."""
    return out * 2 if torch.compiler.is_compiling() else out


STATE = [
    Mutant(
        "functional dropout never off", "gpt", "dropout-eval", "dropout.eval",
        lambda: written("gpt", "TinyGPT", ("F.dropout(weights, self.dropout, self.training)",
                                           "F.dropout(weights, self.dropout)"))(),
        "blocks.0.attention",
    ),
    Mutant(
        "constant rate in the fused kernel", "translator", "dropout-eval", "dropout.eval",
        lambda: written("translator", "TinyTranslator", ("attn_mask=visible)", "attn_mask=visible, dropout_p=0.1)"))(),
        "encoder.0.attention",
    ),
    Mutant("mode not handed on", "reader", "dropout-eval", "dropout.eval", lambda: stuck(host("reader"), "drop"), "drop"),
    Mutant(
        "dropout never off", "hf bert", "dropout-eval", "dropout.eval",
        lambda: always(host("hf bert"), "encoder.layer.1.output.dropout", 0.1),
        "encoder.layer.1.output.dropout",
    ),
    Mutant(
        "noise in eval", "our llama", "dropout-eval", "random.eval",
        lambda: answered(host("our llama"), "layers.1.feedforward", lambda part, out: out + 0.01 * torch.randn_like(out)),
    ),
    Mutant(
        "made and not called", "gpt", "dropout-train", "dropout.absent",
        lambda: written("gpt", "TinyGPT", ("x = self.drop(self.token(input_ids) + self.position(position_ids))",
                                           "x = self.token(input_ids) + self.position(position_ids)"))(),
        "drop",
    ),
    Mutant(
        "a rate that nobody reads", "gpt", "dropout-train", "dropout.absent",
        lambda: written("gpt", "TinyGPT", ("        weights = F.dropout(weights, self.dropout, self.training)\n", ""))(),
        "blocks.0.attention",
    ),
    Mutant("off in train", "hf marian", "dropout-train", "dropout.absent", lambda: unread(host("hf marian"))),
    Mutant(
        "called and off", "translator", "dropout-train", "dropout.absent",
        lambda: bypassed(host("translator"), "decoder.1.drop"), "decoder.1.drop",
    ),
    Mutant("off for ever", "gpt", "dropout-again", "dropout.off", lambda: forgets(host("gpt"), "drop"), "drop"),
    Mutant(
        "off for ever", "torch encoder", "dropout-again", "dropout.off",
        lambda: forgets(host("torch encoder"), "layers.1.dropout1"), "layers.1.dropout1",
    ),
    Mutant("a draw thrown away", "reader", "generator", "random.drawn", lambda: draws(host("reader"), "layers.0")),
    Mutant("a draw thrown away", "hf gpt2", "generator", "random.drawn", lambda: draws(host("hf gpt2"), "transformer.h.0")),
    Mutant(
        "counts its calls", "translator", "same-twice", "state.changes",
        lambda: answered(host("translator"), "encoder.1.feedforward", counted), "encoder.1.feedforward",
    ),
    Mutant(
        "remembers the keys of other texts", "gpt", "same-twice", "state.fails",
        lambda: written("gpt", "TinyGPT",
                        ("        if past is not None:\n            k",
                         "        past, self.kept = getattr(self, 'kept', None), (k, v)\n"
                         "        if past is not None:\n            k"))(),
        "blocks.0.attention",
    ),
    Mutant(
        "a table of positions that drifts", "hf llama", "same-twice", "state.changes",
        lambda: answered(host("hf llama"), "model.layers.0.mlp", counted), "model.layers.0.mlp",
    ),
    Mutant(
        "divided by the batch", "reader", "batch-of-one", "batch.one",
        lambda: written("reader", "Reader", ("return self.norm2(x + self.drop(",
                                             "return self.norm2(x + 2 / len(x) * self.drop("))(), "layers.0",
    ),
    Mutant(
        "squeeze takes the batch too", "gpt", "batch-of-one", "batch.one.fails",
        lambda: written("gpt", "TinyGPT", ("hidden = F.gelu(self.up(self.norm2(x)))",
                                           "hidden = F.gelu(self.up(self.norm2(x.squeeze())))\n"
                                           "        assert hidden.ndim == x.ndim"))(),
    ),
    Mutant(
        "divided by the batch", "hf bert", "batch-of-one", "batch.one",
        lambda: answered(host("hf bert"), "encoder.layer.0.intermediate", mean_over_batch),
    ),
    Mutant(
        "other branch in train", "translator", "train-eval", "paths.train",
        lambda: answered(host("translator"), "decoder.0.feedforward", in_train),
    ),
    Mutant(
        "another activation in eval", "reader", "train-eval", "paths.train",
        lambda: written("reader", "Reader", ("F.relu(self.up(x))", "(F.relu if self.training else F.gelu)(self.up(x))"))(),
        "layers.0",
    ),
    Mutant(
        "other branch in train", "hf gpt2", "train-eval", "paths.train",
        lambda: answered(host("hf gpt2"), "transformer.h.1.mlp", in_train),
    ),
    Mutant(
        "other branch when traced", "gpt", "compiled", "paths.compiled",
        lambda: written("gpt", "TinyGPT", ("F.gelu(self.up(self.norm2(x)))",
                                           "F.gelu(self.up(self.norm2(x))) * (2 if torch.compiler.is_compiling() else 1)"))(),
        "blocks.0",
    ),
    Mutant(
        "no mask when traced", "reader", "compiled", "paths.compiled",
        lambda: written("reader", "Reader", ("self.size**-0.5", "(1 if torch.compiler.is_compiling() else self.size**-0.5)"))(),
        "layers.0.attention",
    ),
    Mutant(
        "a view of the input", "gpt", "views", "views.fail",
        lambda: written("gpt", "TinyGPT", ("self.token(input_ids) +",
                                           "self.token(input_ids.view(-1)).view(*input_ids.shape, -1) +"))(),
    ),
    Mutant(
        "strides taken for order", "notes block", "views", "views.differ",
        lambda: written("notes_block", "TransformerBlock", ("h = self.ln1(x)",
                        "h = self.ln1(x.as_strided(x.shape, (x.shape[1] * x.shape[2], x.shape[2], 1)))"))(), "",
    ),
    Mutant(
        "strides taken for order", "reader", "views", "views.differ",
        lambda: written("reader", "Reader", ("self.token(tokens)",
                        "self.token(tokens.as_strided(tokens.shape, (tokens.shape[1], 1)))"))(), "",
    ),
]  # fmt: skip


def unread(model: nn.Module) -> nn.Module:
    """Every layer of the encoder and decoder runs as in eval mode."""
    become(model.model, frozen)
    return model


def frozen(self: nn.Module, right, *args, **kwargs):
    """Everything inside runs as in eval mode."""
    modes = [(one, one.training) for one in self.modules()]
    for one, _ in modes:
        one.training = False
    try:
        return right(*args, **kwargs)
    finally:
        for one, mode in modes:
            one.training = mode
