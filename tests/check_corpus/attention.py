"""Planted faults of attention: the scale, masks, the axis of the softmax, shared heads, dropout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from check_corpus.altered import given
from check_corpus.hosts import HOSTS
from check_corpus.plant import Mutant, written

GPT_SCORES = "q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])"
GPT_MASK = 'scores = scores.masked_fill(hidden, float("-inf"))'
GPT_WEIGHTS = "weights = torch.nan_to_num(torch.softmax(scores, dim=-1))"
GPT_MASKED = f"{GPT_MASK}\n        {GPT_WEIGHTS}"
AGAIN = "\n        weights = weights / weights.sum(-1, keepdim=True).clamp_min(1e-9)"
GPT_AFTER = "weights = torch.softmax(scores, dim=-1).masked_fill(hidden, 0.0)"
READER_FILL = "scores.masked_fill(~mask[:, None, None, :], torch.finfo(scores.dtype).min)"
READER_MASKED = f"if mask is not None:\n            scores = {READER_FILL}\n        weights = scores.softmax(-1)"
READER_AFTER = (
    "weights = scores.softmax(-1)\n        if mask is not None:\n            weights = weights * mask[:, None, None]"
)
HELD = "torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)"
TURNER = "F.scaled_dot_product_attention(q, k, v, attn_mask=visible)"
TURNER_REPEAT = "k, v = (t.repeat_interleave(self.heads // self.kv_heads, dim=1) for t in (k, v))"
TILED = "t.repeat(1, self.heads // self.kv_heads, 1, 1)"
TURN = "if self.turn:\n            q, k = rotate(q), rotate(k)"


def gpt(*pairs: tuple[str, str]) -> Callable[[], nn.Module]:
    """That host with other words."""
    return lambda: written("gpt", "TinyGPT", *pairs)()


def reader(*pairs: tuple[str, str]) -> Callable[[], nn.Module]:
    """That host with other words."""
    return lambda: written("reader", "Reader", *pairs)()


def held(*pairs: tuple[str, str]) -> Callable[[], nn.Module]:
    """That host with other words."""
    return lambda: written("held", "HeldLM", *pairs)()


def turner(*pairs: tuple[str, str]) -> Callable[[], nn.Module]:
    """That host with other words."""
    return lambda: written("turner", "Turner", *pairs)()


def translator(*pairs: tuple[str, str]) -> Callable[[], nn.Module]:
    """That host with other words."""
    return lambda: written("translator", "TinyTranslator", *pairs)()


def having(host: str, path: str, **values: Any) -> Callable[[], nn.Module]:
    """A host one of whose parts has other attributes."""

    def make() -> nn.Module:
        model = HOSTS[host].make()
        for name, value in values.items():
            assert hasattr(model.get_submodule(path), name)
            setattr(model.get_submodule(path), name, value)
        return model

    return make


def attending(host: str, name: str, weigh: Callable[..., Tensor]) -> Callable[[], nn.Module]:
    """A model of the reference library whose weights come from `weigh(scores, hidden, dropout, training)`."""

    def attend(module, q, k, v, attention_mask, scaling=None, dropout=0.0, **more):  # type: ignore[no-untyped-def]
        del more
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
        scores = q @ k.mT * (q.shape[-1] ** -0.5 if scaling is None else scaling)
        hidden = torch.zeros_like(scores) if attention_mask is None else attention_mask.expand_as(scores)
        weights = weigh(scores, hidden, dropout, module.training)
        return (weights @ v).transpose(1, 2).contiguous(), weights

    def make() -> nn.Module:
        AttentionInterface.register(name, attend)
        AttentionMaskInterface.register(name, eager_mask)
        model = HOSTS[host].make()
        model.set_attn_implementation(name)
        return model

    return make


def after(scores: Tensor, hidden: Tensor, *more: Any) -> Tensor:
    """0 and 1 multiplied onto the weights."""
    del more
    return scores.softmax(-1) * (hidden == 0)


def over_heads(scores: Tensor, hidden: Tensor, *more: Any) -> Tensor:
    """The axis of heads."""
    del more
    return (scores + hidden).softmax(1)


def filled(by: float) -> Callable[..., Tensor]:
    """Another number for hidden keys."""
    return lambda scores, hidden, *_: scores.masked_fill(hidden < 0, by).softmax(-1)


def dropped(scores: Tensor, hidden: Tensor, dropout: float, training: bool) -> Tensor:
    """Dropout on scores."""
    del dropout
    return (F.dropout(scores, 0.2, training) + hidden).softmax(-1)


def renormalised(scores: Tensor, hidden: Tensor, dropout: float, training: bool) -> Tensor:
    """Weights divided by their sum after dropout."""
    del dropout
    weights = F.dropout((scores + hidden).softmax(-1), 0.2, training)
    return weights / weights.sum(-1, keepdim=True).clamp_min(1e-9)


def turned(host: str, argument: str, change: Callable[[Any], Any]) -> Callable[[], nn.Module]:
    """A host that is given another mask than its caller gives."""
    return lambda: given(HOSTS[host].make(), "", argument, lambda _, x: x if x is None else change(x))


CROSS = "model.decoder.layers.0.encoder_attn"
GPT, READER, HELD_AT, TURNER_AT = "blocks.0.attention", "layers.0.attention", "layers.0.attention", "blocks.0.attention"
BERT, TORCH = "encoder.layer.0.attention.self", "layers.0.self_attn"

ATTENTION = [
    # The scale
    Mutant("no scale", "gpt", "scale", "scale.missing", gpt((GPT_SCORES, "q @ k.transpose(-1, -2)")), GPT),
    Mutant("multiplied with the root", "gpt", "scale", "scale.multiplied",
           gpt((GPT_SCORES, "q @ k.transpose(-1, -2) * math.sqrt(q.shape[-1])")), GPT),
    Mutant("the model's width", "reader", "scale", "scale.width",
           reader(("self.size**-0.5", "(self.heads * self.size) ** -0.5")), READER),
    Mutant("scaled before the rotation too", "translator", "scale", "scale.twice",
           translator((TURN, f"q = q * q.shape[-1] ** -0.5\n        {TURN}")), "encoder.0.attention"),
    Mutant("scale given as 1", "turner", "scale", "scale.missing",
           turner((TURNER, TURNER[:-1] + ", scale=1.0)")), TURNER_AT),
    Mutant("the model's width", "held", "scale", "scale.width",
           held(("/ self.size**0.5", "/ (self.heads * self.size) ** 0.5")), HELD_AT),
    Mutant("keys scaled too", "held", "scale", "scale.twice",
           held(("/ self.size**0.5", "/ self.size**0.5 / self.size**0.5")), HELD_AT),
    Mutant("the model's width in one layer", "hf llama", "scale", "scale.width",
           having("hf llama", "model.layers.1.self_attn", scaling=16**-0.5), "model.layers.1.self_attn"),
    Mutant("multiplied", "hf bert", "scale", "scale.multiplied", having("hf bert", BERT, scaling=8**0.5), BERT),
    Mutant("no scale across", "hf marian", "scale", "scale.missing",
           having("hf marian", CROSS, scaling=1.0), CROSS),
    Mutant("twice", "our gpt2", "scale", "scale.twice", having("our gpt2", "layers.1.attention", scale=1 / 8),
           "layers.1.attention"),
    Mutant("no scale", "our vaswani", "scale", "scale.missing",
           having("our vaswani", "encoder.layers.0.attention", scale=1.0), "encoder.layers.0.attention"),
    Mutant("a number from elsewhere", "turner", "scale", "scale.other",
           turner((TURNER, TURNER[:-1] + ", scale=0.125)")), TURNER_AT),
    # The order of mask and softmax
    Mutant("mask after softmax", "gpt", "mask-order", "mask.after", gpt((GPT_MASKED, GPT_AFTER)), GPT),
    Mutant("mask after softmax, renormalised", "gpt", "mask-order", "mask.after_renormalised",
           gpt((GPT_MASKED, f"{GPT_AFTER}{AGAIN}")), GPT),
    Mutant("padding after softmax", "reader", "mask-order", "mask.after",
           reader((READER_MASKED, READER_AFTER)), READER),
    Mutant("padding after softmax, renormalised", "reader", "mask-order", "mask.after_renormalised",
           reader((READER_MASKED, READER_AFTER + AGAIN)), READER),
    Mutant("mask after softmax", "held", "mask-order", "mask.after",
           held((HELD, "torch.softmax(scores, dim=-1) * ~hidden")), HELD_AT),
    Mutant("mask after softmax", "hf llama", "mask-order", "mask.after", attending("hf llama", "after", after),
           "model.layers.0.self_attn"),
    Mutant("mask after softmax", "hf bert", "mask-order", "mask.after", attending("hf bert", "after", after), BERT),
    # The axis
    Mutant("over queries", "gpt", "softmax-axis", "softmax.axis",
           gpt((GPT_WEIGHTS, GPT_WEIGHTS.replace("dim=-1", "dim=-2"))), GPT),
    Mutant("over heads", "reader", "softmax-axis", "softmax.axis",
           reader(("scores.softmax(-1)", "scores.softmax(1)")), READER),
    Mutant("over queries", "held", "softmax-axis", "softmax.axis",
           held((HELD, HELD.replace("dim=-1", "dim=2"))), HELD_AT),
    Mutant("over heads", "hf bert", "softmax-axis", "softmax.axis",
           attending("hf bert", "over heads", over_heads), BERT),
    # Which way round
    Mutant("only the future", "gpt", "mask-polarity", "mask.inverted",
           gpt((".triu(k.shape[2] - length + 1)", ".tril(k.shape[2] - length - 1)")), GPT),
    Mutant("triu handed to the fused kernel", "turner", "mask-polarity", "mask.inverted",
           turner(("device=input_ids.device).tril()", "device=input_ids.device).triu(1)")), TURNER_AT),
    Mutant("triu handed to the fused kernel", "translator", "mask-polarity", "mask.inverted",
           translator(("device=tgt.device).tril()", "device=tgt.device).triu()")), "decoder.0.attention"),
    Mutant("padding the wrong way", "gpt", "mask-polarity", "mask.promise",
           gpt(("else attention_mask == 0", "else attention_mask != 0")), GPT),
    Mutant("padding the wrong way", "hf bert", "mask-polarity", "mask.promise",
           turned("hf bert", "attention_mask", lambda x: 1 - x), BERT),
    Mutant("padding the wrong way", "torch encoder", "mask-polarity", "mask.promise",
           turned("torch encoder", "src_key_padding_mask", lambda x: ~x), TORCH),
    # Numbers instead of -inf
    Mutant("0 and 1 added", "gpt", "mask-numbers", "mask.numbers",
           gpt((GPT_MASK, "scores = scores + (~hidden).to(scores)")), GPT),
    Mutant("1 taken away", "held", "mask-numbers", "mask.numbers",
           held((HELD, "torch.softmax(scores - hidden.to(scores), dim=-1)")), HELD_AT),
    Mutant("floats to the fused kernel", "turner", "mask-numbers", "mask.numbers",
           turner((TURNER, TURNER.replace("visible", "visible.to(q)"))), TURNER_AT),
    Mutant("floats to torch's layer", "torch encoder", "mask-numbers", "mask.numbers",
           turned("torch encoder", "src_key_padding_mask", lambda x: x.double()), TORCH),
    Mutant("filled with -1e4", "gpt", "mask-fill", "mask.outscored_extreme", gpt(('float("-inf")', "-1e4")), GPT),
    Mutant("filled with -50", "gpt", "mask-fill", "mask.outscored", gpt(('float("-inf")', "-50.0")), GPT),
    Mutant("padding filled with -1e4", "reader", "mask-fill", "mask.outscored_extreme",
           reader(("torch.finfo(scores.dtype).min", "-1e4")), READER),
    Mutant("padding filled with -20", "reader", "mask-fill", "mask.outscored",
           reader(("torch.finfo(scores.dtype).min", "-20.0")), READER),
    Mutant("-1e4 added in the fused kernel", "turner", "mask-fill", "mask.outscored_extreme",
           turner((TURNER, TURNER.replace("visible", "(~visible).to(q) * -1e4"))), TURNER_AT),
    Mutant("filled with -1e4", "hf llama", "mask-fill", "mask.outscored_extreme",
           attending("hf llama", "fill", filled(-1e4)), "model.layers.0.self_attn"),
    # Heads and dropout
    Mutant("tiled", "turner", "grouped-heads", "heads.tiled",
           turner((TURNER_REPEAT, f"k, v = ({TILED} for t in (k, v))")), TURNER_AT),
    Mutant("tiled", "packed", "grouped-heads", "heads.tiled", lambda: written("packed", "PackedLM", (
        "t.repeat_interleave(self.heads // self.groups, dim=1)", "t.repeat(1, self.heads // self.groups, 1, 1)"))()),
    Mutant("keys tiled, values not", "turner", "grouped-heads", "heads.apart",
           turner((TURNER_REPEAT, f"{TURNER_REPEAT}\n        k = k[:, ::2].repeat(1, 2, 1, 1)")), TURNER_AT),
    Mutant("on scores", "gpt", "attention-dropout", "dropout.scores",
           gpt((GPT_MASK, f"scores = F.dropout(scores, self.dropout, self.training)\n        {GPT_MASK}")), GPT),
    Mutant("on scores", "reader", "attention-dropout", "dropout.scores",
           reader(("= scores.softmax(-1)", "= F.dropout(scores, 0.1, self.training).softmax(-1)")), READER),
    Mutant("on scores", "hf bert", "attention-dropout", "dropout.scores",
           attending("hf bert", "dropped", dropped), BERT),
    Mutant("before renormalising", "gpt", "attention-dropout", "dropout.renormalised",
           gpt(("F.dropout(weights, self.dropout, self.training)",
                "F.dropout(weights, 0.3, self.training)" + AGAIN)), GPT),
    Mutant("before renormalising", "hf llama", "attention-dropout", "dropout.renormalised",
           attending("hf llama", "renormalised", renormalised), "model.layers.0.self_attn"),
]  # fmt: skip
