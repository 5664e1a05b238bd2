"""Differences planted in one of two equal models: where each must be found, and as what."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from oneblock.explain.causes_of_place import Opposite
from oneblock.explain.variant import Variant
from oneblock.spec import Causal, Full, Learned, SigmaNorm, Window

TEXT = [5, 6, 7, 8, 6, 9, 10, 5]
Plant = Callable[[Any], Any]


def hidden(path: str, new: Any, lie: bool = True) -> Plant:
    """B is built by another spec, of which, with `lie`, it does not tell."""

    def plant(model: Any) -> Any:
        own = model.spec
        variant = Variant.of(model, {}).with_spec(path, new)
        found = variant.built().double()
        found.spec = own if lie else found.spec
        return found

    return plant


def told(path: str, new: Any) -> Plant:
    """B is built by another spec and says so."""
    return hidden(path, new, lie=False)


@torch.no_grad()
def weights(change: Callable[[dict[str, Any]], None]) -> Plant:
    """B has other weights."""

    def plant(model: Any) -> Any:
        found = copy.deepcopy(model)
        change(dict(found.named_parameters()))
        return found

    return plant


def turn(*names: str) -> Plant:
    """Square matrices stored the other way."""

    def change(tensors: dict[str, Any]) -> None:
        for name in names:
            tensors[name].data = tensors[name].data.mT.contiguous()

    return weights(change)


def swap(one: str, other: str) -> Plant:
    """Two matrices in each other's place, in every layer."""

    def change(tensors: dict[str, Any]) -> None:
        for name in tensors:
            if f".{one}." in name:
                beside = name.replace(f".{one}.", f".{other}.")
                tensors[name].data, tensors[beside].data = tensors[beside].data, tensors[name].data

    return weights(change)


def interleaved(tensors: dict[str, Any]) -> None:
    """Rows of q and k of every head in the order of the other rotary layout."""
    for name, x in tensors.items():
        if ".attention.q." in name or ".attention.k." in name:
            x.data = x.data.unflatten(0, (-1, 2, 2)).transpose(1, 2).flatten(0, 2)


def shifted(tensors: dict[str, Any]) -> None:
    """A table of positions whose first row was lost."""
    tensors["embedding.position.weight"].data = tensors["embedding.position.weight"].data.roll(-1, 0)


def no_bias(tensors: dict[str, Any]) -> None:
    """Biases of q, k and v left out."""
    for name, x in tensors.items():
        if name.endswith((".q.bias", ".k.bias", ".v.bias")):
            x.data = torch.zeros_like(x)


def halved(tensors: dict[str, Any]) -> None:
    """1 / sqrt(head_dim) folded into the queries."""
    for name, x in tensors.items():
        if ".attention.q." in name:
            x.data = x.data / 2


def one_more(tensors: dict[str, Any]) -> None:
    """Weights of norms stored as 1 + w."""
    for name, x in tensors.items():
        if ".norms." in name:
            x.data = x.data + 1


def other_layer(tensors: dict[str, Any]) -> None:
    """Layers 0 and 1 in each other's place."""
    for name, x in tensors.items():
        if name.startswith("layers.0."):
            beside = tensors[name.replace("layers.0.", "layers.1.")]
            x.data, beside.data = beside.data, x.data


def every_epsilon(model: Any) -> Any:
    """Another epsilon in all norms, of which the spec does not tell."""
    found = copy.deepcopy(model)
    for module in found.modules():
        if hasattr(module, "eps"):
            module.eps *= 10
    return found


FIRST = "layers.0.attention"
PLANTS: dict[str, tuple[str, Plant, str, str]] = {
    "rotary layout": ("llama", hidden("layers.*.attention.position.layout", "interleaved"), FIRST, "rotary layout"),
    "rotary layout in one layer": (
        "qwen3", hidden("layers.1.attention.position.layout", "interleaved"), "layers.1.attention", "rotary layout"
    ),
    "rotary rows": ("mistral", weights(interleaved), f"{FIRST}.q", "rotary layout"),
    "rotary base": ("qwen2", hidden("layers.*.attention.position.theta", 10_000.0), FIRST, "base"),
    "rotary share": ("phi", hidden("layers.*.attention.position.fraction", 1.0), FIRST, "fraction"),
    "GELU": ("gpt2", hidden("layers.*.feedforward.activation", "gelu"), "layers.0.feedforward", "activation"),
    "GELU in an encoder": (
        "bert", told("layers.*.feedforward.activation", "gelu_tanh"), "layers.0.feedforward", "activation"
    ),
    "epsilon": ("llama", every_epsilon, "layers.0.norms.attention_pre", "epsilon"),
    "epsilon of a post-norm": (
        "bert", hidden("layers.*.norm.eps", 1e-5), "layers.0.norms.attention_post", "epsilon"
    ),
    "sigma and epsilon": (
        "gpt2", hidden("layers.*.norm", SigmaNorm(1e-5)), "layers.0.norms.attention_pre", "norm"
    ),
    "no scale": ("gpt2", hidden("layers.*.attention.scale", 1.0), FIRST, "scale"),
    "scale by the width": (
        "vaswani", hidden("*.layers.*.attention.scale", 0.25), "encoder.layers.0.attention", "scale"
    ),
    "transposed output": (
        "vaswani", turn("decoder.layers.1.cross.out.weight"), "decoder.layers.1.cross.out", "transposed"
    ),
    "transposed query": ("gpt2", turn("layers.0.attention.q.weight", "layers.1.attention.q.weight"), f"{FIRST}.q",
                         "transposed"),
    "gate and up": ("llama", swap("gate", "up"), "layers.0.feedforward.gate", "gate and up"),
    "gate and up of experts": (
        "mixtral", swap("gate", "up"), "layers.0.feedforward.experts", "gate and up"
    ),
    "key and value": ("bert", swap("k", "v"), f"{FIRST}.k", "exchanged"),
    "mask polarity": ("gpt2", hidden("layers.*.attention.mask", Opposite(Causal())), FIRST, "mask polarity"),
    "no mask": ("llama", hidden("layers.*.attention.mask", Full()), FIRST, "mask"),
    "a window one too wide": (
        "mistral", hidden("layers.*.attention.mask", Causal() & Window(back=4)), FIRST, "mask"
    ),
    "position offset": ("gpt2", weights(shifted), "embedding.position", "position offset"),
    "position offset in the spec": (
        "roberta", hidden("embedding.position", lambda old: Learned(old.length + old.offset, 0)), "embedding.position",
        "position offset",
    ),
    "sinusoids begin at 1": (
        "vaswani", hidden("encoder.embedding.position.start", 1), "encoder.embedding.position", "position offset"
    ),
    "sinusoids in halves": (
        "vaswani", told("*.embedding.position.layout", "half"), "encoder.embedding.position", "sinusoid layout"
    ),
    "embedding scale": ("gemma", hidden("embedding.scale", None), "embedding", "embedding scale"),
    "weight of a norm": ("gemma", hidden("layers.*.norm.centred", False), "layers.0.norms.attention_pre", "centred"),
    "no biases": ("qwen2", weights(no_bias), f"{FIRST}.q", "bias"),
    "layers in another order": ("gpt2", weights(other_layer), "layers.0.norms.attention_pre", "layers"),
    "scale in the weights": ("mistral", weights(halved), f"{FIRST}.q", "factor"),
    "one added to the weights of norms": ("llama", weights(one_more), "layers.0.norms.attention_pre", "centred"),
    "no residual": ("neox", hidden("layers.*.skip", 0.0), "layers.0", "residual"),
    "soft cap": ("gemma2", told("layers.*.attention.softcap", None), FIRST, "softcap"),
    "router": ("mixtral", told("layers.*.feedforward.router.renormalise", False), "layers.0.feedforward", "router"),
}  # fmt: skip
"""What was planted -> (family, how, the brick that must be named, the kind of cause)."""
