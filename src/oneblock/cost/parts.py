"""How many numbers a model learns, brick by brick, in closed form from its spec; nothing is built.

Shapes are those of the stored tensors: a projection from a to b features is (b, a).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import singledispatch
from math import prod
from typing import Any

from oneblock.spec import (
    SLOTS,
    Alibi,
    Attention,
    Block,
    Classify,
    Embedding,
    FeedForward,
    Head,
    LayerNorm,
    Learned,
    Model,
    MoE,
    Pool,
    Relative,
    RMSNorm,
    Rope,
    Seq2Seq,
    SigmaNorm,
    Sinusoidal,
    Transform,
    Whole,
    dims,
)

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """A brick of a model: where it is, its spec, its own tensors (name -> shape).

    `shared` maps a tensor that is no other than an earlier one to the full name of that one; it counts nothing here.
    """

    path: str
    brick: Any
    tensors: dict[str, Shape]
    shared: dict[str, str]

    @property
    def count(self) -> int:
        """Parameters of this brick alone, a shared tensor counted where it first stands."""
        return sum(self.counts.values())

    @property
    def counts(self) -> dict[str, int]:
        """Parameters of each tensor by its full name; 0 for a shared one."""
        own = {name: 0 if name in self.shared else prod(shape) for name, shape in self.tensors.items()}
        return {f"{self.path}.{name}": count for name, count in own.items()}


@singledispatch
def parts(brick: Any, dim: int = 0, path: str = "") -> Iterator[Part]:  # noqa: ARG001 - what others register uses it
    """The bricks of a spec that hold tensors, in the order in which a forward pass meets them.

    `dim` is the width of the stream, for bricks that do not know it. A new type of brick registers its own rule.

    >>> [(part.path, part.count) for part in parts(FeedForward(2048, bias=True), 512, "ffn")]
    [('ffn', 2099712)]
    """
    raise ValueError(f"{path or 'brick'}: expected a spec, got {type(brick).__name__}")


def linear(name: str, inputs: int, outputs: int, bias: bool) -> dict[str, Shape]:
    """The tensors of one projection.

    >>> linear("q", 512, 64, bias=True)
    {'q.weight': (64, 512), 'q.bias': (64,)}
    """
    return {f"{name}.weight": (outputs, inputs)} | ({f"{name}.bias": (outputs,)} if bias else {})


def _own(path: str, brick: Any, tensors: dict[str, Shape], shared: dict[str, str] | None = None) -> Iterator[Part]:
    yield Part(path, brick, tensors, shared or {})


@parts.register(LayerNorm)
@parts.register(SigmaNorm)
def _(brick: LayerNorm | SigmaNorm, dim: int = 0, path: str = "") -> Iterator[Part]:
    shape: Shape = (dim,)
    yield from _own(path, brick, {"weight": shape} | ({"bias": shape} if brick.bias else {}))


@parts.register
def _(brick: RMSNorm, dim: int = 0, path: str = "") -> Iterator[Part]:
    yield from _own(path, brick, {"weight": (dim,)})


@parts.register
def _(brick: Learned, dim: int = 0, path: str = "") -> Iterator[Part]:
    yield from _own(path, brick, {"weight": (brick.length + brick.offset, dim)})


@parts.register
def _(brick: Relative, dim: int = 0, path: str = "") -> Iterator[Part]:
    yield from _own(path, brick, {"weight": (brick.buckets, dim)})


@parts.register(Sinusoidal)
@parts.register(Rope)
@parts.register(Alibi)
@parts.register(type(None))
def _(_brick: Any, _dim: int = 0, _path: str = "") -> Iterator[Part]:
    yield from ()


@parts.register
def _(brick: Whole, dim: int = 0, path: str = "") -> Iterator[Part]:
    yield from parts(brick.norm, dim, f"{path}.norm")


@parts.register
def _(brick: Attention, dim: int = 0, path: str = "") -> Iterator[Part]:
    kv_heads, head_dim, value_dim = dims(brick, dim)
    out_bias = brick.bias if brick.out_bias is None else brick.out_bias
    yield from _own(
        path,
        brick,
        linear("q", dim, brick.heads * head_dim, brick.bias)
        | linear("k", dim, kv_heads * head_dim, brick.bias)
        | linear("v", dim, kv_heads * value_dim, brick.bias)
        | linear("out", brick.heads * value_dim, dim, out_bias),
    )
    for name, heads in (("q_norm", brick.heads), ("k_norm", kv_heads)):
        width = head_dim * (heads if isinstance(brick.qk_norm, Whole) else 1)
        yield from parts(brick.qk_norm, width, f"{path}.{name}")
    yield from parts(brick.position, brick.heads, f"{path}.position")


@parts.register
def _(brick: FeedForward, dim: int = 0, path: str = "") -> Iterator[Part]:
    gate = linear("gate", dim, brick.hidden, brick.bias) if brick.gated else {}
    up = linear("up", dim, brick.hidden, brick.bias)
    yield from _own(path, brick, up | gate | linear("down", brick.hidden, dim, brick.bias))


@parts.register
def _(brick: MoE, dim: int = 0, path: str = "") -> Iterator[Part]:
    hidden, gated = brick.expert.hidden, brick.expert.gated
    sizes = {"up": (hidden, dim)} | ({"gate": (hidden, dim)} if gated else {}) | {"down": (dim, hidden)}
    stacked = {f"experts.{name}.weight": (brick.experts, *size) for name, size in sizes.items()}
    yield from _own(path, brick, {"router.weight": (brick.experts, dim), **stacked})


@parts.register
def _(brick: Block, dim: int = 0, path: str = "") -> Iterator[Part]:
    at = f"{path}." if path else ""
    for name in ("attention", "cross", "feedforward"):
        sublayer = getattr(brick, name)
        if sublayer is None:
            continue
        slots = () if brick.wiring == "parallel-shared" and name == "feedforward" else SLOTS[brick.wiring]
        for slot in slots:
            if slot == "pre":
                yield from parts(brick.norm, dim, f"{at}norms.{name}_pre")
        yield from parts(sublayer, dim, f"{at}{name}")
        for slot in slots:
            if slot != "pre":
                yield from parts(brick.norm, dim, f"{at}norms.{name}_{slot}")


@parts.register
def _(brick: Embedding, dim: int = 0, path: str = "") -> Iterator[Part]:
    yield from _own(f"{path}.token", brick, {"weight": (brick.vocab, dim)})
    yield from parts(brick.position, dim, f"{path}.position")
    if brick.segments:
        yield from _own(f"{path}.segment", brick, {"weight": (brick.segments, dim)})
    yield from parts(brick.norm, dim, f"{path}.norm")


@parts.register
def _(brick: Transform, dim: int = 0, path: str = "") -> Iterator[Part]:
    yield from _own(path, brick, linear("dense", dim, dim, bias=True))
    yield from parts(brick.norm, dim, f"{path}.norm")


@parts.register
def _(brick: Model, _dim: int = 0, path: str = "") -> Iterator[Part]:
    at = f"{path}." if path else ""
    yield from parts(brick.embedding, brick.dim, f"{at}embedding")
    if heads := [block.attention.heads for block in brick.layers if block.attention]:
        yield from parts(brick.position_bias, heads[0], f"{at}position_bias")
    for index, block in enumerate(brick.layers):
        yield from parts(block, brick.dim, f"{at}layers.{index}")
    yield from parts(brick.norm, brick.dim, f"{at}norm")
    if isinstance(brick.head, Head):
        yield from head(brick.head, brick, f"{at}head", f"{at}embedding.token.weight")
    else:
        yield from parts(brick.head, brick.dim, f"{at}head")


def head(brick: Head, model: Model, path: str, embedding: str) -> Iterator[Part]:
    """The parts of a model's head, whose matrix may be the embedding's."""
    yield from parts(brick.transform, model.dim, f"{path}.transform")
    tensors = linear("out", model.dim, model.embedding.vocab, brick.bias)
    yield from _own(path, brick, tensors, {"out.weight": embedding} if brick.tied else {})


@parts.register
def _(brick: Pool, dim: int = 0, path: str = "") -> Iterator[Part]:
    yield from parts(brick.transform, dim, f"{path}.transform")


@parts.register
def _(brick: Classify, dim: int = 0, path: str = "") -> Iterator[Part]:
    yield from parts(brick.transform, dim, f"{path}.transform")
    yield from _own(path, brick, linear("out", dim, brick.labels, brick.bias))


@parts.register
def _(brick: Seq2Seq, _dim: int = 0, _path: str = "") -> Iterator[Part]:
    yield from parts(brick.encoder, brick.encoder.dim, "encoder")
    for part in parts(brick.decoder, brick.decoder.dim, "decoder"):
        if brick.share and part.path == "decoder.embedding.token":
            part = replace(part, shared={"weight": "encoder.embedding.token.weight"})
        elif brick.share and "out.weight" in part.shared:
            part = replace(part, shared={"out.weight": "encoder.embedding.token.weight"})
        yield part
