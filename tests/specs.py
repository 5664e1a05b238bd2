"""Small specs that tests share, and hypothesis strategies that draw any spec the library can say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from oneblock.bricks import build_model
from oneblock.spec import (
    Activation,
    Alibi,
    Attention,
    Block,
    Causal,
    Classify,
    DynamicBase,
    Embedding,
    FeedForward,
    Full,
    Head,
    Interpolate,
    LayerNorm,
    Learned,
    LongRope,
    Mask,
    Model,
    MoE,
    Norm,
    Pool,
    Pooling,
    Relative,
    RMSNorm,
    Rope,
    Seq2Seq,
    SigmaNorm,
    Sinusoidal,
    Smooth,
    Softmax,
    Spec,
    Tokens,
    TopSoftmax,
    Transform,
    Whole,
    Window,
    Wiring,
    Yarn,
)
from oneblock.zoo import named

DIM, VOCAB = 16, 13
"""Width of the stream and size of the vocabulary of every spec here."""

SERIAL: tuple[Wiring, ...] = ("pre", "post", "branch", "sandwich", "bare")
CAUSAL: tuple[Mask, ...] = (Causal(), Causal() & Window(back=3), Causal() & Window(back=1), Window(back=2, ahead=0))
TWO_WAY: tuple[Mask, ...] = (Full(), Window(back=2), Window(back=3, ahead=1), Window(back=1, ahead=2))


def language_model(depth: int = 2, attention: dict[str, Any] | None = None, block: Any = None, **model: Any) -> Model:
    """A decoder-only spec: rotary, pre-norm, `depth` blocks; parts of it replaced by the arguments."""
    attend = Attention(**({"heads": 4, "position": Rope(), "bias": True} | (attention or {})))
    one = Block(attend, FeedForward(24, bias=True), **(block or {}))
    size = {"dim": DIM, "embedding": Embedding(VOCAB), "norm": LayerNorm(), "layers": (one,) * depth}
    return Model(**(size | model))


def translator(**arguments: Any) -> Seq2Seq:
    """A small encoder-decoder of 2017 without dropout."""
    small = {"dim": DIM, "depth": 2, "heads": 4, "hidden": 24, "vocab": VOCAB, "dropout": 0.0}
    spec = named("vaswani", **(small | arguments))
    assert isinstance(spec, Seq2Seq)
    return spec


def exact(spec: object, dim: int | None = None, seed: int = 0) -> Any:
    """The module of a spec in float64 and eval mode, with every parameter random, biases and norms too."""
    torch.manual_seed(seed)
    model = build_model(spec, dim).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter += 0.3 * torch.randn_like(parameter)
    return model


def ids(*shape: int, low: int = 3) -> Tensor:
    """Random token ids that are none of the special ones."""
    return torch.randint(low, VOCAB, shape)


def padded(rows: list[Tensor], side: str = "right", extra: int = 0, pad: int = 0) -> tuple[Tensor, Tensor]:
    """(ids, mask) of rows of unequal length, filled up with `pad` to the longest one + `extra`."""
    length = max(len(row) for row in rows) + extra
    filled, mask = torch.full((len(rows), length), pad), torch.zeros(len(rows), length, dtype=torch.long)
    for i, row in enumerate(rows):
        at = slice(0, len(row)) if side == "right" else slice(length - len(row), length)
        filled[i, at], mask[i, at] = row, 1
    return filled, mask


def same(a: Tensor, b: Tensor, tolerance: float = 1e-10) -> None:
    """Fail where two tensors differ in shape or by more than `tolerance`."""
    torch.testing.assert_close(a, b, rtol=0, atol=tolerance)


def gradients(model: nn.Module) -> dict[str, Tensor]:
    """A copy of every gradient there is, by name; the model's own are cleared."""
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return found


maybe = st.booleans()
activations = st.sampled_from(get_args(Activation))
shares = st.sampled_from([0.0, 0.25])
ANY: tuple[Mask, ...] = (*CAUSAL, *TWO_WAY)
added = [None, Learned(40), Learned(40, offset=2), Sinusoidal(), Sinusoidal("half", closed=True)]
norms: st.SearchStrategy[Norm] = st.sampled_from(
    [
        LayerNorm(),
        LayerNorm(1e-12, bias=False),
        SigmaNorm(),
        SigmaNorm(bias=False, unbiased=True),
        RMSNorm(1e-6),
        RMSNorm(centred=True),
    ]
)
layouts = st.sampled_from(["half", "interleaved"])


@st.composite
def rotations(draw: st.DrawFn, head_dim: int = 16) -> Rope:
    """Any rotary position, perhaps stretched; beyond length 64 some see how long a text is, so no cache can follow."""
    fraction = draw(st.sampled_from([1.0, 0.5]))
    pairs = round(head_dim * fraction / 2)
    factors = st.tuples(*[st.sampled_from([1.0, 1.5, 4.0])] * pairs)
    scalings = [
        st.none(),
        st.just(Interpolate(4.0)),
        st.builds(Smooth, st.just(8.0), st.sampled_from([16, 64])),
        st.builds(
            Yarn, st.sampled_from([4.0, 0.5]), st.just(16), attention=st.sampled_from([None, 0.9]), truncate=maybe
        ),
        st.builds(LongRope, factors, factors, st.just(64), st.sampled_from([1.0, 1.2])),
        st.just(DynamicBase(2.0, 64) if pairs > 1 else None),
    ]
    return Rope(draw(st.sampled_from([10_000.0, 50.0])), fraction, draw(layouts), draw(st.one_of(scalings)))


relatives = st.builds(Relative, st.sampled_from([4, 8]), st.sampled_from([8, 20]), maybe)


@st.composite
def attentions(draw: st.DrawFn, heads: int = 4, masks: tuple[Mask, ...] = ANY, cross: bool = False) -> Attention:
    """Any attention; one that reads a memory sees all of it and has no positions."""
    head_dim = draw(st.sampled_from([None, 6]))
    turned = rotations(head_dim or DIM // heads)
    return Attention(
        heads=heads,
        kv_heads=draw(st.sampled_from([None, *(n for n in (1, 2, 4) if heads % n == 0)])),
        head_dim=head_dim,
        value_dim=draw(st.sampled_from([None, 5])),
        mask=Full() if cross else draw(st.sampled_from(masks)),
        position=None if cross else draw(st.none() | turned | relatives | st.just(Alibi())),
        qk_norm=draw(st.none() | norms | st.builds(Whole, norms)),
        bias=draw(maybe),
        out_bias=draw(st.none() | maybe),
        scale=draw(st.sampled_from([None, None, 0.2])),
        softcap=draw(st.sampled_from([None, None, 3.0])),
        dropout=draw(shares),
    )


feedforwards = st.builds(FeedForward, st.integers(1, 24), activations, maybe, maybe, shares)
routers = st.sampled_from([Softmax(), Softmax(renormalise=False), TopSoftmax()])
experts = st.builds(FeedForward, st.integers(1, 24), activations, maybe)
mixtures = st.builds(MoE, experts, st.just(4), st.integers(1, 4), routers)


@st.composite
def blocks(draw: st.DrawFn, cross: bool = False, heads: int = 4, masks: tuple[Mask, ...] = ANY) -> Block:
    """Any block; serial ones may lack a sublayer."""
    wiring = draw(st.sampled_from(SERIAL if cross else get_args(Wiring)))
    whole = wiring.startswith("parallel")
    attention, feedforward = draw(attentions(heads, masks)), draw(feedforwards | mixtures)
    missing = "none" if whole else draw(st.sampled_from(["none", "none", "attention", "feedforward"]))
    return Block(
        attention=None if missing == "attention" else attention,
        feedforward=None if missing == "feedforward" else feedforward,
        cross=draw(attentions(heads, cross=True)) if cross else None,
        norm=draw(norms),
        wiring=wiring,
        skip=draw(st.sampled_from([1.0, 1.0, 0.0, 1.5])),
        branch_scale=draw(st.sampled_from([1.0, 0.5])),
        dropout=draw(shares),
    )


@st.composite
def models(draw: st.DrawFn, cross: bool = False, masks: tuple[Mask, ...] = ANY, head: bool = True) -> Model:
    """Any stack of blocks, at most three of them."""
    heads = draw(st.sampled_from([1, 2, 4]))
    layers = tuple(draw(st.lists(blocks(cross, heads, masks), min_size=1, max_size=3)))
    embedding = Embedding(
        vocab=VOCAB,
        position=draw(st.sampled_from(added)),
        segments=draw(st.sampled_from([0, 2])),
        norm=draw(st.none() | norms),
        scale=draw(st.sampled_from([None, "sqrt_dim"])),
        dropout=draw(shares),
    )
    transform = draw(st.none() | st.builds(Transform, activations, norms))
    caps, scales = st.sampled_from([None, 5.0]), st.sampled_from([None, 0.5])
    kinds = st.builds(Head, maybe, maybe, st.just(transform), caps, scales)
    return Model(
        dim=DIM,
        embedding=embedding,
        layers=layers,
        norm=draw(st.none() | norms),
        head=draw(kinds) if head else None,
        length=draw(st.sampled_from([None, 40])),
        tokens=draw(st.sampled_from([Tokens(0, 1, 2, 1), Tokens(start=4)])),
        position_bias=draw(st.none() | relatives) if layers[0].attention else None,
        dropout=draw(shares),
    )


@st.composite
def pairs(draw: st.DrawFn) -> Seq2Seq:
    """Any encoder with any decoder that reads it."""
    return Seq2Seq(draw(models(masks=TWO_WAY, head=False)), draw(models(cross=True, masks=CAUSAL)), draw(maybe))


@st.composite
def readers(draw: st.DrawFn) -> Model:
    """Any model that gives features, or something for a whole text; with what acts on training and counting only."""
    transform = st.none() | st.builds(Transform, activations, st.none() | norms)
    pooling = st.sampled_from(get_args(Pooling))
    pooled, labelled = (
        st.builds(Pool, pooling, transform),
        st.builds(Classify, st.integers(1, 3), pooling, transform, maybe, shares),
    )
    counted, balance = draw(st.sampled_from(["real", "all"])), draw(st.sampled_from([0.0, 0.01]))
    tokens = draw(st.sampled_from([Tokens(), Tokens(0, eos=2, stop=(5, 6))]))
    head = draw(st.none() | pooled | labelled)
    return replace(draw(models(head=False)), head=head, counted=counted, balance=balance, tokens=tokens)


specs: st.SearchStrategy[Spec] = models() | readers() | pairs()
"""Any whole model."""
