"""A trace becomes an exercise: the steps of one block in sections, with their numbers at one token and head.

x: (batch, length, dim); pattern: (batch, heads, query, key).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

import oneblock.explain.worked.lines  # noqa: F401 - it registers the arithmetic of its steps
from oneblock.draw.describe import formula as formula_of
from oneblock.draw.describe import kind as kind_of
from oneblock.explain.lens import Name, candidates, lens
from oneblock.explain.step import Step
from oneblock.explain.trace import Trace
from oneblock.explain.worked.choose import attentions, head_of, layers, stacks, tokens
from oneblock.explain.worked.form import Addition, Chosen, Every, Exercise, Part, Section, Shown
from oneblock.explain.worked.lines_attention import softmax
from oneblock.explain.worked.maps import maps, overview
from oneblock.explain.worked.place import FIRST, WORK, At, floats
from oneblock.explain.worked.wording import letter, written
from oneblock.spec import Model, Spec, dims
from oneblock.words import say


def exercise(
    trace: Trace,
    layer: int = 0,
    head: int = 0,
    token: int | str | None = None,
    *,
    text: str = "",
    model: str = "",
    random: bool = False,
    name: Name = str,
    top: int = 5,
    only: str = "",
) -> Exercise:
    """A trace of a model of ours as a worked exercise.

    Args:
        layer: the block that is shown, of each stack. head: whose matrices are worked by hand.
        token: the row that is worked by hand, by place or by how it reads; by default one that shows much.
        text, model: what they are called. random: whether the weights have learnt nothing.
        name: how a token id reads. top: candidates of each position.
        only: a step, or a glob of steps of any block, that alone is shown.

    Raises:
        ValueError: a trace of a foreign module; a layer, head or token beyond what there is; no step of that name.

    >>> import oneblock
    >>> made = oneblock.build(oneblock.named("gpt2", dim=8, depth=1, heads=2, vocab=9)).eval()
    >>> found = exercise(oneblock.trace(made, [1, 2, 3]))
    >>> [section.path for section in found.sections][:2]
    ['embedding', 'layers.0.attention']
    """
    if trace.spec is None:
        raise ValueError("exercise: expected a trace of a model of ours, got one of another module; `adopt` it first")
    spec = trace.spec
    shown = layers(spec, layer)
    chosen = Chosen(layer, head_of(attentions(spec, shown), head), tokens(trace, spec, token))
    found = candidates(trace, name, top)
    place = At(trace, trace.steps[0], 0, chosen.token, head, looked_at(trace, chosen), said(found, chosen))
    parts = sections(place, spec, shown, asked(trace, only))
    loss = trace.steps[-1].tensor.item() if trace.steps[-1].kind == "step.loss" else None
    return Exercise(
        model, text, spec, random, chosen, sizes(spec, shown, trace.tokens), dict(trace.tokens),
        () if found is None else tuple("" if one is None else one.token for one in found.answers),
        parts, additions(place), overview(trace, {part.maps.path for part in parts if part.maps}), found,
        lens(trace, name), loss, tuple(Every(s.path, s.kind, s.dims, s.shape, s.statistics) for s in trace), not only,
    )  # fmt: skip


def asked(trace: Trace, only: str) -> set[str]:
    """The paths of the steps that alone are shown; none: all of the block."""
    if not only:
        return set()
    try:
        found = trace[only]
    except KeyError as error:
        raise ValueError(str(error.args[0]).replace("trace:", "step:", 1)) from None
    return {step.path for step in (found if isinstance(found, tuple) else (found,))}


def looked_at(trace: Trace, chosen: Chosen) -> dict[str, int]:
    """For each attention the key that the chosen token looks at most, with the chosen head or the last there is."""
    found = {}
    for step in trace:
        if step.kind == "step.pattern":
            stack = stack_of(step.path)
            row = step.tensor[0, min(chosen.head, step.shape[1] - 1), chosen.token[stack]]
            found[step.path.removesuffix(".pattern")] = int(row.argmax())
    return found


def said(found: object, chosen: Chosen) -> int:
    """The id of what the model says at the chosen token of the stack that speaks."""
    best = getattr(found, "best", ())
    if not best:
        return 0
    place = chosen.token.get("decoder.", chosen.token.get("", 0))
    return int(best[min(place, len(best) - 1)][0].id)


def sections(place: At, spec: Spec, shown: Mapping[str, int], only: set[str]) -> tuple[Section, ...]:
    """The shown steps, grouped by the sublayer they belong to and numbered."""
    groups: dict[str, list[Step]] = {}
    last = ""
    for step in place.trace:
        last = home(step.path, last)
        if step.path in only or (not only and there(last, shown)):
            groups.setdefault(last, []).append(step)
    numbers = {step.path: number for number, step in enumerate((s for g in groups.values() for s in g), 1)}
    return tuple(section(place, spec, path, steps, numbers) for path, steps in groups.items())


def stack_of(path: str) -> str:
    """The stack that a path is in: "", "encoder." or "decoder."."""
    return next((stack for stack in ("encoder.", "decoder.") if path.startswith(stack)), "")


def home(path: str, last: str) -> str:
    """The path of the section that a step belongs to; a sum belongs to the `last` one."""
    stack = stack_of(path)
    rest = path.removeprefix(stack)
    first = rest.partition(".")[0]
    if first != "layers":
        return stack + ("end" if first.partition("#")[0] in ("norm", "final") else first)
    block, inner = ".".join(rest.split(".")[:2]), rest.split(".", 2)[2].removeprefix("norms.")
    for name in ("attention", "cross", "feedforward"):
        if inner.startswith(name):
            return f"{stack}{block}.{name}"
    return last


def there(path: str, shown: Mapping[str, int]) -> bool:
    """Whether a section is outside all blocks or in the one that is shown."""
    stack = stack_of(path)
    rest = path.removeprefix(stack)
    return not rest.startswith("layers.") or int(rest.split(".")[1]) == shown[stack]


def section(place: At, spec: Spec, path: str, steps: Sequence[Step], numbers: Mapping[str, int]) -> Section:
    """One section."""
    stack = stack_of(path)
    model: Any = stacks(spec).get(stack)
    last, layer, wiring = path.rpartition(".")[2], None, ""
    kind = {"end": "step.final", "loss": "step.loss"}.get(last, "")
    formula = say(kind).formula if kind else ""
    if not kind:
        parent = model
        if ".layers." in f".{path}":
            layer = int(path.removeprefix(f"{stack}layers.").partition(".")[0])
            parent, wiring = model.layers[layer], model.layers[layer].wiring
        brick = getattr(parent, last)
        kind, formula = kind_of(brick, last == "cross"), formula_of(brick, model.dim, last == "cross")
    found = tuple(one(place.on(step), numbers) for step in steps)
    inner = next((step for step in steps if step.kind == "step.pattern"), None)
    shown = None if inner is None else maps(place.on(inner), kind)
    return Section(path, stack, kind, formula, layer, wiring, found, shown)


def one(at: At, numbers: Mapping[str, int]) -> Shown:
    """One step."""
    step = at.step
    index, here = (None, None) if not step.dims else (at.index(step.dims, step.tensor), at.here())
    lined = step.kind in WORK and (index is not None or step.kind in ("step.loss", "step.logits"))
    batched = step.dims[:1] == ("B",)
    return Shown(
        numbers[step.path], step.path, step.kind, step.dims[batched:], step.shape[batched:], parts(step, numbers),
        step.statistics, index or (), () if here is None else floats(here, FIRST), 0 if here is None else len(here),
        tuple(WORK[step.kind](at)) if lined else (),
        softmax(at, at.head, at.token[at.stack]) if step.kind == "step.pattern" else None, written(step),
    )  # fmt: skip


def parts(step: Step, numbers: Mapping[str, int]) -> tuple[Part, ...]:
    """What a step was made from, as far as it has a shape."""
    found = []
    for name, operand in step.operands.items():
        if not isinstance(operand.value, Tensor) or (name == "real" and not operand.path):
            continue
        turned = operand.source == "weight" and name in ("weight", "up", "gate", "down") and operand.value.ndim > 1
        shape = operand.shape
        sides = (*shape[:-2], shape[-1], shape[-2]) if turned else shape
        number = numbers.get(operand.path)
        found.append(Part(letter(step, name), operand.source, operand.path, sides, shape if turned else (), number))
    return tuple(found)


def additions(place: At) -> dict[str, tuple[Addition, ...]]:
    """For each stack the norm of the stream at the chosen token, from the embedding on after each addition."""
    found: dict[str, list[Addition]] = {stack: [] for stack in place.trace.tokens}
    for step in place.trace:
        at = place.on(step)
        if step.kind == "step.embedded" or "branch_scale" in step.operands:
            x = step.tensor[0, at.token[at.stack]].double().norm().item()
            found[at.stack].append(addition(at, x))
    return {stack: tuple(rows) for stack, rows in found.items()}


def addition(at: At, after: float) -> Addition:
    """One addition; the embedding is added to nothing."""
    if at.step.kind == "step.embedded":
        return Addition(at.step.path, 0.0, after, None, after)
    token = at.token[at.stack]
    names = ("branch",) if at.has("branch") else ("attention", "feedforward")
    branch = torch.stack([at.value(name)[0, token].double() for name in names]).sum(0).norm().item()
    before, added = at.value("x")[0, token].double().norm().item(), branch * at.value("branch_scale")
    return Addition(at.step.path, before, added, added / before if before else None, after)


def sizes(spec: Spec, shown: Mapping[str, int], read: Mapping[str, Sequence[str]]) -> tuple[tuple[str, int], ...]:
    """Letters and what they stand for in this model."""
    whole = stacks(spec)
    model: Model = whole.get("decoder.", next(iter(whole.values())))
    found = [("d", model.dim)]
    for stack, one_of in whole.items():
        found.append((f"N{MARKS[stack]}", len(one_of.layers)))
        found.append((f"L{MARKS[stack]}", len(read.get(stack, ()))))
    block = model.layers[shown.get("decoder.", shown.get("", 0))] if model.layers else None
    if block is not None and block.attention is not None:
        kv_heads, head_dim, value_dim = dims(block.attention, model.dim)
        found += [("h", block.attention.heads), ("h_kv", kv_heads), ("d_k", head_dim), ("d_v", value_dim)]
    feedforward = getattr(block, "feedforward", None)
    if feedforward is not None:
        found.append(("d_ff", getattr(feedforward, "hidden", 0) or feedforward.expert.hidden))
    return (*found, ("V", model.embedding.vocab))


MARKS = {"": "", "encoder.": "_enc", "decoder.": "_dec"}
"""What is behind a letter that each stack has for itself."""
