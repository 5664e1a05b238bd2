"""What may have gone wrong where two models part: guesses, each a change of spec or of weights that can be tried.

A guess is made for the first step that differs; its operands are those of the model that is changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

from torch import Tensor

from oneblock.explain.guess import GUESSES, Guess, Guesses, Make, Parting, about, everywhere
from oneblock.explain.variant import Variant
from oneblock.spec import (
    Activation,
    Change,
    LayerNorm,
    Norm,
    RMSNorm,
    SigmaNorm,
    apply,
    diff,
    get,
    put,
    to_dict,
    walk,
)

EPSILONS = (0.0, 1e-12, 1e-8, 1e-6, 1e-5, 1e-3)
KINDS = {
    "activation": "activation", "eps": "epsilon", "scale": "scale", "mask": "mask", "back": "mask", "ahead": "mask",
    "rules": "mask", "offset": "position offset", "start": "position offset", "theta": "base", "fraction": "fraction",
    "centred": "centred", "softcap": "softcap", "renormalise": "router", "router": "router", "tied": "tied",
    "bias": "bias", "out_bias": "bias", "skip": "residual", "branch_scale": "residual", "wiring": "wiring",
    "both_ways": "buckets", "buckets": "buckets", "distance": "buckets", "unbiased": "norm", "norm": "norm",
    "position": "position", "closed": "position", "scaling": "base",
}  # fmt: skip
"""The last name of a change of a spec -> the kind of cause."""


def guesses(parting: Parting) -> Guesses:
    """All of them: first what the two specs say themselves, then what is known to go wrong at such a step."""
    groups: dict[str, list[Change]] = {}
    for change in diff(parting.mine.spec, parting.theirs.spec):
        if change.path:
            groups.setdefault(kind_of(change), []).append(change)
    for kind, changes in groups.items():
        for some in [changes] if len(changes) == 1 else [changes, *([one] for one in changes)]:
            yield said_by_spec(kind, tuple(some), parting.theirs.tensors)
    for make in [*GUESSES.get(parting.last, []), *GUESSES["*"]]:
        yield from make(parting)


def kind_of(change: Change) -> str:
    """What kind of cause a difference of specs is."""
    words = change.path.split(".")
    if words[-1] == "layout":
        return "rotary layout" if "attention" in words else "sinusoid layout"
    if words[-2:] == ["embedding", "scale"]:
        return "embedding scale"
    return next((KINDS[word] for word in reversed(words) if word in KINDS), "spec")


def said_by_spec(kind: str, changes: tuple[Change, ...], lent: Mapping[str, Tensor]) -> Guess:
    """Differences of the two specs."""

    def make(variant: Variant) -> Variant:
        return variant.respecced(apply(variant.spec, changes), lent)

    before = dict.fromkeys(short(one.before) for one in changes)
    after = dict.fromkeys(short(one.after) for one in changes)
    return Guess(kind, ", ".join(before), ", ".join(after), ((", ".join(one.path for one in changes), make),))


def short(value: Any) -> str:
    """A value of a spec in a few letters."""
    said = to_dict(value) if hasattr(value, "__dataclass_fields__") else value
    return str(said.get("type") if isinstance(said, dict) else said)


@about("hidden")
def activation(parting: Parting) -> Guesses:
    """Another activation; of GELU its approximation."""
    name = "activation" if "activation" in parting.step.operands else "act"
    now, path = parting.value(name), parting.parent.removesuffix(".experts")
    field = f"{path}.expert.activation" if name == "act" else f"{path}.activation"
    for other in get_args(Activation):
        if other != now:
            yield Guess("activation", now, other, everywhere(field, other), {name: other})


@about("norm")
def norms(parting: Parting) -> Guesses:
    """Another epsilon, a weight that is 1 + w or is not, sigma + eps."""
    path = place_of_norm(parting)
    spec: Norm = get(parting.mine.spec, path)
    for eps in EPSILONS:
        if eps != spec.eps:
            change = (
                ("*.eps", all_norms(spec.eps, eps)),
                *everywhere(path, lambda old, eps=eps: replace(old, eps=eps)),
            )
            yield Guess("epsilon", f"{spec.eps:g}", f"{eps:g}", change, {"eps": eps})
    if isinstance(spec, RMSNorm):
        change = everywhere(path, lambda old: replace(old, centred=not old.centred))
        before, after = ("1 + w", "w") if spec.centred else ("w", "1 + w")
        yield Guess("centred", before, after, change, {"centre": float(not spec.centred)})
    if isinstance(spec, LayerNorm):
        for unbiased in (False, True):
            change = everywhere(path, lambda old, unbiased=unbiased: SigmaNorm(old.eps, old.bias, unbiased))
            yield Guess("norm", "√(σ² + ε)", "σ + ε", change)
    if isinstance(spec, SigmaNorm):
        yield Guess("norm", "σ + ε", "√(σ² + ε)", everywhere(path, lambda old: LayerNorm(old.eps, old.bias)))


def all_norms(now: float, new: float) -> Make:
    """Every norm of that epsilon gets another one."""

    def make(variant: Variant) -> Variant:
        spec = variant.spec
        for path, part in walk(variant.spec):
            if isinstance(part, LayerNorm | RMSNorm | SigmaNorm) and part.eps == now:
                spec = put(spec, f"{path}.eps", new)
        return variant.respecced(spec)

    return make


def place_of_norm(parting: Parting) -> str:
    """Where the spec of a norm stands."""
    words = parting.parent.removeprefix(parting.stack).split(".")
    if "norms" in words:
        return f"{parting.stack}layers.{words[1]}.norm"
    for name in ("q_norm", "k_norm"):
        if name in words:
            words[words.index(name)] = "qk_norm"
    return parting.stack + ".".join(words)


@about("scores")
def scale(parting: Parting) -> Guesses:
    """Another factor: the one that the scores themselves tell, if it is the same everywhere."""
    now, (mine, other) = parting.value("scale"), (parting.step.tensor, parting.other)
    if mine.shape != other.shape or not bool(mine.abs().max() > 0):
        return
    factor = now * (mine * other).sum().item() / mine.square().sum().item()
    known = {"1": 1.0, "1/√dim": parting.model.dim**-0.5, "1/√head_dim": parting.value("q").shape[-1] ** -0.5}
    known |= {"√head_dim": parting.value("q").shape[-1] ** 0.5, "1/head_dim": 1 / parting.value("q").shape[-1]}

    def named(number: float) -> str:
        return next((name for name, x in known.items() if abs(number / x - 1) < 1e-9), f"{number:.6g}")

    if factor >= 0:
        change = everywhere(f"{parting.parent}.scale", factor)
        yield Guess("scale", named(now), named(factor), change, {"scale": factor})


@about("embedded")
def scaled(parting: Parting) -> Guesses:
    """Token vectors that are multiplied by the root of the width, or are not."""
    now = parting.model.embedding.scale
    new, size = (None, 1.0) if now else ("sqrt_dim", parting.model.dim**0.5)
    change = everywhere(f"{parting.stack}embedding.scale", new)
    yield Guess("embedding scale", "√dim" if now else "1", "1" if now else "√dim", change, {"scale": size})


@about("weight")
def router(parting: Parting) -> Guesses:
    """Weights of experts that sum to 1, or are shares among all."""
    whole = parting.value("whole")
    if whole is not None:
        at = f"{parting.parent}.router"
        kind = type(get(parting.mine.spec, at))
        new = lambda old: replace(old, renormalise=whole) if hasattr(old, "renormalise") else old  # noqa: E731
        yield Guess("router", f"{kind.__name__}", "renormalised" if whole else "not renormalised",
                    everywhere(at, new), {"whole": not whole})  # fmt: skip


@about("stream")
def residual(parting: Parting) -> Guesses:
    """A stream that is not added to, or branches of another size."""
    for name in ("skip", "branch_scale"):
        now = parting.value(name)
        for new in (1.0, 0.0):
            if now is not None and now != new:
                at = f"{parting.parent}.{name}"
                yield Guess("residual", f"{name} {now:g}", f"{new:g}", everywhere(at, new), {name: new})


@about("logits")
def head(parting: Parting) -> Guesses:
    """Another cap or factor of the logits."""
    for name, values in (("softcap", (None, 30.0, 50.0)), ("scale", (None, parting.model.dim**-0.5))):
        now = parting.value(name)
        for new in values:
            if now is not None or new is not None:
                at = f"{parting.stack}head.{name}"
                told = {name: 1.0 if name == "scale" and new is None else new}
                yield Guess(name, str(now), str(new), everywhere(at, new), told)
