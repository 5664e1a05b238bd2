"""A brick in a few words: which kind of it this is, its sizes, and its formula with this spec's numbers in it."""

from __future__ import annotations

import re
from functools import singledispatch
from typing import Any

from oneblock.spec import (
    Alibi,
    Attention,
    Block,
    Causal,
    Classify,
    Embedding,
    FeedForward,
    Head,
    LayerNorm,
    Learned,
    MoE,
    Pool,
    Relative,
    RMSNorm,
    Rope,
    SigmaNorm,
    Softmax,
    Transform,
    Whole,
    Window,
    atoms,
    dims,
)
from oneblock.words import label, say


def kind(brick: Any, cross: bool = False) -> str:
    """The kind under which the words of this very brick stand.

    >>> kind(Attention(8)), kind(FeedForward(64, gated=True))
    ('Attention.causal', 'FeedForward.gated')
    """
    if isinstance(brick, Attention):
        return "Attention.cross" if cross else "Attention.causal" if causal(brick) else "Attention.self"
    if isinstance(brick, FeedForward):
        return "FeedForward.gated" if brick.gated else "FeedForward.plain"
    if isinstance(brick, Head):
        return "Head.tied" if brick.tied else "Head"
    if isinstance(brick, Softmax):
        return "Softmax.renormalised" if brick.renormalise else "Softmax"
    return type(brick).__name__


def causal(attention: Attention) -> bool:
    """Whether the mask hides everything ahead."""
    rules = atoms(attention.mask)
    return Causal() in rules or any(isinstance(rule, Window) and rule.ahead == 0 for rule in rules)


def number(value: float) -> str:
    """A number as people write it.

    >>> number(37000), number(0.5), number(500000.0)
    ('37,000', '0.5', '500,000')
    """
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:g}"


@singledispatch
def details(_brick: Any, _dim: int, _lang: str) -> tuple[str, ...]:
    """The sizes and choices of a brick in a stream of width dim, most important first.

    >>> details(FeedForward(2048, "relu"), 512, "en")
    ('512 → 2,048 → 512', 'ReLU')
    """
    return ()


@details.register
def _(brick: Attention, dim: int, lang: str) -> tuple[str, ...]:
    kv_heads, head_dim, value_dim = dims(brick, dim)
    said = [label("heads of", lang, brick.heads, head_dim)]
    if value_dim != head_dim:
        said.append(label("value", lang, value_dim))
    if kv_heads != brick.heads:
        said.append(label("key heads", lang, kv_heads))
    if brick.position is not None:
        said.append(say(type(brick.position), lang).name)
    if brick.qk_norm is not None:
        said.append(label("q and k normed whole" if isinstance(brick.qk_norm, Whole) else "q and k normed", lang))
    if brick.softcap is not None:
        said.append(label("softcap", lang, number(brick.softcap)))
    return tuple(said)


@details.register
def _(brick: FeedForward, dim: int, lang: str) -> tuple[str, ...]:
    sizes = f"{number(dim)} → {number(brick.hidden)} → {number(dim)}"
    return sizes, say(brick.activation, lang).name


@details.register(LayerNorm)
@details.register(SigmaNorm)
@details.register(RMSNorm)
def _(brick: LayerNorm | SigmaNorm | RMSNorm, _dim: int, _lang: str) -> tuple[str, ...]:
    return (f"ε = {brick.eps:g}",)


@details.register
def _(brick: Learned, _dim: int, lang: str) -> tuple[str, ...]:
    return (label("positions", lang, number(brick.length)),)


@details.register
def _(brick: Embedding, dim: int, _lang: str) -> tuple[str, ...]:
    return (f"{number(brick.vocab)} × {number(dim)}",)


@details.register
def _(brick: Transform, dim: int, lang: str) -> tuple[str, ...]:
    normed = () if brick.norm is None else (say(type(brick.norm), lang).name,)
    return f"{number(dim)} → {number(dim)}", say(brick.activation, lang).name, *normed


def formula(brick: Any, dim: int, cross: bool = False) -> str:
    """The formula of a brick, with what this spec leaves out left out and its numbers filled in.

    >>> formula(FeedForward(64, "relu"), 16)
    'ReLU(x W_up) W_down'
    >>> formula(Attention(8), 512)
    'softmax(q kᵀ / √64 + mask) v W_O'
    """
    said = say(kind(brick, cross)).formula
    if isinstance(brick, Attention):
        return said.replace("q kᵀ / √d_k + mask", scores(brick, dim, masked=True))
    if isinstance(brick, FeedForward | Transform):
        said = said.replace("σ", say(brick.activation).symbol)
    if isinstance(brick, Transform) and brick.norm is None:
        said = said.removeprefix("norm(").removesuffix(")")
    if isinstance(brick, MoE):
        said = said.replace("top", f"top {brick.active}")
    if isinstance(brick, Pool | Classify):
        said = said.replace("pool(x)" if brick.transform else "T(pool(x))", say(f"pool.{brick.pool}").formula)
    if isinstance(brick, LayerNorm | SigmaNorm) and not brick.bias:
        said = said.removesuffix(" + β")
    if isinstance(brick, RMSNorm) and brick.centred:
        said = said.replace("γ", "(1 + γ)")
    if isinstance(brick, FeedForward | Head | Classify) and not brick.bias:
        said = without_bias(said)
    if isinstance(brick, Embedding) and brick.scale:
        said = f"√{number(dim)} {said}"
    if isinstance(brick, Head):
        said = capped(said if brick.scale is None else f"{number(brick.scale)} ({said})", brick.softcap)
    if isinstance(brick, Block):
        said = say(f"wiring.{brick.wiring}").formula
    return said


def scores(attention: Attention, dim: int, masked: bool = False) -> str:
    """What an attention takes the softmax of.

    >>> scores(Attention(8, position=Alibi(), softcap=50.0), 512)
    '50 tanh(q kᵀ / √64 / 50) + B'
    """
    product = "rot(q) rot(k)ᵀ" if isinstance(attention.position, Rope) else "q kᵀ"
    head_dim = dims(attention, dim)[1]
    scaled = f"{product} / √{head_dim}" if attention.scale is None else f"{number(attention.scale)} {product}"
    bias = " + B" if isinstance(attention.position, Alibi | Relative) else ""
    return capped(scaled, attention.softcap) + bias + (" + mask" if masked and not everything(attention) else "")


def everything(attention: Attention) -> bool:
    """Whether the mask hides nothing."""
    return not any(isinstance(rule, Causal | Window) for rule in atoms(attention.mask))


def masks(attention: Attention, lang: str) -> tuple[str, ...]:
    """The rules of an attention's mask by name, a window with its reach.

    >>> masks(Attention(8, mask=Causal() & Window(4096)), "en")
    ('Causal mask', 'Window mask 4,096')
    """
    rules = sorted(atoms(attention.mask), key=repr)
    reach = [f" {number(rule.back)}" if isinstance(rule, Window) else "" for rule in rules]
    return tuple(say(type(rule), lang).name + far for rule, far in zip(rules, reach, strict=True))


def capped(said: str, softcap: float | None) -> str:
    """A formula under a soft cap, if there is one."""
    return said if softcap is None else f"{number(softcap)} tanh({said} / {number(softcap)})"


def without_bias(said: str) -> str:
    """A formula without its biases, and without the parentheses that only they needed."""
    return re.sub(r"(?<=⊙ )\((x W_\w+)\)", r"\1", re.sub(r" \+ b_\w+", "", said))


def residual(block: Block) -> str:
    """The addition of a block's residual with this block's numbers.

    >>> residual(Block(Attention(8), FeedForward(64), skip=0.5))
    '0.5 x + f(x)'
    """
    skip = "x" if block.skip == 1 else f"{number(block.skip)} x"
    branch = "f(x)" if block.branch_scale == 1 else f"{number(block.branch_scale)} f(x)"
    return f"{skip} + {branch}" if block.skip else branch
