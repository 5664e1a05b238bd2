"""How the residual stream, the heads and the loss are made again.

x: (batch, length, dim); logits: (batch, length, vocab) or (batch, labels).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from oneblock.explain import arithmetic as plain
from oneblock.explain.recipes import NAMELESS, STREAM, Operands, Recipe, numbered, recipe, same
from oneblock.explain.recipes_attention import real
from oneblock.explain.record import Event
from oneblock.explain.scene import Scene
from oneblock.spec import SLOTS, Classify, Head, Pool


@recipe("stream")
def stream(event: Event, scene: Scene) -> Recipe:
    """skip * x + branch_scale * branch; or what the norm after it gave."""
    block = scene.block(event.name)
    if "post" in SLOTS[block.wiring]:
        norms = [other.name for other in scene.events[: scene.events.index(event)] if other.last == "norm"]
        return Recipe("step.stream", STREAM, {"x": scene.step(norms[-1])}, same)
    operands, again = parts(event, scene)
    return Recipe("step.stream", STREAM, operands, again)


def parts(event: Event, scene: Scene) -> tuple[Operands, Callable[..., Tensor]]:
    """(what is added, how) of a stream event."""
    block = scene.block(event.name)
    factors = numbered(scene, {"skip": block.skip, "branch_scale": block.branch_scale})
    x = scene.known(event.given["x"])
    assert x is not None, event.name
    path = event.parent
    if block.wiring.startswith("parallel"):
        both = {"attention": scene.step(f"{path}.attention.out"), "feedforward": scene.step(f"{path}.feedforward.out")}
        return {"x": x} | both | factors, side_by_side
    branch = scene.known(event.given["branch"])
    assert branch is not None, event.name
    return {"x": x, "branch": branch} | factors, plain.added


def side_by_side(x: Tensor, attention: Tensor, feedforward: Tensor, skip: float, branch_scale: float) -> Tensor:
    """skip * x + branch_scale * (attention + feedforward)."""
    return plain.added(x, attention + feedforward, skip, branch_scale)


def sum_of_stream(event: Event, scene: Scene) -> tuple[Operands, Callable[..., Tensor]]:
    """What is normed after a residual: the sum that the next stream event tells of."""
    later = scene.events[scene.events.index(event) :]
    return parts(next(other for other in later if other.last == "stream"), scene)


def dense_activated(event: Event, scene: Scene) -> tuple[Operands, Callable[..., Tensor]]:
    """sigma(dense(x)) of a head's transform."""
    activation = scene.spec(event.name).head.transform.activation  # type: ignore[union-attr]
    operands = {"up": scene.step(f"{event.parent.removesuffix('.norm')}.dense")}
    return operands | numbered(scene, {"activation": activation}), plain.activated


NAMELESS |= {"stream": sum_of_stream, "head": dense_activated}


@recipe("final")
def final(event: Event, scene: Scene) -> Recipe:
    """The stream after the last norm, if there is one."""
    x = scene.known(event.tensor)
    if x is None:  # someone put another tensor in its place
        earlier = scene.events[: scene.events.index(event)]
        ends = [other.name for other in earlier if other.last in ("norm", "stream", "embedded")]
        x = scene.step(next(name for name in reversed(ends) if scene.stack(name) == scene.stack(event.name)))
    return Recipe("step.final", STREAM, {"x": x}, same)


def transformed(event: Event, scene: Scene) -> Operands | None:
    """What a head's transform gave; None without one."""
    path, head = event.parent, scene.spec(event.name).head
    if head is None or head.transform is None:
        return None
    if head.transform.norm is not None:
        return {"x": scene.step(f"{path}.transform.norm.norm")}
    return {"x": scene.step(f"{path}.transform.dense")} | numbered(scene, {"activation": head.transform.activation})


@recipe("pooled")
def pooled(event: Event, scene: Scene) -> Recipe:
    """One vector per text, transformed."""
    stack, head = scene.stack(event.name), scene.spec(event.name).head
    assert isinstance(head, Pool)
    inner = transformed(event, scene)
    if inner is not None:
        return Recipe("step.pooled", ("B", "d"), inner, bent)
    operands = {"x": scene.step(f"{stack}final"), "real": real(scene, stack)} | numbered(scene, {"how": head.pool})
    return Recipe("step.pooled", ("B", "d"), operands, plain.pooled)


def bent(x: Tensor, activation: str | None = None) -> Tensor:
    """x, after the activation where there is one."""
    return x if activation is None else plain.activated(x, activation)


@recipe("logits")
def logits(event: Event, scene: Scene) -> Recipe:
    """One number per token of the vocabulary, or per label."""
    stack, head = scene.stack(event.name), scene.spec(event.name).head
    linear = scene.linear(f"{event.parent}.out")
    inner = transformed(event, scene)
    if isinstance(head, Classify):
        if inner is None:
            inner = {"x": scene.step(f"{stack}final"), "real": real(scene, stack)} | numbered(scene, {"how": head.pool})
        return Recipe("step.labels", ("B", "labels"), inner | linear, labels)
    assert isinstance(head, Head)
    inner = inner or {"x": scene.step(f"{stack}final")}
    factors = numbered(scene, {"scale": 1.0 if head.scale is None else head.scale, "softcap": head.softcap})
    return Recipe("step.logits", ("B", "L", "V"), inner | linear | factors, logits_again)


def logits_again(
    x: Tensor, weight: Tensor, bias: Tensor | None, scale: float, softcap: float | None, activation: str | None = None
) -> Tensor:
    """cap(scale * (x W + b)); of the last positions only where the model gave only those."""
    return plain.capped(scale * plain.affine(bent(x, activation), weight, bias), softcap)


def labels(
    x: Tensor, weight: Tensor, bias: Tensor | None, real: Tensor | None = None, how: str | None = None,
    activation: str | None = None,
) -> Tensor:  # fmt: skip
    """pool(x) W + b."""
    x = x if real is None or how is None else plain.pooled(x, real, how)
    return plain.affine(bent(x, activation), weight, bias)


def loss_again(logits: Tensor, labels: Tensor, shift: bool, real: Tensor | None = None) -> Tensor:
    """The mean surprise at the labels; of a causal model at the next one, and not from padding."""
    if shift:
        following = torch.full_like(labels, -100)
        following[:, :-1] = labels[:, 1:]
        labels = following if real is None else torch.where(real.expand(labels.shape), following, -100)
    return plain.surprise(logits, labels)
