"""Random small specs of every kind, for tests of what must hold for any spec."""

from __future__ import annotations

from typing import get_args

from hypothesis import strategies as st

from oneblock.spec import (
    Activation,
    Alibi,
    Attention,
    Block,
    Embedding,
    FeedForward,
    Full,
    Head,
    LayerNorm,
    Learned,
    Model,
    Relative,
    RMSNorm,
    Rope,
    Seq2Seq,
    SigmaNorm,
    Sinusoidal,
    Transform,
    Wiring,
)

norms = st.sampled_from(
    [LayerNorm(), LayerNorm(bias=False), SigmaNorm(), SigmaNorm(bias=False), RMSNorm(), RMSNorm(centred=True)]
)
maybe = st.booleans()


@st.composite
def attentions(draw: st.DrawFn, cross: bool = False) -> Attention:
    kv_heads = draw(st.sampled_from([1, 2, 4]))
    positions = [None] if cross else [None, Rope(), Rope(fraction=0.5), Alibi(), Relative(4, 8)]
    return Attention(
        heads=4,
        kv_heads=draw(st.sampled_from([None, kv_heads])),
        head_dim=draw(st.sampled_from([None, 8])),
        value_dim=draw(st.sampled_from([None, 6])),
        mask=Full(),
        position=draw(st.sampled_from(positions)),
        qk_norm=draw(st.none() | norms),
        bias=draw(maybe),
        out_bias=draw(st.sampled_from([None, True, False])),
    )


@st.composite
def blocks(draw: st.DrawFn, cross: bool) -> Block:
    words = [word for word in get_args(Wiring) if not (cross and word.startswith("parallel"))]
    wiring = draw(st.sampled_from(words))
    feedforward = FeedForward(
        draw(st.integers(1, 40)), draw(st.sampled_from(get_args(Activation))), draw(maybe), draw(maybe)
    )
    whole = wiring.startswith("parallel")
    attention = draw(attentions() if whole else st.none() | attentions())
    return Block(
        attention,
        feedforward if whole or attention is None else draw(st.sampled_from([None, feedforward])),
        cross=draw(attentions(cross=True)) if cross else None,
        norm=draw(norms),
        wiring=wiring,
    )


@st.composite
def models(draw: st.DrawFn, cross: bool = False, headless: bool = False) -> Model:
    embedding = Embedding(
        vocab=30,
        position=draw(st.sampled_from([None, Learned(12), Learned(12, offset=2), Sinusoidal()])),
        segments=draw(st.sampled_from([0, 2])),
        norm=draw(st.none() | norms),
    )
    layers = tuple(draw(st.lists(blocks(cross), min_size=0 if cross else 1, max_size=3)))
    transform = draw(st.none() | st.builds(Transform, norm=norms))
    table = draw(st.sampled_from([None, Relative(4, 8)])) if layers and layers[0].attention else None
    return Model(
        dim=16,
        embedding=embedding,
        layers=layers,
        norm=draw(st.none() | norms),
        head=None if headless else Head(draw(maybe), draw(maybe), transform),
        position_bias=table,
    )


specs = models() | models(headless=True) | st.builds(Seq2Seq, models(headless=True), models(cross=True), maybe)
