"""Planted faults of saved weights, adapters and routers."""

from __future__ import annotations

import torch
import transformers.models.mixtral.modeling_mixtral as library
from torch import nn

from check_corpus.become import become
from check_corpus.hosts import HOSTS
from check_corpus.plant import Mutant, written


def host(name: str) -> nn.Module:
    """A host as it is."""
    return HOSTS[name].make()


def retied(model: nn.Module, head: str, table: str, how) -> nn.Module:
    """A head tied in another way."""
    model.get_submodule(head).weight = how(model.get_submodule(table).weight)
    return model


def by_data(weight: nn.Parameter) -> nn.Parameter:
    """Another parameter over the same memory."""
    return nn.Parameter(weight.data)


def by_copy(weight: nn.Parameter) -> nn.Parameter:
    """Another parameter with the same numbers."""
    return nn.Parameter(weight.detach().clone())


def redrawn(weight: nn.Parameter) -> nn.Parameter:
    """A parameter of its own."""
    return nn.Parameter(torch.randn_like(weight) * 0.02)


def unsaved(model: nn.Module, path: str) -> nn.Module:
    """A part that leaves itself out of what is saved."""
    part = model.get_submodule(path)

    def forget(module, state, prefix, local):
        for name in [name for name in state if name.startswith(prefix)]:
            del state[name]

    part._register_state_dict_hook(forget)
    return model


def lenient(model: nn.Module, path: str) -> nn.Module:
    """A part that saves nothing and misses nothing."""
    part = model.get_submodule(path)
    part._save_to_state_dict = lambda *args, **kwargs: None
    part._load_from_state_dict = lambda *args, **kwargs: None
    return model


def wrapped(model: nn.Module, path: str, kind) -> nn.Module:
    """A part wrapped for speed, and saved so."""
    owner, _, name = path.rpartition(".")
    setattr(model.get_submodule(owner), name, kind(model.get_submodule(path)))
    return model


class DataParallel(nn.Module):
    """Stands for torch's, which wants devices: the same name, the same key."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)


def learning(model: nn.Module, end: str, learns: bool = True) -> nn.Module:
    """Weights that learn, or no longer."""
    for name, weight in model.named_parameters():
        if name.endswith(end):
            weight.requires_grad_(learns)
    return model


LISTS = (
    "self.blocks = nn.ModuleList(Block(dim, heads, dropout) for _ in range(depth))",
    "self.blocks = [Block(dim, heads, dropout) for _ in range(depth)]",
)
SHARES = "weights = weights / weights.sum(-1, keepdim=True)"

STORED = [
    Mutant("layers in a plain list", "gpt", "saved", "saved.unregistered", lambda: written("gpt", "TinyGPT", LISTS)(), ""),
    Mutant("layers in a plain list", "reader", "saved", "saved.unregistered",
           lambda: written("reader", "Reader", (
               "self.layers = nn.ModuleList(Layer(dim, heads, hidden, dropout) for _ in range(depth))",
               "self.layers = [Layer(dim, heads, hidden, dropout) for _ in range(depth)]"))(), ""),
    Mutant("a part leaves itself out", "hf bert", "saved", "saved.refused", lambda: unsaved(host("hf bert"), "encoder.layer.0")),
    Mutant("a part leaves itself out", "translator", "saved", "saved.incomplete",
           lambda: lenient(host("translator"), "encoder.0.attention.q"), "encoder.0.attention.q"),
    Mutant("tied by data", "gpt", "tied", "tied.by_data", lambda: retied(host("gpt"), "head", "token", by_data), "head"),
    Mutant("tied by data", "hf gpt2", "tied", "tied.by_data",
           lambda: retied(host("hf gpt2"), "lm_head", "transformer.wte", by_data), "lm_head"),
    Mutant("tied by copy", "gpt", "tied", "tied.copied", lambda: retied(host("gpt"), "head", "token", by_copy), "head"),
    Mutant("tied by copy", "translator", "tied", "tied.copied",
           lambda: retied(host("translator"), "head", "target", by_copy), "head"),
    Mutant("tied in words only", "hf gpt2", "tied-config", "tied.lost",
           lambda: retied(host("hf gpt2"), "lm_head", "transformer.wte", redrawn), "lm_head"),
    Mutant("tied in words only", "hf marian", "tied-config", "tied.lost",
           lambda: retied(host("hf marian"), "lm_head", "model.shared", redrawn), "lm_head"),
    Mutant("tied in words only", "hf t5", "tied-config", "tied.lost",
           lambda: retied(host("hf t5"), "lm_head", "shared", redrawn), "lm_head"),
    Mutant("wrapped for several devices", "gpt", "prefixes", "saved.prefix",
           lambda: wrapped(host("gpt"), "blocks.0", DataParallel), "blocks.0"),
    Mutant("compiled part", "reader", "prefixes", "saved.prefix",
           lambda: wrapped(host("reader"), "layers.1", lambda part: torch.compile(part, backend="eager")), "layers.1"),
    Mutant("both drawn", "adapted", "adapter-start", "adapter.start",
           lambda: written("adapted", "Adapted", ("self.b = nn.Parameter(torch.zeros(outputs, rank))",
                                                  "self.b = nn.Parameter(torch.randn(outputs, rank))"))(), "blocks.0.q"),
    Mutant("both drawn", "tuned", "adapter-start", "adapter.start",
           lambda: written("adapted", "Tuned", ("        nn.init.zeros_(self.lora_b.weight)\n", ""))(), "up"),
    Mutant("base learns", "adapted", "adapter-base", "adapter.base", lambda: learning(host("adapted"), ".base.weight"), "blocks.0.q"),
    Mutant("base learns", "tuned", "adapter-base", "adapter.base", lambda: learning(host("tuned"), ".linear.weight"), "up"),
    Mutant("half an adapter", "adapted", "adapter-base", "adapter.frozen", lambda: learning(host("adapted"), ".b", False), "blocks.0.q"),
    Mutant("merged without its factor", "adapted", "adapter-merge", "adapter.merge",
           lambda: written("adapted", "Adapted", ("self.base.weight += self.scale * self.b @ self.a",
                                                  "self.base.weight += self.b @ self.a"))(), "blocks.0.q"),
    Mutant("merged and still added", "tuned", "adapter-merge", "adapter.merge",
           lambda: written("adapted", "Tuned", ("            self.lora_b.weight.zero_()\n", ""))(), "up"),
    Mutant("taken out once too often", "adapted", "adapter-merge", "adapter.unmerge",
           lambda: written("adapted", "Adapted", ("self.base.weight -= self.scale * self.b @ self.a",
                                                  "self.base.weight -= 2 * self.scale * self.b @ self.a"))(), "blocks.0.q"),
    Mutant("raw scores as weights", "experts", "router-weights", "router.raw",
           lambda: written("experts", "Expertly", ("shares = self.router(tokens).softmax(-1)", "shares = self.router(tokens)"),
                           (SHARES, "weights = weights * 1"))(), "blocks.0.mixture"),
    Mutant("raw scores as weights", "hf mixtral", "router-weights", "router.raw", lambda: raw(host("hf mixtral"))),
    Mutant("raw scores as weights", "our mixtral", "router-weights", "router.raw", lambda: raw_ours(host("our mixtral"))),
    Mutant("exp without its sum", "experts", "router-weights", "router.above",
           lambda: written("experts", "Expertly", ("self.router(tokens).softmax(-1)", "self.router(tokens).exp()"),
                           (SHARES, "weights = weights * 1"))(), "blocks.0.mixture"),
    Mutant("not renormalised", "hf qwen moe", "router-config", "router.config", lambda: renormalised(host("hf qwen moe"))),
    Mutant("not renormalised", "experts", "router-config", "router.config",
           lambda: configured(written("experts", "Expertly", (SHARES, "weights = weights * 1"))(), norm_topk_prob=True),
           "blocks.0.mixture"),
    Mutant("router cut off", "experts", "experts-learn", "router.untaught",
           lambda: written("experts", "Expertly", ("weights[rows, place, None]", "weights.detach()[rows, place, None]"),
                           ('"aux_loss": balance(routed, real)', '"aux_loss": balance(routed, real).detach()'))(),
           "blocks.0.mixture.router"),
    Mutant("an expert that nobody chooses", "experts", "experts-learn", "experts.untaught",
           lambda: written("experts", "Expertly", ("shares = self.router(tokens).softmax(-1)",
                "shares = self.router(tokens).masked_fill(torch.arange(len(self.experts)) == 2, -torch.inf).softmax(-1)"))(),
           "blocks.0.mixture.experts.2"),
    Mutant("an expert that nobody chooses", "hf mixtral", "experts-learn", "experts.untaught",
           lambda: never(host("hf mixtral"))),
    Mutant("padding in the balance", "experts", "balance-padding", "balance.padding",
           lambda: written("experts", "Expertly", ("balance(routed, real)}", "balance(routed, None)}"))()),
    Mutant("padding in the balance", "hf mixtral", "balance-padding", "balance.padding", lambda: unmasked(host("hf mixtral"))),
]  # fmt: skip


def configured(model, **said):
    model.config = type("Config", (), said)()
    return model


def renormalised(model):
    for layer in model.model.layers:
        layer.mlp.gate.norm_topk_prob = True
    return model


def raw(model):
    """The router hands on what it chose from before the softmax."""

    def forward(self, right, x):
        scores, _, _ = right(x)
        return scores, *scores.topk(self.top_k)

    become(model.model.layers[0].mlp.gate, forward)
    return model


def raw_ours(model):
    become(model.layers[0].feedforward, lambda self, right, x, ctx: self.router(x).topk(self.active), "route")
    return model


def never(model):
    """The last expert's score is always the lowest."""

    def forward(self, right, x):
        scores, _, _ = right(x)
        lowest = torch.arange(self.num_experts) == self.num_experts - 1
        top, chosen = scores.masked_fill(lowest, -1e4).softmax(-1).topk(self.top_k)
        return scores, top / top.sum(-1, keepdim=True), chosen

    become(model.model.layers[1].mlp.gate, forward)
    return model


def unmasked(model):
    """The loss of the balance is computed as if every token were real."""
    right = library.load_balancing_loss_func

    def forward(self, kept, **kwargs):
        library.load_balancing_loss_func = lambda a, b, c, mask=None: right(a, b, c, None)
        try:
            return kept(**kwargs)
        finally:
            library.load_balancing_loss_func = right

    return become(model, forward)
