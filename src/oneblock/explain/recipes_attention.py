"""How the steps of attention and feed-forward are made again.

q, k, v: (batch, heads, length, width); scores: (batch, heads, query, key).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from oneblock.explain import arithmetic as plain
from oneblock.explain.cause import causes
from oneblock.explain.positions import by_distance, turned
from oneblock.explain.recipes import NAMELESS, STREAM, Operands, Recipe, numbered, recipe, same
from oneblock.explain.record import Event
from oneblock.explain.scene import Scene
from oneblock.explain.step import Operand
from oneblock.spec import Alibi, Attention, MoE, Relative, Rope, Softmax, Whole, dims, scale

SCORES = ("B", "h", "L_q", "L_k")


def attention(event: Event, scene: Scene) -> tuple[Attention, str]:
    """(the spec of the attention that an event happens in, its path)."""
    name = scene.rest(event.name).partition(".")[0]
    path = event.name[: event.name.index(f".{name}.") + len(name) + 1]
    return getattr(scene.block(event.name), name), path


@recipe("q", "k", "v", "up", "gate", "dense")
def projection(event: Event, scene: Scene) -> Recipe:
    """x W + b."""
    wide = {"q": "h·d_k", "k": "h·d_k", "v": "h·d_v", "up": "d_ff", "gate": "d_ff", "dense": "d"}[event.last]
    operands = scene.linear(event.name)
    x = scene.known(event.given["x"])
    axes = (*STREAM[: event.tensor.ndim - 1], wide)
    if x is not None:
        return Recipe(f"step.{event.last}", axes, {"x": x} | operands, plain.affine)
    pool = scene.spec(event.name).head.pool  # type: ignore[union-attr]
    stack = scene.stack(event.name)
    inner = {"x": scene.step(f"{stack}final"), "real": real(scene, stack)} | numbered(scene, {"how": pool})
    return Recipe(f"step.{event.last}", axes, inner | operands, dense_of_pool)


def real(scene: Scene, stack: str) -> Operand:
    """Which tokens of a stack are no padding."""
    return Operand("input", f"{stack}real", scene.stands[stack].real)


def dense_of_pool(x: Tensor, real: Tensor, how: str, weight: Tensor, bias: Tensor | None) -> Tensor:
    """pool(x) W + b."""
    return plain.affine(plain.pooled(x, real, how), weight, bias)


@recipe("query", "key")
def query_or_key(event: Event, scene: Scene) -> Recipe:
    """The heads of a projection, normed where the spec says so, turned where it says so."""
    spec, path = attention(event, scene)
    letter, stack = event.last[0], scene.stack(event.name)
    operands = numbered(scene, {"width": dims(spec, scene.spec(event.name).dim)[1]})
    normed = f"{path}.{letter}_norm.norm" + (".norm" if isinstance(spec.qk_norm, Whole) else "")
    operands["x"] = scene.step(normed if spec.qk_norm else f"{path}.{letter}")
    if isinstance(spec.position, Rope):
        operands["position"] = Operand("input", f"{stack}position", scene.stands[stack].position)
        operands |= numbered(scene, {"rope": spec.position})
    axes = ("B", "h" if letter == "q" else "h_kv", "L_q" if letter == "q" else "L_k", "d_k")
    return Recipe(f"step.{event.last}", axes, operands, heads)


def heads(x: Tensor, width: int, position: Tensor | None = None, rope: Rope | None = None) -> Tensor:
    """x in heads, turned by its positions."""
    x = plain.in_heads(x, width) if x.ndim == 3 else x
    return x if rope is None or position is None else turned(x, position, rope)


@recipe("value")
def value(event: Event, scene: Scene) -> Recipe:
    """The heads of a projection."""
    spec, path = attention(event, scene)
    width = numbered(scene, {"width": dims(spec, scene.spec(event.name).dim)[2]})
    return Recipe("step.value", ("B", "h_kv", "L_k", "d_v"), {"x": scene.step(f"{path}.v")} | width, heads)


@recipe("scores")
def scores(event: Event, scene: Scene) -> Recipe:
    """scale * q k^T."""
    spec, path = attention(event, scene)
    operands = {"q": scene.step(f"{path}.query"), "k": scene.step(f"{path}.key")}
    factor = numbered(scene, {"scale": scale(spec, scene.spec(event.name).dim)})
    return Recipe("step.scores", SCORES, operands | factor, plain.scored)


@recipe("masked")
def masked(event: Event, scene: Scene) -> Recipe:
    """The scores with their bias, -inf where something hides the key."""
    spec, path = attention(event, scene)
    operands = {"scores": scene.step(f"{path}.scores"), "hidden": hidden_by(event, scene)}
    operands |= numbered(scene, {"softcap": spec.softcap})
    operands |= biased(event, scene, spec, path)
    return Recipe("step.masked", SCORES, operands, mask_and_bias)


def hidden_by(event: Event, scene: Scene) -> Operand:
    """The cause of each hidden entry: (batch | 1, query, key)."""
    spec, path = attention(event, scene)
    stack = scene.stack(event.name)
    there = "encoder." if path.endswith(".cross") else stack
    return Operand("input", f"{path}.mask", causes(spec.mask, scene.stands[stack], scene.stands[there]))


def biased(event: Event, scene: Scene, spec: Attention, path: str) -> Operands:
    """The operands of a position bias, none where there is none."""
    stack, crossing = scene.stack(event.name), path.endswith(".cross")
    rule = spec.position if isinstance(spec.position, Alibi | Relative) else None
    own = f"{path}.position"
    if rule is None and not crossing:
        rule, own = scene.spec(event.name).position_bias, f"{stack}position_bias"
    if rule is None:
        return {}
    k = scene.stands["encoder." if crossing else stack].position
    places = {
        "q_at": Operand("input", f"{stack}position", scene.stands[stack].position),
        "k_at": Operand("input", "", k),
    }
    table = {"table": scene.weight(f"{own}.weight")} if isinstance(rule, Relative) else {}
    return places | table | numbered(scene, {"rule": rule})


def mask_and_bias(
    scores: Tensor, hidden: Tensor, softcap: float | None, q_at: Any = None, k_at: Any = None, rule: Any = None,
    table: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Capped scores + bias, -inf where hidden."""
    bias = None if rule is None else by_distance(rule, q_at, k_at, scores.shape[1], table)
    return plain.masked(scores, hidden, bias, softcap)


@recipe("pattern")
def pattern(event: Event, scene: Scene) -> Recipe:
    """softmax of the masked scores."""
    return Recipe("step.pattern", SCORES, {"scores": scene.step(f"{attention(event, scene)[1]}.masked")}, plain.shares)


@recipe("z")
def z(event: Event, scene: Scene) -> Recipe:
    """a v."""
    path = attention(event, scene)[1]
    operands = {"pattern": scene.step(f"{path}.pattern"), "v": scene.step(f"{path}.value")}
    return Recipe("step.z", ("B", "h", "L_q", "d_v"), operands, plain.gathered)


@recipe("hidden")
def hidden(event: Event, scene: Scene) -> Recipe:
    """sigma(up), or sigma(gate) * up; of experts, of the tokens each of them gets."""
    spec = scene.block(event.name).feedforward
    if isinstance(spec, MoE):
        return experts_hidden(event, scene, spec)
    operands = {"up": scene.step(f"{event.parent}.up")} | numbered(scene, {"activation": spec.activation})  # type: ignore[union-attr]
    gate = {"gate": scene.step(f"{event.parent}.gate")} if spec.gated else {}  # type: ignore[union-attr]
    kind = "step.hidden.gated" if gate else "step.hidden"
    return Recipe(kind, ("B", "L", "d_ff"), operands | gate, plain.activated)


@recipe("router")
def router(event: Event, scene: Scene) -> Recipe:
    """One score per expert for each token."""
    x = scene.known(event.given["x"]) or scene.step(before_feedforward(event, scene))
    return Recipe("step.router", ("B·L", "E"), {"x": x} | scene.linear(event.name), router_scores)


def before_feedforward(event: Event, scene: Scene) -> str:
    """The step that a feed-forward reads."""
    names = [other.name for other in scene.events[: scene.events.index(event)]]
    own = f"{event.name.partition('.feedforward.')[0]}.norms.feedforward_pre.norm"
    if own in names:
        return own
    names = [name for name in names if "_norm." not in name]
    return next(
        name for name in reversed(names) if name.rpartition(".")[2].partition("#")[0] in ("norm", "stream", "embedded")
    )


def router_scores(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W, the tokens of all texts one after the other."""
    return plain.affine(x.reshape(-1, x.shape[-1]), weight, bias)


@recipe("weight")
def weight(event: Event, scene: Scene) -> Recipe:
    """The weights of the chosen experts."""
    spec: Any = scene.block(event.name).feedforward
    whole = spec.router == Softmax(renormalise=False)
    operands = {"scores": scene.step(f"{event.parent}.router")} | numbered(
        scene, {"active": spec.active, "whole": whole}
    )
    return Recipe("step.weights", ("B·L", "E_k"), operands, plain.routed)


def stacked(scene: Scene, path: str, spec: MoE) -> Operands:
    """The matrices of all experts."""
    names = ("up", "gate") if spec.expert.gated else ("up",)
    return {name: scene.weight(f"{path}.{name}.weight") for name in names}


def experts_hidden(event: Event, scene: Scene, spec: MoE) -> Recipe:
    """The hidden features of each pair of token and expert, expert by expert."""
    path = event.parent.removesuffix(".experts")
    operands = {"x": router_input(scene, path), "chosen": chosen(scene, path)}
    operands |= stacked(scene, f"{path}.experts", spec) | numbered(scene, {"act": spec.expert.activation})
    return Recipe("step.hidden.gated" if spec.expert.gated else "step.hidden", ("B·L·E_k", "d_ff"), operands, by_expert)


def chosen(scene: Scene, path: str) -> Operand:
    """Which experts each token uses, (tokens, active); where scores are equal, arithmetic alone cannot tell."""
    return Operand("input", f"{path}.chosen", scene.by_name[f"{path}.weight"].given["chosen"])


def router_input(scene: Scene, path: str) -> Operand:
    """What the experts at a path read."""
    event = scene.by_name[f"{path}.router"]
    return scene.known(event.given["x"]) or scene.step(before_feedforward(event, scene))


def by_expert(x: Tensor, chosen: Tensor, up: Tensor, act: str, gate: Tensor | None = None) -> Tensor:
    """The hidden features, expert after expert, each for its tokens in order."""
    rows = [
        plain.activated(up[expert] @ token, act, None if gate is None else gate[expert] @ token)
        for expert in range(len(up))
        for token, experts in zip(x.reshape(-1, x.shape[-1]), chosen.tolist(), strict=True)
        if expert in experts
    ]
    return torch.stack(rows)


@recipe("out")
def out(event: Event, scene: Scene) -> Recipe:
    """What a sublayer adds to the stream."""
    rest = scene.rest(event.name)
    if rest.startswith("head."):
        return before_cap(event, scene)
    if rest.startswith("feedforward."):
        return feedforward_out(event, scene)
    path = attention(event, scene)[1]
    operands = {"z": scene.step(f"{path}.z")} | scene.linear(f"{path}.out")
    return Recipe("step.out", STREAM, operands, out_of_heads)


def before_cap(event: Event, scene: Scene) -> Recipe:
    """The head's product, before its factor and its cap."""
    x = scene.known(event.given["x"]) or scene.step(f"{scene.stack(event.name)}final")
    return Recipe("step.logits", ("B", "L", "V"), {"x": x} | scene.linear(event.name), plain.affine)


def out_of_heads(z: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """concat(z) W + b."""
    return plain.affine(plain.joined(z), weight, bias)


def feedforward_out(event: Event, scene: Scene) -> Recipe:
    """down(hidden), or the sum over the chosen experts."""
    spec = scene.block(event.name).feedforward
    if not isinstance(spec, MoE):
        operands = {"x": scene.step(f"{event.parent}.hidden")} | scene.linear(f"{event.parent}.down")
        return Recipe("step.down", STREAM, operands, plain.affine)
    path = event.parent
    operands = {"hidden": scene.step(f"{path}.experts.hidden"), "chosen": chosen(scene, path)}
    operands |= {"weight": scene.step(f"{path}.weight"), "down": scene.weight(f"{path}.experts.down.weight")}
    return Recipe("step.mix", STREAM, operands | numbered(scene, {"length": event.tensor.shape[1]}), plain.mixed)


def normed_heads(event: Event, scene: Scene) -> tuple[Operands, Callable[..., Tensor]]:
    """A projection in heads, before its norm."""
    spec, path = attention(event, scene)
    letter = scene.rest(event.name).split(".")[1][0]
    width = numbered(scene, {"width": dims(spec, scene.spec(event.name).dim)[1]})
    return {"x": scene.step(f"{path}.{letter}")} | width, heads


def normed_whole(event: Event, scene: Scene) -> tuple[Operands, Callable[..., Tensor]]:
    """A projection, all heads of a token together."""
    path, letter = attention(event, scene)[1], scene.rest(event.name).split(".")[1][0]
    return {"x": scene.step(f"{path}.{letter}")}, same


NAMELESS |= {"heads": normed_heads, "whole": normed_whole}
