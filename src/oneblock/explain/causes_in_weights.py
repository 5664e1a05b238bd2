"""What may be wrong with the weights of a brick: guesses that move numbers to where they may belong.

weight: (outputs, inputs) of a linear layer, (rows, dim) of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from oneblock.explain.guess import Guess, Guesses, Make, Makes, Parting, about, scopes
from oneblock.explain.variant import FEW, Variant, differs
from oneblock.spec import Rope, dims

Change = Callable[[Mapping[str, Tensor], str], dict[str, Tensor]]
"""(tensors, path of a linear layer) -> what is changed there."""
FAMILY = {"q": "kv", "k": "qv", "v": "qk"}
"""Projections that may be taken for one another."""


def layer_of(parting: Parting) -> str | None:
    """The path of the linear layer whose product the step is."""
    operand = parting.step.operands.get("weight")
    if operand is None or operand.source != "weight" or operand.value is None:
        return None
    return operand.path.rpartition(".")[0]


def changed(path: str, change: Change) -> Makes:
    """The change at a path, on ever fewer layers: wherever it can be made."""

    def at(glob: str) -> Make:
        def make(variant: Variant) -> Variant:
            new: dict[str, Tensor] = {}
            for found in like(variant.tensors, glob):
                new |= change(variant.tensors, found)
            return variant.with_tensors(new)

        return make

    return tuple((glob, at(glob)) for glob in scopes(path))


def like(tensors: Mapping[str, Tensor], glob: str) -> Iterator[str]:
    """Paths of linear layers that are the same but for stack and layer."""
    words = glob.split(".")
    for name in tensors:
        path, _, last = name.rpartition(".")
        there = path.split(".")
        alike = len(there) == len(words) and all(w in ("*", other) for w, other in zip(words, there, strict=True))
        if last == "weight" and alike:
            yield path


def giving(new: Mapping[str, Tensor]) -> Make:
    """The change that puts other numbers under some names."""
    return lambda variant: variant.with_tensors(new)


def both(tensors: Mapping[str, Tensor], path: str) -> dict[str, Tensor]:
    """The weight and the bias at a path, of those there are."""
    return {name: tensors[f"{path}.{name}"] for name in ("weight", "bias") if f"{path}.{name}" in tensors}


def put(path: str, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weight and bias under their full names."""
    return {f"{path}.{name}": x for name, x in values.items()}


@about("q", "k", "v", "out", "up", "gate", "dense", "router")
def transposed(parting: Parting) -> Guesses:
    """A square matrix that is stored the other way."""
    path = layer_of(parting)
    weight = parting.mine.tensors.get(f"{path}.weight")
    if path is None or weight is None or weight.shape[0] != weight.shape[1]:
        return

    def turn(tensors: Mapping[str, Tensor], at: str) -> dict[str, Tensor]:
        return {f"{at}.weight": tensors[f"{at}.weight"].mT}

    def all_square(variant: Variant) -> Variant:
        square = [n for n, x in variant.tensors.items() if n.endswith(".weight") and x.ndim == 2 and "layers." in n]
        turned = {n: variant.tensors[n].mT for n in square if variant.tensors[n].shape == variant.tensors[n].mT.shape}
        return variant.with_tensors(turned)

    yield Guess("transposed", "W", "Wᵀ", (*changed(path, turn), ("layers.*", all_square)), {"weight": weight.mT})


@about("q", "k", "v", "up", "gate")
def exchanged(parting: Parting) -> Guesses:
    """Two matrices of a sublayer that changed places: gate and up, two of query, key and value."""
    path = layer_of(parting)
    if path is None:
        return
    owner, _, last = path.rpartition(".")
    for other in {"gate": ("up",), "up": ("gate",)}.get(last, tuple(FAMILY.get(last, ""))):
        mine, there = (both(parting.mine.tensors, f"{owner}.{name}") for name in (last, other))
        if there.keys() != mine.keys() or there["weight"].shape != mine["weight"].shape:
            continue

        def swap(tensors: Mapping[str, Tensor], at: str, other: str = other) -> dict[str, Tensor]:
            beside = f"{at.rpartition('.')[0]}.{other}"
            return put(at, both(tensors, beside)) | put(beside, both(tensors, at))

        kind = "gate and up" if "gate" in (last, other) else "exchanged"
        yield Guess(kind, f"{last}, {other}", f"{other}, {last}", changed(path, swap), there)


@about("q", "k", "v", "up", "gate", "out", "norm")
def misplaced(parting: Parting) -> Guesses:
    """Layers whose numbers lie in each other's place."""
    path = layer_of(parting)
    words = (path or "").split(".")
    if path is None or "layers" not in words:
        return
    at = words.index("layers") + 1
    for other in range(len(parting.model.layers)):
        beside = ".".join([*words[:at], str(other), *words[at + 1 :]])
        there = both(parting.mine.tensors, beside)
        if other == int(words[at]) or not there:
            continue
        here, away = (".".join([*words[:at], number, ""]) for number in (words[at], str(other)))

        def swap(variant: Variant, here: str = here, away: str = away) -> Variant:
            names = [name for name in variant.tensors if name.startswith((here, away))]
            new = {}
            for name in names:
                source = away + name[len(here) :] if name.startswith(here) else here + name[len(away) :]
                new[name] = variant.tensors[source]
            return variant.with_tensors(new)

        yield Guess("layers", f"{words[at]}, {other}", f"{other}, {words[at]}", ((f"{here}*, {away}*", swap),), there)


@about("q", "k")
def rows_of_rotary(parting: Parting) -> Guesses:
    """Rows of query and key in the order of the other rotary layout."""
    path = layer_of(parting)
    spec = parting.attention() if path is not None else None
    if path is None or spec is None or not isinstance(spec.position, Rope):
        return
    width = dims(spec, parting.model.dim)[1]
    turned = 2 * round(width * spec.position.fraction / 2)
    pairs = torch.arange(turned).reshape(2, -1).T.flatten()  # 0, n/2, 1, n/2 + 1, ...: halves become neighbours
    for order, said in ((pairs, "half → interleaved"), (pairs.argsort(), "interleaved → half")):
        whole = torch.cat([order, torch.arange(turned, width)])

        def permute(tensors: Mapping[str, Tensor], at: str, whole: Tensor = whole) -> dict[str, Tensor]:
            new: dict[str, Tensor] = {}
            for name in ("q", "k"):
                beside = f"{at.rpartition('.')[0]}.{name}"
                new |= put(beside, {key: reordered(x, whole) for key, x in both(tensors, beside).items()})
            return new

        values = {key: reordered(x, whole) for key, x in both(parting.mine.tensors, path).items()}
        before, _, after = said.partition(" → ")
        yield Guess("rotary layout", f"q, k {before}", f"q, k {after}", changed(path, permute), values)


def reordered(x: Tensor, order: Tensor) -> Tensor:
    """The rows of each head in another order: x (heads * width, ...)."""
    return x.reshape(-1, len(order), *x.shape[1:])[:, order.to(x.device)].flatten(0, 1)


@about("q", "k", "v", "out", "up", "gate", "dense", "norm", "logits")
def biases(parting: Parting) -> Guesses:
    """A bias that was left out."""
    path = layer_of(parting)
    if path is None or parting.value("bias") is None:
        return

    def none(tensors: Mapping[str, Tensor], at: str) -> dict[str, Tensor]:
        return {f"{at}.bias": torch.zeros_like(tensors[f"{at}.bias"])} if f"{at}.bias" in tensors else {}

    def beside(tensors: Mapping[str, Tensor], at: str) -> dict[str, Tensor]:
        owner = at.rpartition(".")[0]
        return {k: v for name in "qkv" for k, v in none(tensors, f"{owner}.{name}").items()}

    makes = changed(path, none)
    if path[-2:] in (".q", ".k", ".v"):
        makes = (*((f"{where.rpartition('.')[0]}.[qkv]", make) for where, make in changed(path, beside)), *makes)
    yield Guess("bias", "b", "0", makes, {"bias": None})


@about("q", "k", "v", "out", "up", "gate", "token", "norm", "router")
def sized(parting: Parting) -> Guesses:
    """Numbers that were multiplied by a factor, or a norm's weight that had 1 added to it."""
    name, mine, other = numbers(parting)
    if name is None or mine is None or other is None or mine.shape != other.shape or torch.equal(mine, other):
        return
    path, key = name.rpartition(".")[0], "table" if "table" in parting.step.operands else "weight"
    for step in (1.0, -1.0) if parting.last == "norm" else ():

        def more(tensors: Mapping[str, Tensor], at: str, step: float = step) -> dict[str, Tensor]:
            return {f"{at}.weight": tensors[f"{at}.weight"] + step}

        yield Guess("centred", "w", "w + 1" if step > 0 else "w − 1", changed(path, more), {key: mine + step})
    few, those = mine.flatten()[:FEW], other.flatten()[:FEW]
    factor = ((few * those).sum() / few.square().sum().clamp(min=1e-300)).item()
    if not differs(factor * few, those) and not differs(factor * mine, other):

        def grow(tensors: Mapping[str, Tensor], at: str) -> dict[str, Tensor]:
            return put(at, {k: factor * x for k, x in both(tensors, at).items()})

        grown = {k: factor * x for k, x in both(parting.mine.tensors, path).items()}
        values = {key: grown["weight"]} | {k: x for k, x in grown.items() if k == "bias"}
        yield Guess("factor", "W", f"{factor:.6g} · W", changed(path, grow), values)


@about("token", "position")
def shifted(parting: Parting) -> Guesses:
    """A table whose rows stand some places off."""
    name, mine, _ = numbers(parting)
    if name is None or mine is None:
        return
    for shift in (1, 2, -1, -2):
        moved = mine.roll(-shift, 0)
        kind = "position offset" if parting.last == "position" else "rows"
        yield Guess(kind, "0", f"{shift:+d}", ((name, giving({name: moved})),), {"table": moved})


@about("*")
def others(parting: Parting) -> Guesses:
    """The other model's numbers, of this brick alone: it is they that differ."""
    operands = {
        name: operand.path
        for name, operand in parting.step.operands.items()
        if operand.source == "weight" and operand.value is not None
    }
    mine, lent = parting.mine.tensors, parting.theirs.tensors
    if not operands or any(path not in mine or path not in lent for path in operands.values()):
        return
    new = {path: lent[path] for path in operands.values() if not torch.equal(lent[path], mine[path])}
    where = ", ".join(dict.fromkeys(path.rpartition(".")[0] for path in new))
    yield Guess("weights", "", "", ((where, giving(new)),), {name: lent[path] for name, path in operands.items()})


@about("hidden")
def exchanged_of_experts(parting: Parting) -> Guesses:
    """Gates and up projections of all experts that changed places."""
    gate, up = (parting.step.operands.get(name) for name in ("gate", "up"))
    if gate is None or up is None or gate.source != "weight":
        return

    def swap(tensors: Mapping[str, Tensor], at: str) -> dict[str, Tensor]:
        beside = f"{at.rpartition('.')[0]}.up"
        return put(at, both(tensors, beside)) | put(beside, both(tensors, at))

    makes = changed(gate.path.rpartition(".")[0], swap)
    yield Guess("gate and up", "gate, up", "up, gate", makes, {"gate": up.value, "up": gate.value})


def numbers(parting: Parting) -> tuple[str | None, Tensor | None, Tensor | None]:
    """(the full name of the step's weight or table, its numbers in both models)."""
    for key in ("weight", "table"):
        operand = parting.step.operands.get(key)
        if operand is not None and operand.source == "weight" and operand.value is not None:
            return operand.path, parting.mine.tensors.get(operand.path), parting.theirs.tensors.get(operand.path)
    return None, None, None
