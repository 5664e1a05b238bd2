"""How each step is made again: its words, the names of its axes, its operands, and the arithmetic. First, the stream.

x: (batch, length, dim).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from oneblock.explain import arithmetic as plain
from oneblock.explain.positions import waves
from oneblock.explain.record import Event
from oneblock.explain.scene import Scene
from oneblock.explain.step import Operand
from oneblock.spec import LayerNorm, Learned, Norm, RMSNorm

Operands = dict[str, Operand]
STREAM = ("B", "L", "d")
"""The axes of the stream: batch, length, width."""


@dataclass(frozen=True)
class Recipe:
    """Everything of a step but its tensor."""

    kind: str
    dims: tuple[str, ...]
    operands: Operands
    again: Callable[..., Tensor]


Make = Callable[[Event, Scene], Recipe]
RECIPES: dict[str, Make] = {}
"""The last name of an event -> its recipe."""


def recipe(*names: str) -> Callable[[Make], Make]:
    """Register how events of these last names are made."""

    def register(make: Make) -> Make:
        RECIPES.update(dict.fromkeys(names, make))
        return make

    return register


@recipe("token")
def token(event: Event, scene: Scene) -> Recipe:
    """A row of the table for each id."""
    ids = scene.given[f"{scene.stack(event.name)}ids"]
    return Recipe("Embedding", STREAM, {"ids": ids, "table": scene.weight(f"{event.name}.weight")}, plain.looked_up)


@recipe("position")
def position(event: Event, scene: Scene) -> Recipe:
    """A row of the table of positions, or waves."""
    model, stack = scene.spec(event.name), scene.stack(event.name)
    spec = model.embedding.position
    where = Operand("input", f"{stack}position", scene.stands[stack].position)
    if isinstance(spec, Learned):
        table, offset = scene.weight(f"{event.name}.weight"), scene.number(spec.offset)
        return Recipe("Learned", STREAM, {"position": where, "table": table, "offset": offset}, row_of_position)
    numbers = {"spec": spec, "dim": model.dim, "dtype": event.tensor.dtype}
    return Recipe("Sinusoidal", STREAM, {"position": where} | numbered(scene, numbers), waves)


def row_of_position(position: Tensor, table: Tensor, offset: int) -> Tensor:
    """The row of each position."""
    return plain.looked_up(position + offset, table)


@recipe("segment")
def segment(event: Event, scene: Scene) -> Recipe:
    """A row of the table of segments."""
    ids = scene.given[f"{scene.stack(event.name)}segments"]
    return Recipe(
        "Embedding.segment", STREAM, {"ids": ids, "table": scene.weight(f"{event.name}.weight")}, plain.looked_up
    )


def sum_of_embeddings(event: Event, scene: Scene) -> Operands:
    """What is added up before the first block."""
    found = {"token": scene.step(f"{event.parent.removesuffix('.norm')}.token")}
    for name in ("position", "segment"):
        path = f"{event.parent.removesuffix('.norm')}.{name}"
        if scene.has(path):
            found[name] = scene.step(path)
    model = scene.spec(event.name)
    return found | numbered(scene, {"scale": model.dim**0.5 if model.embedding.scale else 1.0})


def summed(token: Tensor, scale: float, position: Tensor | None = None, segment: Tensor | None = None) -> Tensor:
    """scale * token + position + segment."""
    x = token * token.new_tensor(scale)
    x = x if position is None else x + position.to(x.dtype)
    return x if segment is None else x + segment


@recipe("embedded")
def embedded(event: Event, scene: Scene) -> Recipe:
    """The sum of token, position and segment, or its norm."""
    normed = f"{event.parent}.norm.norm"
    if scene.has(normed):
        return Recipe("step.embedded", STREAM, {"x": scene.step(normed)}, same)
    return Recipe("step.embedded", STREAM, sum_of_embeddings(event, scene), summed)


def same(x: Tensor) -> Tensor:
    """As it is."""
    return x


def numbered(scene: Scene, values: dict[str, Any]) -> Operands:
    """Numbers as operands."""
    return {name: scene.number(value) for name, value in values.items()}


def norm_operands(event: Event, scene: Scene, spec: Norm) -> Operands:
    """Weight, bias and epsilon of a norm, from its module's parameters and its spec."""
    weight = scene.weight(f"{event.parent}.weight")
    if isinstance(spec, RMSNorm):
        return {"weight": weight} | numbered(scene, {"centre": float(spec.centred), "eps": spec.eps})
    found = {"weight": weight, "bias": scene.weight(f"{event.parent}.bias")} | numbered(scene, {"eps": spec.eps})
    return found if isinstance(spec, LayerNorm) else found | numbered(scene, {"unbiased": spec.unbiased})


def normed(spec: Norm) -> Callable[..., Tensor]:
    """The arithmetic of a norm."""
    if isinstance(spec, RMSNorm):
        return plain.rms_norm
    return plain.layer_norm if isinstance(spec, LayerNorm) else plain.sigma_norm


def after(first: Callable[..., Tensor], names: set[str], norm: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The norm of what `first` makes of the operands of these names."""

    def both(**values: Any) -> Tensor:
        inner = {name: value for name, value in values.items() if name in names}
        return norm(first(**inner), **{name: value for name, value in values.items() if name not in names})

    return both


@recipe("norm")
def norm(event: Event, scene: Scene) -> Recipe:
    """A norm of an earlier step, or of a sum that has no name of its own."""
    spec, dims = spec_of_norm(event, scene)
    operands, again, kind = norm_operands(event, scene, spec), normed(spec), type(spec).__name__
    x = scene.known(event.given["x"])
    if x is not None:
        return Recipe(kind, dims, {"x": x} | operands, again)
    inner, first = NAMELESS[nameless(event.parent)](event, scene)
    return Recipe(kind, dims, inner | operands, after(first, set(inner), again))


def spec_of_norm(event: Event, scene: Scene) -> tuple[Norm, tuple[str, ...]]:
    """(the spec of the norm that was applied, the axes of its result)."""
    rest, model = scene.rest(event.parent), scene.spec(event.name)
    if rest.startswith("norms."):
        return scene.block(event.name).norm, STREAM
    if rest.startswith("norm"):
        return model.norm, STREAM  # type: ignore[return-value]
    if rest.startswith("embedding."):
        return model.embedding.norm, STREAM  # type: ignore[return-value]
    if rest.startswith("head."):
        return model.head.transform.norm, (*STREAM[: event.tensor.ndim - 1], "d")  # type: ignore[union-attr, return-value]
    spec = getattr(scene.block(event.name), rest.partition(".")[0]).qk_norm
    if rest.endswith("_norm.norm"):
        return spec.norm, ("B", "L", "h·d_k")
    return spec, ("B", "h", "L", "d_k")


def nameless(path: str) -> str:
    """Which sum is normed at a path."""
    last = path.rpartition(".")[2]
    if path.endswith("embedding.norm"):
        return "embedding"
    if ".norms." in path:
        return "stream"
    if "head.transform" in path:
        return "head"
    return "whole" if last == "norm" else "heads"


NAMELESS: dict[str, Callable[[Event, Scene], tuple[Operands, Callable[..., Tensor]]]] = {
    "embedding": lambda event, scene: (sum_of_embeddings(event, scene), summed),
}
"""What is normed -> (its operands, its arithmetic), where it has no name of its own."""
