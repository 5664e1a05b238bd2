"""Planted faults of caches: in order, positions, masks of parts, cutting, reordering, use for another text, and windows."""

from __future__ import annotations

import torch
from torch import nn

from check_corpus.leaks import gpt, held, of, packed
from check_corpus.plant import Mutant, behaving

OF_CACHE = ("past_key_values", "cache")


def deaf(host: str) -> nn.Module:
    """A model whose cache is taken, given back and never read."""
    model = of(host)

    def forward(self, *args, **given):
        given |= {name: None for name in OF_CACHE if name in given}
        return super(type(self), self).forward(*args, **given)

    return behaving(model, forward=forward)


def first_query() -> nn.Module:
    """Relative positions are counted from the first query, whatever the cache holds."""
    model = of("hf t5")

    def compute_bias(self, query_length, key_length, **given):
        given["past_seen_tokens"] = 0
        return super(type(self), self).compute_bias(query_length, key_length, **given)

    behaving(model.decoder.block[0].layer[0].SelfAttention, compute_bias=compute_bias)
    return model


def top_left(host: str, path: str) -> nn.Module:
    """Parts of several tokens are masked from the first key on, as `is_causal=True` does."""
    model = of(host)

    def forward(self, *args, **given):
        hidden = args[0] if args else given["hidden_states"]
        mask = given.get("attention_mask")
        if hidden.shape[1] > 1 and mask is not None and mask.shape[-1] > mask.shape[-2]:
            given["attention_mask"] = torch.ones_like(mask, dtype=torch.bool).tril()
        return super(type(self), self).forward(*args, **given)

    behaving(model.get_submodule(path), forward=forward)
    return model


def with_cache(host: str, change) -> nn.Module:
    """A model whose cache is changed, once, when it is given back."""
    model = of(host)

    def forward(self, *args, **given):
        out = super(type(self), self).forward(*args, **given)
        cache = next((x for name in OF_CACHE if (x := getattr(out, name, None)) is not None), None)
        if cache is not None and not getattr(cache, "planted", False):
            change(cache)
            cache.planted = True
        return out

    return behaving(model, forward=forward)


def methods(**named):
    """A change of a cache's class."""

    def change(cache):
        cache.__class__ = type(type(cache).__name__, (type(cache),), named)

    return change


def crop_values_only(self, length):
    """Our cache: keys stay as they are."""
    kept = {path: store.kept["k"] for path, store in self.stores.items()}
    super(type(self), self).crop(length)
    for path, store in self.stores.items():
        store.kept["k"] = torch.cat([kept[path][:, :, 1:], kept[path][:, :, :1]], 2)[:, :, : store.kept["v"].shape[2]]


def crop_one_short(self, length):
    """One token too many goes."""
    super(type(self), self).crop(length - 1)


def crop_first_layers(self, length):
    """The library's cache: the last layer's values move."""
    super(type(self), self).crop(length)
    self.layers[-1].values = self.layers[-1].values.roll(1, 2)


def reorder_keys_only(self, rows, memory_rows=None):
    """Our cache: values stay where they were."""
    kept = {path: store.kept["v"] for path, store in self.stores.items()}
    super(type(self), self).reorder(rows, memory_rows)
    for path, store in self.stores.items():
        store.kept["v"] = kept[path]


def reorder_first_layer(self, rows):
    """The library's cache: only the first layer is reordered."""
    kept = [(layer.keys, layer.values) for layer in self.layers]
    super(type(self), self).reorder_cache(rows)
    for layer, (keys, values) in list(zip(self.layers, kept, strict=True))[1:]:
        layer.keys, layer.values = keys, values


def nothing(self):
    """A reset that forgets nothing."""


def places_with_cache(host: str) -> nn.Module:
    """Positions that the caller gives are dropped once there is a cache."""
    model = of(host)

    def forward(self, *args, **given):
        if any(given.get(name) is not None for name in OF_CACHE):
            given["position_ids"] = None
        return super(type(self), self).forward(*args, **given)

    return behaving(model, forward=forward)


def louder(host: str) -> nn.Module:
    """Asking for a cache makes all logits a little larger."""
    model = of(host)

    def forward(self, *args, **given):
        out = super(type(self), self).forward(*args, **given)
        if given.get("use_cache"):
            out.logits = out.logits * 1.01
        return out

    return behaving(model, forward=forward)


def beyond_the_window() -> nn.Module:
    """The cache keeps everything, and a single token is given no mask."""
    from transformers import DynamicCache

    model = of("hf mistral")

    def whole(self, *args, **given):
        if given.get("use_cache") and given.get("past_key_values") is None:
            given["past_key_values"] = DynamicCache()
        return super(type(self), self).forward(*args, **given)

    def forward(self, *args, **given):
        if given["hidden_states"].shape[1] == 1:
            given["attention_mask"] = None
        return super(type(self), self).forward(*args, **given)

    for layer in model.model.layers:
        behaving(layer.self_attn, forward=forward)
    return behaving(model, forward=whole)


CAT = "k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)"
HIDDEN = "hidden = self.later[start : start + length, : k.shape[1]].bool()"

STEPS = [
    ("keys joined the wrong way round", "gpt", gpt((CAT, CAT.replace("[past[0], k]", "[k, past[0]]"))),
     "blocks.0.attention", "cache", "cache.differs"),
    ("positions from 0", "gpt",
     gpt(("start = cache[0][0].shape[2] if cache is not None else 0", "start = 0")), "", "cache", "cache.positions"),
    ("positions from 0", "packed", packed(("start = cache.length if cache is not None else 0", "start = 0")), "", "cache",
     "cache.differs"),
    ("positions from 0", "held",
     held(("self.places(torch.arange(start, start + idx.shape[1], device=idx.device))",
           "self.places(torch.arange(idx.shape[1], device=idx.device))")), "", "cache", "cache.differs"),
    ("cache never read", "our llama", lambda: deaf("our llama"), ("", "layers.0.attention"), "cache", "cache.ignored"),
    ("cache never read", "hf llama", lambda: deaf("hf llama"), ("", "model"), "cache", "cache.ignored"),
    ("bias of the first query", "hf t5", first_query, "decoder.block.0.layer.0.SelfAttention", "cache", "cache.differs"),
    ("square mask", "held",
     held((HIDDEN, "hidden = self.later[:length, :length].bool() if length > 1 else self.later[:length, :length].bool().expand(2, 2)")),
     "layers.0.attention", "cache", "cache.fails"),
    ("mask from the first key", "gpt",
     gpt((".triu(k.shape[2] - length + 1)", ".triu(k.shape[2] - length + 1 if length == 1 else 1)")),
     "blocks.0.attention", "chunks", "chunk.differs"),
    ("mask from the first key", "hf llama", lambda: top_left("hf llama", "model.layers.1.self_attn"),
     "model.layers.1.self_attn", "chunks", "chunk.differs"),
    ("no mask with a cache", "packed", packed(("seen = (far >= 0)", "seen = (far >= 0) | (index.shape[1] > place.shape[1])")),
     "layers.0.attention", "chunks", "chunk.leak"),
    ("no mask with a cache", "gpt",
     gpt(("hidden = later if pad", "later = later & (past is None)\n        hidden = later if pad")),
     "blocks.0.attention", "chunks", "chunk.leak"),
    ("one place per call", "held", held(("self.start += idx.shape[1]", "self.start += 1")), "", "chunks", "chunk.differs"),
    ("square mask", "held",
     held((HIDDEN, "hidden = self.later[start : start + length, : k.shape[1]].bool() if 1 in (length, length - start + 1) "
           "else self.later[:length, :length].bool()")), "layers.0.attention", "chunks", "cache.fails"),
    ("logits larger with a cache", "hf llama", lambda: louder("hf llama"), "", "cache-switch", "cache.switch"),
    ("no last norm with a cache", "gpt",
     gpt(("logits = self.head(self.norm(x))", "logits = self.head(x if use_cache else self.norm(x))")), "", "cache-switch",
     "cache.switch"),
]  # fmt: skip
ROWS = [
    ("keys not cut", "our gpt2", lambda: with_cache("our gpt2", methods(crop=crop_values_only)),
     "layers.0.attention", "crop", "crop.differs"),
    ("one token too many cut", "our llama", lambda: with_cache("our llama", methods(crop=crop_one_short)), None, "crop",
     "crop.differs"),
    ("last layer's values moved", "hf gpt2", lambda: with_cache("hf gpt2", methods(crop=crop_first_layers)),
     "transformer.h.1.attn", "crop", "crop.differs"),
    ("values not reordered", "our llama", lambda: with_cache("our llama", methods(reorder=reorder_keys_only)),
     "layers.0.attention", "reorder", "reorder.differs"),
    ("only the first layer reordered", "hf gpt2", lambda: with_cache("hf gpt2", methods(reorder_cache=reorder_first_layer)),
     "transformer.h.1.attn", "reorder", "reorder.differs"),
    ("only the first layer reordered", "packed",
     packed(("tuple(t[rows] for t in kept) for key", "tuple(t[rows] if key == 0 else t for t in kept) for key")),
     "layers.1.attention", "reorder", "reorder.differs"),
    ("text left in the module", "gpt",
     gpt(("        kept = []", "        self.first = getattr(self, 'first', x.std().detach())\n        x, kept = x / self.first, []")),
     ("", "blocks.0"), "reuse", "reuse.state"),
    ("one memory for all", "packed",
     packed(("return Memory()", "self.memory = getattr(self, 'memory', None) or Memory()\n        return self.memory")),
     None, "reuse", "reuse.state"),
    ("count not reset", "held", held(("    def reset_cache(self):\n        self.start = 0\n", "    def reset_cache(self):\n")),
     None, "reuse", "reuse.reset"),
    ("reset that forgets nothing", "our llama", lambda: with_cache("our llama", methods(reset=nothing)), None, "reuse",
     "reuse.reset"),
    ("positions without the mask", "gpt",
     gpt(("if position_ids is None and attention_mask is not None:",
          "if position_ids is None and attention_mask is not None and cache is None:")), "", "cache-padding",
     "cache.padding"),
    ("mask dropped with a cache", "gpt",
     gpt(("pad = None if attention_mask is None else", "pad = None if attention_mask is None or cache is not None else")),
     "", "cache-padding", "cache.padding"),
    ("given positions dropped", "hf llama", lambda: places_with_cache("hf llama"), ("", "model"), "cache-padding",
     "cache.positions_given"),
    ("given positions dropped", "hf gpt2", lambda: places_with_cache("hf gpt2"), ("", "transformer"), "cache-padding",
     "cache.positions_given"),
    ("no window with a cache", "packed", packed(("if self.window:", "if self.window and cache is None:")),
     "layers.0.attention", "cache-window", "window.cache"),
    ("only the tail of a prompt", "packed", packed(("        return joined", "        return self.held[layer.number]")),
     "layers.0.attention", "cache-window", "window.cache"),
    ("no window for one token", "hf mistral", beyond_the_window, "model.layers.0.self_attn", "cache-window",
     "window.cache"),
]  # fmt: skip

CACHES = [Mutant(name, host, check, fault, make, module) for name, host, make, module, check, fault in (*STEPS, *ROWS)]
