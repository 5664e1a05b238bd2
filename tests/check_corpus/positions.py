"""Planted faults of positions: forgotten, unread, unshifted, too coarse, too few, on the wrong vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from check_corpus.altered import answered, called, fed
from check_corpus.padding import host
from check_corpus.plant import Mutant, written


def without(name: str) -> nn.Module:
    """Positions that are given are thrown away."""

    def call(forward: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
        kwargs["position_ids"] = None
        return forward(**kwargs)

    return called(host(name), call)


def counted(name: str) -> nn.Module:
    """Positions are 0, 1, 2 wherever the text begins."""

    def call(forward: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
        length = kwargs["input_ids"].shape[1]
        kwargs["position_ids"] = torch.arange(length).expand(kwargs["input_ids"].shape)
        return forward(**kwargs)

    return called(host(name), call)


def short(name: str, path: str) -> nn.Module:
    """A table of positions that lacks its last row."""
    model = host(name)
    table = model.get_submodule(path)
    table.weight = nn.Parameter(table.weight[:-1].clone())
    return model


class Coarse(nn.Module):
    """Rotary positions counted and multiplied in the precision of the vectors."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.speed = 10_000.0 ** (-torch.arange(0, size, 2) / size)

    def forward(self, x: torch.Tensor, position_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        angle = position_ids[..., None].to(x) * self.speed.to(x)
        angle = torch.cat([angle, angle], -1)
        return angle.cos(), angle.sin()


def coarse() -> nn.Module:
    """A decoder with it."""
    model = host("hf llama")
    model.model.rotary_emb = Coarse(8)
    return model


def turner(*pairs: tuple[str, str]) -> nn.Module:
    """The decoder with rotary positions in halves, with other words in it."""
    return written("turner", "Turner", *pairs)()


def translator(*pairs: tuple[str, str]) -> nn.Module:
    """The translator with other words in it."""
    return written("translator", "TinyTranslator", *pairs)()


def reader(*pairs: tuple[str, str]) -> nn.Module:
    """The encoder with other words in it."""
    return written("reader", "Reader", *pairs)()


def gpt(*pairs: tuple[str, str]) -> nn.Module:
    """The small language model with other words in it."""
    return written("gpt", "TinyGPT", *pairs)()


def still(part: nn.Module, out: Any) -> Any:
    """No position turns anything: every cosine 1, every sine 0."""
    del part
    return torch.ones_like(out[0]), torch.zeros_like(out[1])


TOLD = ("position_ids = (attention_mask.long().cumsum(-1) - 1).clamp_min(0)[:, start:]", "pass")
UNPAIRED = (
    "torch.cos(place * speed)",
    "torch.cos(place * torch.exp(-math.log(10_000.0) * torch.arange(1, dim, 2) / dim))",
)
TABLE = (
    "place = torch.arange(length, device=tgt.device)[:, None]\n"
    "        speed = 10_000.0 ** (-torch.arange(16) / 16)\n"
    "        angle, even = place * speed, torch.arange(16) % 2 == 0\n"
    "        x = self.target(tgt) + torch.where(even, angle.sin(), angle.cos())"
    ".to(self.norm.weight)[None]"
)

POSITIONS = [
    Mutant("no positions", "reader", "positions", "positions.ignored", lambda: reader((" + where)", ")"))),
    Mutant("no positions", "hf bert", "positions", "positions.ignored",
           lambda: answered(host("hf bert"), "embeddings.position_embeddings", lambda _, x: x * 0)),
    Mutant("no positions", "gpt", "positions", "positions.none",
           lambda: gpt((" + self.position(position_ids)", ""))),
    Mutant("no positions", "hf llama", "positions", "positions.none",
           lambda: answered(host("hf llama"), "model.rotary_emb", still)),
    Mutant("no positions", "turner", "positions", "positions.none",
           lambda: turner(("return angle.cos(), angle.sin()", "return angle.cos() * 0 + 1, angle.sin() * 0"))),
    Mutant("no positions in the encoder", "translator", "positions", "positions.source",
           lambda: translator(("Attention(dim, heads, True), FeedForward",
                               "Attention(dim, heads, False), FeedForward"))),
    Mutant("no positions in the encoder", "hf marian", "positions", "positions.source",
           lambda: answered(host("hf marian"), "model.encoder.embed_positions", lambda _, x: x * 0)),
    Mutant("positions unread", "gpt", "position-ids", "positions.unread",
           lambda: gpt(("start = cache[0][0]", "position_ids = None\n        start = cache[0][0]"))),
    Mutant("positions unread", "turner", "position-ids", "positions.unread",
           lambda: turner(("if position_ids is None:", "if True:"))),
    Mutant("positions unread", "hf llama", "position-ids", "positions.unread", lambda: without("hf llama")),
    Mutant("positions unread", "our bert", "position-ids", "positions.unread", lambda: without("our bert")),
    Mutant("positions not begun at the first token", "gpt", "left-padding", "positions.left.caller", lambda: gpt(TOLD)),
    Mutant("positions not begun at the first token", "gpt", "left-padding", "positions.left",
           lambda: gpt(TOLD, ("position_ids=None, labels", "labels"),
                       ("start = cache[0][0]", "position_ids = None\n        start = cache[0][0]")), ""),
    Mutant("positions not begun at the first token", "our gpt2", "left-padding", "positions.left",
           lambda: counted("our gpt2")),
    Mutant("angles in low precision", "translator", "position-precision", "positions.precision",
           lambda: translator(("angle = torch.arange(length, device=x.device)[:, None] * speed",
                               "angle = torch.arange(length, device=x.device)[:, None].to(x) * speed.to(x)")),
           "decoder.0.attention"),
    Mutant("angles in low precision", "turner", "position-precision", "positions.precision",
           lambda: turner(("x = self.token(input_ids)", "x, position_ids = self.token(input_ids), "
                           "position_ids.to(self.head.weight)"), (".float() * speed", " * speed.to(position_ids)"))),
    Mutant("angles in low precision", "hf llama", "position-precision", "positions.precision", coarse),
    Mutant("sinusoids in low precision", "reader", "position-precision", "positions.precision",
           lambda: reader(("sinusoids(tokens.shape[1], self.dim)",
                           "sinusoids(tokens.shape[1], self.dim, self.token.weight)"),
                          ("def sinusoids(length, dim):", "def sinusoids(length, dim, like):"),
                          ("place = torch.arange(length)[:, None]", "place = torch.arange(length)[:, None].to(like)"),
                          ("torch.arange(0, dim, 2) / dim)", "torch.arange(0, dim, 2) / dim).to(like)"))),
    Mutant("values turned", "translator", "rotary-values", "rotary.values",
           lambda: translator(("q, k = rotate(q), rotate(k)", "q, k, v = rotate(q), rotate(k), rotate(v)")),
           "decoder.0.attention"),
    Mutant("values turned", "turner", "rotary-values", "rotary.values",
           lambda: turner(("k = k * cos + halves(k) * sin", "k, v = (t * cos + halves(t) * sin for t in (k, v))")),
           "blocks.0.attention"),
    Mutant("queries turned, keys not", "translator", "rotary-pairs", "rotary.pairs",
           lambda: translator(("q, k = rotate(q), rotate(k)", "q = rotate(q)")), "decoder.0.attention"),
    Mutant("queries and keys paired differently", "turner", "rotary-pairs", "rotary.pairs",
           lambda: turner(("k = k * cos + halves(k) * sin", "k = k * cos + torch.stack("
                           "[-k[..., 1::2], k[..., ::2]], -1).flatten(-2) * sin")), "blocks.0.attention"),
    Mutant("keys turned the other way", "turner", "rotary-pairs", "rotary.pairs",
           lambda: turner(("k * cos + halves(k) * sin", "k * cos - halves(k) * sin")), "blocks.0.attention"),
    Mutant("a wrong sign in the rotation", "translator", "rotary-pairs", "rotary.pairs",
           lambda: translator(("a * sin + b * cos", "a * sin - b * cos")), "decoder.0.attention"),
    Mutant("positions counted from 1", "gpt", "longest", "positions.short",
           lambda: gpt(("torch.arange(start, start + input_ids.shape[1]",
                        "1 + torch.arange(start, start + input_ids.shape[1]"),
                       ("self.norm = nn.LayerNorm(dim)", "self.norm, self.block_size = nn.LayerNorm(dim), length"))),
    Mutant("a row of the table is missing", "hf gpt2", "longest", "positions.short",
           lambda: short("hf gpt2", "transformer.wpe")),
    Mutant("a row of the table is missing", "hf bert", "longest", "positions.short",
           lambda: short("hf bert", "embeddings.position_embeddings")),
    Mutant("the last two places share a row", "gpt", "longest", "positions.repeated",
           lambda: gpt(("self.position(position_ids)", "self.position(position_ids.clamp_max(30))"))),
    Mutant("the last two places share a row", "hf bert", "longest", "positions.repeated",
           lambda: fed(host("hf bert"), "embeddings.position_embeddings", lambda x: x.clamp_max(30))),
    Mutant("sines without their cosines", "reader", "sinusoids", "sinusoids.unpaired", lambda: reader(UNPAIRED)),
    Mutant("sines without their cosines", "translator", "sinusoids", "sinusoids.unpaired",
           lambda: translator(("x = self.target(tgt)", TABLE))),
    Mutant("sines without their cosines", "sorter", "sinusoids", "sinusoids.unpaired",
           lambda: written("reader", "Sorter", UNPAIRED)()),
]  # fmt: skip
