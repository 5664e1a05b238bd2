"""Attention, layers and stacks of torch.nn as our specs, and their weights under our names: what tests compare us with.

batch: sentences; length, memory: tokens; dim: features. Masks of torch.nn are True where hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from oneblock.bricks import Context, Memory
from oneblock.mask import Places, from_hidden, places, to_hidden
from oneblock.spec import Attention, Block, Causal, Embedding, FeedForward, Full, Head, LayerNorm, Mask, Model, Seq2Seq

Rows = dict[str, tuple[str, int | None]]
"""Our name -> (their name, which third of a fused tensor or None for the whole)."""

KINDS = ("weight", "bias")
ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU}
NORMS = {"norm1": "attention", "norm2": "feedforward"}
NORMS_WITH_MEMORY = {"norm1": "attention", "norm2": "cross", "norm3": "feedforward"}


class MinimalBlock(nn.Module):
    """The shortest block that one writes from torch's parts: post-norm, 8 heads; no mask, padding mask or dropout."""

    def __init__(self, dim: int, hidden: int, activation: str) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(dim, 8, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.ffn = nn.Sequential(nn.Linear(dim, hidden), ACTIVATIONS[activation](), nn.Linear(hidden, dim))

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(x + self.attention(x, x, x)[0])
        return self.norm2(x + self.ffn(x))


class Translator(nn.Module):
    """`nn.Transformer` with embeddings and a head."""

    def __init__(self, vocab: int, **options: Any) -> None:
        super().__init__()
        self.source, self.target = (nn.Embedding(vocab, options["d_model"]) for _ in "st")
        self.transformer = nn.Transformer(**options, dropout=0.0, batch_first=True)
        self.head = nn.Linear(options["d_model"], vocab)

    def forward(
        self, source: Tensor, target: Tensor, source_hidden: Tensor | None, target_hidden: Tensor | None
    ) -> Tensor:
        future = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        x = self.transformer(
            self.source(source), self.target(target), tgt_mask=future, src_key_padding_mask=source_hidden,
            tgt_key_padding_mask=target_hidden, memory_key_padding_mask=source_hidden,
        )  # fmt: skip
        return self.head(x)

    def rows(self) -> Rows:
        """Our names of its weights."""
        stacks = self.transformer.encoder, self.transformer.decoder
        return (
            stack_rows(stacks[0], "encoder.", "transformer.encoder.")
            | stack_rows(stacks[1], "decoder.", "transformer.decoder.")
            | {"encoder.embedding.token.weight": ("source.weight", None)}
            | {"decoder.embedding.token.weight": ("target.weight", None)}
            | linear_rows("decoder.head.out", "head")
        )


def attention_rows(ours: str = "", theirs: str = "") -> Rows:
    """`nn.MultiheadAttention` holds q, k and v in one tensor when all have the same width."""
    fused = {f"{ours}{name}.{kind}": (f"{theirs}in_proj_{kind}", i) for i, name in enumerate("qkv") for kind in KINDS}
    return fused | linear_rows(f"{ours}out", f"{theirs}out_proj")


def linear_rows(ours: str, theirs: str) -> Rows:
    """A weight and a bias."""
    return {f"{ours}.{kind}": (f"{theirs}.{kind}", None) for kind in KINDS}


def layer_rows(layer: nn.Module, ours: str = "", theirs: str = "") -> Rows:
    """An encoder or a decoder layer of torch.nn."""
    slot = "pre" if layer.norm_first else "post"
    names = NORMS_WITH_MEMORY if isinstance(layer, nn.TransformerDecoderLayer) else NORMS
    rows = attention_rows(f"{ours}attention.", f"{theirs}self_attn.")
    if "norm3" in names:
        rows |= attention_rows(f"{ours}cross.", f"{theirs}multihead_attn.")
    for norm, name in names.items():
        rows |= linear_rows(f"{ours}norms.{name}_{slot}", f"{theirs}{norm}")
    return (
        rows
        | linear_rows(f"{ours}feedforward.up", f"{theirs}linear1")
        | linear_rows(f"{ours}feedforward.down", f"{theirs}linear2")
    )


def minimal_rows() -> Rows:
    """The shortest block."""
    norms = linear_rows("norms.attention_post", "norm1") | linear_rows("norms.feedforward_post", "norm2")
    ffn = linear_rows("feedforward.up", "ffn.0") | linear_rows("feedforward.down", "ffn.2")
    return attention_rows("attention.", "attention.") | norms | ffn


def stack_rows(stack: nn.TransformerEncoder | nn.TransformerDecoder, ours: str, theirs: str) -> Rows:
    """All layers of a stack, and its final norm."""
    rows = linear_rows(f"{ours}norm", f"{theirs}norm") if stack.norm is not None else {}
    for i, layer in enumerate(stack.layers):
        rows |= layer_rows(layer, f"{ours}layers.{i}.", f"{theirs}layers.{i}.")
    return rows


def taken(tensors: dict[str, Tensor], rows: Rows) -> dict[str, Tensor]:
    """Their tensors under our names; every one of theirs must be read, biases that are absent are left out."""
    assert set(tensors) <= {name for name, _ in rows.values()}, "a tensor of theirs that no row reads"
    found = {ours: (tensors[name], third) for ours, (name, third) in rows.items() if name in tensors}
    return {ours: x if third is None else x.chunk(3)[third] for ours, (x, third) in found.items()}


def fill(ours: nn.Module, theirs: nn.Module, rows: Rows) -> None:
    """Load their weights into our module; every parameter of ours must get one."""
    ours.load_state_dict(taken(dict(theirs.named_parameters()), rows), strict=True)


def gradients(module: nn.Module, rows: Rows | None = None) -> dict[str, Tensor]:
    """The gradient of every parameter, under our names when `rows` are given."""
    found = {name: p.grad for name, p in module.named_parameters()}
    return found if rows is None else taken(found, rows)


@torch.no_grad()
def shake(module: nn.Module) -> None:
    """Move every parameter, so that no norm is the identity, no bias 0, and no two layers are equal."""
    for parameter in module.parameters():
        parameter.add_(0.2 * torch.randn_like(parameter))


def attention_spec(theirs: nn.MultiheadAttention, mask: Mask) -> Attention:
    """What torch's attention is, as a spec."""
    return Attention(theirs.num_heads, mask=mask, bias=theirs.in_proj_bias is not None)


def block_spec(layer: nn.Module, mask: Mask) -> Block:
    """What a layer of torch.nn is, as a spec."""
    bias = layer.linear1.bias is not None
    activation = "relu" if layer.activation is nn.functional.relu else "gelu"
    cross = attention_spec(layer.multihead_attn, Full()) if isinstance(layer, nn.TransformerDecoderLayer) else None
    return Block(
        attention_spec(layer.self_attn, mask),
        FeedForward(layer.linear1.out_features, activation, bias=bias),
        cross=cross,
        norm=LayerNorm(layer.norm1.eps, bias=bias),
        wiring="pre" if layer.norm_first else "post",
    )


def whole_spec(theirs: nn.Transformer, vocab: int) -> Seq2Seq:
    """What an `nn.Transformer` with embeddings and a linear head around it is, as a spec."""

    def half(stack: nn.Module, mask: Mask, head: Head | None) -> Model:
        layers = tuple(block_spec(layer, mask) for layer in stack.layers)
        norm = None if stack.norm is None else LayerNorm(stack.norm.eps, bias=stack.norm.bias is not None)
        return Model(theirs.d_model, Embedding(vocab), layers, norm=norm, head=head)

    return Seq2Seq(half(theirs.encoder, Full(), None), half(theirs.decoder, Causal(), Head(bias=True)), share=False)


@dataclass(frozen=True)
class Sentences:
    """A batch of random vectors x (batch, length, dim), and which are padding: True = hidden, or None."""

    x: Tensor
    hidden: Tensor | None

    @property
    def places(self) -> Places:
        """The same padding in our words."""
        return places(self.x.shape[1], None if self.hidden is None else from_hidden(self.hidden))

    def context(self, memory: Sentences | None = None) -> Context:
        """What our bricks may know about these sentences."""
        return Context(self.places, None if memory is None else memory.memory)

    @property
    def memory(self) -> Memory:
        """These sentences as what an encoder gave."""
        return Memory(self.x, self.places)

    def leaf(self) -> Sentences:
        """A copy that collects a gradient of its own."""
        return Sentences(self.x.detach().clone().requires_grad_(), self.hidden)


def attn_mask(visible: Callable[[int, int], bool], length: int) -> Tensor:
    """A rule as torch.nn wants its masks: (length, length), True = hidden."""
    return to_hidden(torch.tensor([[visible(q, k) for k in range(length)] for q in range(length)]))
