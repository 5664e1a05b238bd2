"""`trace`: every step from tokens to logits, with what it was made of; checked by other arithmetic, and replayed.

ids: (batch, length).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from oneblock.bricks import EncoderDecoder, Transformer
from oneblock.explain.aliases import hint, ours_of
from oneblock.explain.cause import Stand, stand
from oneblock.explain.gradients import Gradients, gradients_of
from oneblock.explain.inputs import Inputs, Traced, asked
from oneblock.explain.memory import fits
from oneblock.explain.recipes import RECIPES, Recipe
from oneblock.explain.recipes_end import loss_again
from oneblock.explain.record import Edit, Event, record
from oneblock.explain.scene import Scene
from oneblock.explain.step import Operand, Step, difference
from oneblock.explain.watch import watched
from oneblock.spec import Seq2Seq, Spec
from oneblock.tree import TYPES


@dataclass(frozen=True, eq=False)
class Trace:
    """The steps of one forward pass, in order. `trace["layers.0.attention.pattern"]` is one of them, a glob several.

    `output` is what the model gave; `given` what it was given; `tokens` how the tokens of the first text read, for each
    stack ("", or "encoder." and "decoder."); `gradients` of the loss where they were asked for; `edited` names steps
    that someone replaced.
    """

    steps: tuple[Step, ...]
    output: Any
    spec: Spec | None
    given: Mapping[str, Operand] = field(repr=False)
    tokens: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    gradients: Gradients | None = None
    edited: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __repr__(self) -> str:
        """Short: its tensors are many."""
        ends = f": {self.steps[0].path} … {self.steps[-1].path}" if self.steps else ""
        return f"Trace({len(self.steps)} steps{ends})"

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, name: str) -> Any:
        """A step by its name or by TransformerLens's, the tuple of steps that a glob matches.

        Raises:
            KeyError: no such step; the nearest name is in the message.
        """
        if not isinstance(name, str):
            raise TypeError(f"trace: expected the name of a step, got {name!r:.40}; trace.steps has them by number")
        known = {step.path: step for step in self.steps}
        ours = ours_of(name, known)
        if ours in known:
            return known[ours]
        found = tuple(step for path, step in known.items() if fnmatchcase(path, ours))
        if not found:
            raise KeyError(f"trace: no step {name!r:.80}; {hint(ours, known)}")
        return found

    def check(self) -> dict[str, float]:
        """For each step the largest relative difference to itself recomputed from its recorded operands."""
        return {step.path: step.error() for step in self.steps if step.path not in self.edited}

    def replay(self) -> Tensor:
        """The last step anew from the input alone: each step from the recomputed ones before it."""
        made: dict[str, Tensor] = {}
        for step in self.steps:
            earlier = {name: made[x.path] for name, x in step.operands.items() if x.source == "step"}
            made[step.path] = step.tensor if step.path in self.edited else step.recomputed(earlier)
        return made[self.steps[-1].path]

    def ratios(self) -> dict[str, float]:
        """For each addition to the stream ||f(x)|| / ||x||: how much a sublayer adds to what is there."""
        found = {}
        for step in self.steps:
            parts = {name: operand.value for name, operand in step.operands.items()}
            if step.kind == "step.stream" and {"x", "branch_scale"} <= set(parts):
                branch = parts["branch"] if "branch" in parts else parts["attention"] + parts["feedforward"]
                found[step.path] = (parts["branch_scale"] * branch.norm() / parts["x"].norm()).item()
        return found

    def replayed(self) -> float:
        """The largest relative difference between the last step and its replay."""
        return difference(self.steps[-1].tensor, self.replay())


def trace(
    model: Traced,
    inputs: Inputs,
    target: str | Tensor | Sequence[int] | None = None,
    *,
    gradients: bool = False,
    edit: Mapping[str, Edit] | None = None,
) -> Trace:
    """Every step of a forward pass from tokens to logits (and loss), in eval mode.

    Args:
        model: a model of ours, or a `Pipeline` or `Translator`, which read texts. Of any other module the steps are
            torch's operations, with products, softmaxes, norms, activations marked; `adopt` makes more of some.
        inputs: a text, ids (length,) or (batch, length), or a dict of what the model's forward takes; of another module
            what it is called with, a tensor or a tuple.
        target: what should come out, for the loss. A causal model takes the input's ids again (the shift is its own);
            an encoder-decoder ids or a text, by default what it writes itself.
        gradients: also d loss / d step for every step, and the norm of each brick's gradient; needs a loss.
        edit: glob of step names -> function of the tensor: patching, ablation, steering.

    Raises:
        ValueError: a text without a tokenizer, an encoder-decoder without a target, gradients without a target, an
            edit of no step or to another shape, a trace that would not fit into memory.

    >>> import torch
    >>> from oneblock import build, named
    >>> model = build(named("gpt2", dim=8, depth=1, heads=2, vocab=9)).eval()
    >>> t = trace(model, [1, 2, 3])
    >>> t["layers.0.attention.pattern"].shape, max(t.check().values()) < 1e-6
    ((1, 2, 3, 3), True)
    """
    if isinstance(model, nn.Module) and not isinstance(model, Transformer | EncoderDecoder):
        return foreign(model, inputs)
    what = asked(model, inputs, target)
    fits(what.model, what.call, gradients)
    if gradients and "labels" not in what.call:
        raise ValueError("gradients: expected a target to compute a loss from, got none; give target=")
    events, output = record(what.model, what.call, edit, gradients)
    stands, given = before(what.model, what.call)
    scene, steps = Scene(what.model, events, stands, given), []
    for event in events:
        if event.last not in RECIPES:
            raise ValueError(f"trace: no recipe for {event.name}")
        steps.append(step(event, RECIPES[event.last](event, scene), what.model))
        scene.reach(event)
    steps += last(what.model, what.call, output, scene)
    found = gradients_of(what.model, steps) if gradients else None
    edited = frozenset(step.path for step in steps for glob in edit or {} if fnmatchcase(step.path, glob))
    spec: Any = what.model.spec
    return Trace(tuple(steps), output, spec, given, what.tokens, found, edited)


def foreign(module: nn.Module, inputs: Any) -> Trace:
    """The trace of anyone's module: its torch operations, in order."""
    call = inputs if isinstance(inputs, Mapping) else {}
    given = () if call else inputs if isinstance(inputs, tuple) else (inputs,)
    steps, output = watched(module, call, given)
    return Trace(tuple(steps), output, None, {})


def step(event: Event, made: Recipe, model: nn.Module) -> Step:
    """What an event and its recipe tell."""
    brick = made.kind if made.kind in TYPES else brick_of(model, event.parent)
    return Step(event.name, made.kind, brick, made.dims, event.tensor, made.operands, made.again, source(event.module))


def brick_of(model: nn.Module, path: str) -> str:
    """The type of the spec that a module is made from, or the nearest one around it."""
    module = model.get_submodule(path)
    spec = getattr(module, "spec", None)
    name = type(module).__name__ if spec is None else type(spec).__name__
    name = re.sub("Brick$|^Serial|^Parallel", "", name)
    return name if name in TYPES or not path else brick_of(model, path.rpartition(".")[0])


def source(module: nn.Module) -> str:
    """File and line where a module's forward is written."""
    code = inspect.unwrap(type(module).forward).__code__
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}"


def before(model: nn.Module, call: Mapping[str, Any]) -> tuple[dict[str, Stand], dict[str, Operand]]:
    """(where the tokens of each stack stand, what was given), worked out from the call alone."""
    spec: Any = model.spec
    stands, given = {}, {}
    sides = [("", spec, "")] if not isinstance(spec, Seq2Seq) else [
        ("encoder.", spec.encoder, ""), ("decoder.", spec.decoder, "decoder_"),
    ]  # fmt: skip
    for stack, part, prefix in sides:
        ids = call[f"{prefix}input_ids"]
        mask, position = call.get(f"{prefix}attention_mask"), call.get(f"{prefix}position_ids")
        stands[stack] = stand(ids, mask, position, part.counted)
        segments = call.get(f"{prefix}token_type_ids")
        given[f"{stack}ids"] = Operand("input", f"{prefix}input_ids", ids)
        given[f"{stack}segments"] = Operand(
            "input", f"{prefix}token_type_ids", torch.zeros_like(stands[stack].index) if segments is None else segments
        )
    return stands, given


def last(model: nn.Module, call: Mapping[str, Any], output: Any, scene: Scene) -> list[Step]:
    """The loss, where labels were given to a head for tokens."""
    labels = call.get("labels")
    if labels is None or output.loss is None or output.logits is None or output.logits.ndim != 3:
        return []
    shift = bool(getattr(model, "causal", False))
    stack = "decoder." if isinstance(model.spec, Seq2Seq) else ""
    operands = {"logits": scene.step(f"{stack}head.logits"), "labels": Operand("input", "labels", labels)}
    operands |= {"shift": scene.number(shift), "real": Operand("input", "", scene.stands[stack].real)}
    return [Step("loss", "step.loss", type(model.spec).__name__, (), output.loss, operands, loss_again, source(model))]
