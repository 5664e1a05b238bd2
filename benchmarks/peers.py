"""The same encoder-decoder three times: ours, transformers' Marian, torch's `nn.Transformer`; equal size and weights.

All three are the first Transformer with sinusoids in halves and SiLU, as the Marian translators of the Hugging Face hub
have it: norms after the residual, one matrix for both embeddings and the head, times sqrt(dim), dropout on embeddings
and sublayer outputs only.

Shapes: batch = sentences, source, target = tokens, real = target tokens that are not padding, dim, vocab.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from transformers import MarianConfig, MarianMTModel

from oneblock import weights
from oneblock.bricks import build_model
from oneblock.spec import Head, Seq2Seq, Sinusoidal, Tokens, put
from oneblock.train.config import OptimizerPart
from oneblock.train.data import Batch
from oneblock.train.optimizer import make_optimizer
from oneblock.train.task import update
from oneblock.zoo import named

PAD, EOS = 0, 2
TOKENS = Tokens(pad=PAD, bos=1, eos=EOS, start=PAD)
SMOOTHING, CLIP, RATE = 0.1, 1.0, 1e-4
LONGEST = 256


@dataclass(frozen=True)
class Size:
    """Width of the stream, layers on each side, attention heads, width inside the feed-forward."""

    dim: int
    depth: int
    heads: int
    hidden: int


SIZES = {"small": Size(64, 2, 4, 128), "tiny": Size(256, 3, 4, 1024), "base": Size(512, 6, 8, 2048)}

OURS = {
    "model": None,
    "self_attn": "attention",
    "encoder_attn": "cross",
    "q_proj": "q",
    "k_proj": "k",
    "v_proj": "v",
    "out_proj": "out",
    "self_attn_layer_norm": "norms.attention_post",
    "encoder_attn_layer_norm": "norms.cross_post",
    "final_layer_norm": "norms.feedforward_post",
    "fc1": "feedforward.up",
    "fc2": "feedforward.down",
}
"""Marian's words in names of tensors -> ours."""

TORCH = {
    "attention.out": "self_attn.out_proj",
    "cross.out": "multihead_attn.out_proj",
    "feedforward.up": "linear1",
    "feedforward.down": "linear2",
    "norms.attention_post": "norm1",
    "norms.cross_post": "norm2",
}
"""Our words -> those of `nn.Transformer`, whose last norm is norm2 in the encoder and norm3 in the decoder."""


def spec(size: Size, vocab: int, dropout: float = 0.1) -> Seq2Seq:
    """What all three are."""
    found = named(
        "vaswani",
        **vars(size),
        vocab=vocab,
        dropout=dropout,
        position=Sinusoidal("half"),
        tokens=TOKENS,
        length=LONGEST,
    )
    return put(found, "*coder.layers.*.feedforward.activation", "silu")


def ours(size: Size, vocab: int) -> nn.Module:
    """Our module."""
    return build_model(spec(size, vocab))


def marian(size: Size, vocab: int) -> MarianMTModel:
    """transformers' module with random weights that disagree about sentences."""
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (
            ("layers", size.depth),
            ("attention_heads", size.heads),
            ("ffn_dim", size.hidden),
        )
    }
    config = MarianConfig(
        vocab_size=vocab,
        d_model=size.dim,
        **sides,
        activation_function="silu",
        scale_embedding=True,
        max_position_embeddings=LONGEST,
        pad_token_id=PAD,
        eos_token_id=EOS,
        decoder_start_token_id=PAD,
        forced_eos_token_id=None,
    )
    return lively(MarianMTModel(config))


@torch.no_grad()
def lively(model: MarianMTModel) -> MarianMTModel:
    """Random weights with which a search has something to do, and no bias is 0 and no norm the identity.

    As it comes, a random model finds all tokens equally likely; with larger weights it repeats its last token for ever,
    since embedding and head are one matrix: random signs on the last norm's weight break that. Cross-attention has the
    larger matrices, or all sentences would be translated alike.
    """
    for name, parameter in model.named_parameters():
        if "shared" in name:
            parameter.normal_(std=parameter.shape[1] ** -0.5)
        elif parameter.requires_grad and parameter.ndim == 2:
            parameter.normal_(std=(1.5 if "encoder_attn" in name else 0.6) * parameter.shape[1] ** -0.5)
        elif parameter.requires_grad:
            parameter.add_(0.1 * torch.randn_like(parameter))
    last = model.model.decoder.layers[-1].final_layer_norm.weight
    last *= torch.randn_like(last).sign()
    return model


class Torch(nn.Module):
    """`nn.Transformer` between one shared table, as one writes it by hand."""

    def __init__(self, size: Size, vocab: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab, size.dim)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", waves(LONGEST, size.dim), persistent=False)
        with warnings.catch_warnings(action="ignore"):  # that it will not use nested tensors, which nobody asked for
            self.transformer = nn.Transformer(
                size.dim, size.heads, size.depth, size.depth, size.hidden, dropout, F.silu, batch_first=True
            )
        # What the other two do not have: a last norm on either side, dropout on attention weights and hidden features.
        for stack in (self.transformer.encoder, self.transformer.decoder):
            stack.norm, stack.enable_nested_tensor = None, False
            for layer in stack.layers:
                layer.dropout, layer.self_attn.dropout = nn.Identity(), 0.0
        for layer in self.transformer.decoder.layers:
            layer.multihead_attn.dropout = 0.0

    def forward(self, source: Tensor, hidden: Tensor | None, target: Tensor) -> Tensor:
        """Logits (batch, target, vocab); `hidden` (batch, source) is True at padding."""
        later = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool, device=target.device).triu(1)
        x = self.transformer(
            self.embedded(source), self.embedded(target), tgt_mask=later, tgt_is_causal=True,
            src_key_padding_mask=hidden, memory_key_padding_mask=hidden,
        )  # fmt: skip
        return F.linear(x, self.embedding.weight)

    def embedded(self, ids: Tensor) -> Tensor:
        """(batch, length) -> (batch, length, dim)."""
        return self.dropout(self.embedding(ids) * self.embedding.embedding_dim**0.5 + self.positions[: ids.shape[1]])


def waves(length: int, dim: int) -> Tensor:
    """Sinusoids (length, dim): all sines, then all cosines."""
    angles = torch.arange(length)[:, None] * torch.exp(torch.arange(0, dim, 2) * (-math.log(10_000.0) / dim))
    return torch.cat([angles.sin(), angles.cos()], 1)


def renamed(theirs: MarianMTModel) -> dict[str, Tensor]:
    """Marian's trained tensors by our names."""
    found = {"encoder.embedding.token.weight": theirs.model.shared.weight.detach()}
    for name, tensor in theirs.named_parameters():
        if "shared" not in name and "embed_" not in name:
            words = [OURS.get(word, word) for word in name.split(".")]
            found[".".join(word for word in words if word)] = tensor.detach()
    return found


def as_ours(theirs: MarianMTModel, size: Size, *, no_end: bool = False) -> nn.Module:
    """Our module with Marian's weights. With `no_end`, in both, no translation ends before its longest length."""
    vocab = theirs.config.vocab_size
    wanted, tensors = spec(size, vocab), renamed(theirs)
    if no_end:
        theirs.final_logits_bias[:, [PAD, EOS]] = -1e4
        wanted = replace(wanted, decoder=replace(wanted.decoder, head=Head(tied=True, bias=True)))
        tensors["decoder.head.out.bias"] = theirs.final_logits_bias[0]
    module = build_model(wanted)
    weights.fill(module, {name: tensor.clone() for name, tensor in tensors.items()}, "the Marian model")
    return module


def as_torch(theirs: MarianMTModel, size: Size) -> Torch:
    """`nn.Transformer` with Marian's weights."""
    module, tensors = Torch(size, theirs.config.vocab_size), renamed(theirs)
    found = {"embedding.weight": tensors.pop("encoder.embedding.token.weight")}
    for name, tensor in tensors.items():
        side, _, number, rest = name.split(".", 3)
        what, _, kind = rest.rpartition(".")
        layer = f"transformer.{side}.layers.{number}"
        if what[-2:] in (".q", ".k", ".v"):
            attention = {"attention": "self_attn", "cross": "multihead_attn"}[what[:-2]]
            thirds = [tensors[f"{name.removesuffix(f'{what}.{kind}')}{what[:-1]}{letter}.{kind}"] for letter in "qkv"]
            found[f"{layer}.{attention}.in_proj_{kind}"] = torch.cat(thirds)
        else:
            last = "norm2" if side == "encoder" else "norm3"
            found[f"{layer}.{TORCH.get(what, last)}.{kind}"] = tensor
    module.load_state_dict(found)
    return module


@dataclass(frozen=True)
class Padded:
    """A batch as the peers take it: labels keep their padding, -100."""

    source: Tensor  # (batch, source)
    mask: Tensor | None  # (batch, source) 1 = real
    inputs: Tensor  # (batch, target)
    labels: Tensor  # (batch, target)
    tokens: int  # how many labels are real

    @staticmethod
    def of(batch: Batch) -> Padded:
        """The padded form of our batch."""
        labels = torch.full((batch.inputs.numel(),), -100)
        places = torch.arange(len(labels)) if batch.places is None else batch.places
        labels[places] = batch.labels
        return Padded(batch.source, batch.mask, batch.inputs, labels.view_as(batch.inputs), batch.tokens)

    def loss(self, logits: Tensor) -> Tensor:
        """Mean over real tokens."""
        return F.cross_entropy(logits.flatten(0, 1), self.labels.flatten(), label_smoothing=SMOOTHING)


def marian_logits(model: MarianMTModel, batch: Padded) -> Tensor:
    """(batch, target, vocab)."""
    return model(input_ids=batch.source, attention_mask=batch.mask, decoder_input_ids=batch.inputs).logits


def torch_logits(model: Torch, batch: Padded) -> Tensor:
    """(batch, target, vocab)."""
    return model(batch.source, None if batch.mask is None else batch.mask == 0, batch.inputs)


Step = Callable[[Any], int]
"""One step of training, on a batch in the form that its contender takes; how many target tokens it learned from."""


def plain_step(model: nn.Module, logits: Callable[[nn.Module, Padded], Tensor]) -> Step:
    """The usual loop around a module: loss, backward, clip, fused AdamW."""
    part = OptimizerPart()
    settings = {"betas": part.betas, "eps": part.eps, "weight_decay": part.weight_decay, "fused": True}
    optimizer = torch.optim.AdamW(model.parameters(), RATE, **settings)

    def step(batch: Padded) -> int:
        batch.loss(logits(model, batch)).backward()
        clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad()
        return batch.tokens

    return step


def our_step(model: nn.Module, dtype: torch.dtype = torch.float32) -> Step:
    """The step of `oneblock train`; bfloat16 casts inside the forward pass, weights stay float32."""
    optimizer = make_optimizer(model, OptimizerPart())
    cast = torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16)

    def step(batch: Batch) -> int:
        update(model, optimizer, [batch], lr=RATE, smoothing=SMOOTHING, clip=CLIP, autocast=cast)
        return batch.tokens

    return step
