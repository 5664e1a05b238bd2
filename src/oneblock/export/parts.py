"""The bricks inside a block: norms, positions, attention, feed-forwards, each class written once for all its uses."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from oneblock.export.file import File
from oneblock.export.values import Code
from oneblock.spec import (
    Activation,
    Alibi,
    Attention,
    DynamicBase,
    FeedForward,
    Interpolate,
    LayerNorm,
    LongRope,
    MoE,
    Norm,
    Relative,
    RMSNorm,
    Rope,
    SigmaNorm,
    Smooth,
    Softmax,
    Yarn,
    dims,
)

ACTIVATIONS: dict[Activation, str] = {"relu": "F.relu", "gelu": "F.gelu", "silu": "F.silu", "tanh": "torch.tanh"}


def activation(file: File, word: Activation) -> Code:
    """The function of an activation."""
    return Code(ACTIVATIONS[word]) if word in ACTIVATIONS else file.plain(word)


def norms(file: File, found: Iterable[Norm]) -> None:
    """The classes of norms, for all norms that a model has."""
    for kind, names in ((RMSNorm, "eps centred"), (SigmaNorm, "eps bias unbiased")):
        own = [norm for norm in dict.fromkeys(found) if isinstance(norm, kind)]
        uses = [{name: getattr(norm, name) for name in names.split()} for norm in own]
        for use in uses:
            use |= {"correction": int(use.get("unbiased", False)), "shifted": use.get("bias", False)}
        docs = {} if kind is SigmaNorm else {kind.__name__: _rms(uses)}
        calls = file.brick(kind.__name__, uses, {"eps": "EPS"}, docs=docs)
        file.made |= dict(zip(own, calls, strict=True))


def _rms(uses: list[dict[str, Any]]) -> str:
    centred = uses and all(use["centred"] for use in uses)
    weight = "(1 + weight)" if centred else "weight"
    return f"x / sqrt(mean(x^2) + eps) * {weight}: no mean, no bias (arXiv:1910.07467)."


def norm(file: File, spec: Norm | None, dim: str) -> Code | None:
    """How a norm over `dim` features is made."""
    if spec is None:
        return None
    if isinstance(spec, LayerNorm):
        eps = file.constants.use("EPS", spec.eps)
        return Code(f"nn.LayerNorm({dim}, {eps}{'' if spec.bias else ', bias=False'})")
    name, _, rest = file.made[spec].partition("(")
    return Code(f"{name}({dim}{', ' * (rest != ')')}{rest}")


def positions(file: File, found: list[tuple[Any, int, int]]) -> None:
    """The classes of positions, for all (position, heads, head_dim) of a model."""
    ropes = [one for one in dict.fromkeys(found) if isinstance(one[0], Rope)]
    names = {name: name.upper() for name in turning(Rope(), 2)}
    if all(turning(rope, width)["features"] == width for rope, _, width in ropes):
        names["features"] = "HEAD_DIM"
    calls = file.brick("Rotary", [turning(rope, width) for rope, _, width in ropes], names)
    file.made |= dict(zip(ropes, calls, strict=True))
    tables = [one for one in dict.fromkeys(found) if isinstance(one[0], Relative)]
    uses = [
        {"buckets": one.buckets, "heads": heads, "farthest": one.distance, "both_ways": one.both_ways}
        for one, heads, _ in tables
    ]
    calls = file.brick("Relative", uses, {"buckets": "BUCKETS", "heads": "HEADS", "farthest": "FARTHEST"})
    file.made |= dict(zip(tables, calls, strict=True))
    slanted = [one for one in dict.fromkeys(found) if isinstance(one[0], Alibi)]
    calls = file.brick("Alibi", [{"slopes": slopes(heads)} for _, heads, _ in slanted], {"slopes": "SLOPES"})
    file.made |= dict(zip(slanted, calls, strict=True))


def slopes(heads: int) -> tuple[float, ...]:
    """How fast each head forgets (Press et al. 2022, arXiv:2108.12409)."""
    power = 2 ** math.floor(math.log2(heads))
    first = [2 ** (-8 * (h + 1) / power) for h in range(power)]
    return tuple(first + [2 ** (-4 * (2 * h + 1) / power) for h in range(heads - power)])


def turning(rope: Rope, width: int) -> dict[str, Any]:
    """What is known of a rotary position in heads of `width` features."""
    n, one = 2 * round(width * rope.fraction / 2), rope.scaling
    use: dict[str, Any] = {
        "theta": rope.theta, "features": n, "partial": n != width, "interleaved": rope.layout == "interleaved",
        "scaling": None, "factor": None, "trained": None, "low": None, "high": None, "width": None, "short": None,
        "long": None, "size": 1.0,
    }  # fmt: skip
    if isinstance(one, Interpolate):
        use |= {"scaling": "interpolate", "factor": one.factor}
    if isinstance(one, DynamicBase):
        use |= {"scaling": "dynamic", "factor": one.factor, "trained": one.length}
    if isinstance(one, Smooth):
        use |= {"scaling": "smooth", "factor": one.factor, "trained": one.length, "low": one.low, "high": one.high}
    if isinstance(one, LongRope):
        use |= {"scaling": "searched", "short": one.short, "long": one.long, "trained": one.length}
        use |= {"size": float(one.attention)}
    if isinstance(one, Yarn):
        first, slowing = ramp(one, rope.theta, n)
        size = one.attention or (0.1 * math.log(one.factor) + 1 if one.factor > 1 else 1.0)
        use |= {"scaling": "ramp", "factor": one.factor, "low": first, "width": slowing, "size": float(size)}
    return use


def ramp(one: Yarn, theta: float, n: int) -> tuple[float, float]:
    """The last feature pair that is kept, and how many there are from it to the first that is slowed in full."""
    waves = (one.length / (2 * math.pi * turns) for turns in (one.fast, one.slow))
    low, high = (n * math.log(wave) / (2 * math.log(theta)) for wave in waves)
    first, last = (math.floor(low), math.ceil(high)) if one.truncate else (low, high)
    first, last = max(first, 0), min(last, n - 1)
    return first, (last - first if first != last else 0.001)


def placed(one: Attention, dim: int) -> tuple[Any, int, int]:
    """A position with what its module needs to know: heads, and features of each."""
    return one.position, one.heads, dims(one, dim)[1]


def feedforwards(file: File, found: list[FeedForward | MoE], dim: int) -> None:
    """The classes of feed-forwards, for all that a model has."""
    plain = [one for one in dict.fromkeys(found) if isinstance(one, FeedForward)]
    uses = [bent(file, one, dim) | {"bias": one.bias, "dropout": one.dropout} for one in plain]
    names = {"dim": "DIM", "hidden": "HIDDEN", "dropout": file.share_name("HIDDEN_DROPOUT")}
    docs = {"FeedForward": f"{gates(plain)}: each token on its own, wide and back."}
    file.made |= dict(zip(plain, file.brick("FeedForward", uses, names, docs=docs), strict=True))
    mixed = [one for one in dict.fromkeys(found) if isinstance(one, MoE)]
    if not mixed:
        return
    file.plain("Stacked")
    names = {"dim": "DIM", "hidden": "EXPERT_HIDDEN", "experts": "EXPERTS", "active": "ACTIVE"}
    inner = [bent(file, one.expert, dim) | {"experts": one.experts} for one in mixed]
    docs = {"Experts": f"{gates([one.expert for one in mixed])}, for every expert."}
    stacks = file.brick("Experts", inner, names, docs=docs)
    uses = [
        {"dim": dim, "experts": one.experts, "active": one.active, "stack": stack,
         "renormalise": one.router != Softmax(renormalise=False)}
        for one, stack in zip(mixed, stacks, strict=True)
    ]  # fmt: skip
    file.made |= dict(zip(mixed, file.brick("MoE", uses, names), strict=True))


def bent(file: File, one: FeedForward, dim: int) -> dict[str, Any]:
    """What is known of a feed-forward."""
    return {
        "dim": dim, "hidden": one.hidden, "activation": activation(file, one.activation), "gated": one.gated,
    }  # fmt: skip


def gates(found: list[FeedForward]) -> str:
    """A feed-forward as an equation."""
    words = list(dict.fromkeys(one.activation for one in found))
    word = words[0] if len(words) == 1 else "activation"
    gated = {one.gated for one in found}
    return f"down({word}(gate(x)) * up(x))" if gated == {True} else f"down({word}(up(x)))"


__all__ = ["activation", "feedforwards", "norm", "norms", "placed", "positions"]
