"""Edits: put 0, a mean, or another text's numbers in the place of steps. `trace` and `listen` carry them out.

An edit is a function of a step's tensor, by the step's name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

import torch
from torch import Tensor

from oneblock.explain.aliases import hint
from oneblock.explain.attention import real
from oneblock.explain.record import ENDS, Edit
from oneblock.explain.step import Step
from oneblock.explain.trace import Trace
from oneblock.spec import Seq2Seq

Edits = dict[str, Edit]
INNER = {"q": "query", "k": "key", "v": "value", "up": "hidden", "gate": "hidden", "dense": "", "segment": "embedded"}
"""Last names of steps that are seen but have no tap, so that nothing can be put there; and the step after them."""


def zero(trace: Trace, *names: str, heads: Sequence[int] | None = None, at: Sequence[int] | None = None) -> Edits:
    """Edits that put 0 in the place of steps.

    Args:
        trace: of the model, so that names can be checked.
        names: of steps, or globs of them, as `trace[...]` takes them.
        heads: of steps that have heads, only these.
        at: only these tokens, counted from 0.

    Raises:
        ValueError: a name that matches no step, or one that cannot be replaced; heads or tokens that are not there.

    >>> import oneblock
    >>> model = oneblock.build(oneblock.named("gpt2", dim=8, depth=1, heads=2, vocab=9)).eval()
    >>> t = oneblock.trace(model, [1, 2, 3])
    >>> edited = oneblock.trace(model, [1, 2, 3], edit=zero(t, "layers.0.attention.z", heads=[1]))
    >>> edited["layers.0.attention.z"].tensor.abs().sum((0, 2, 3)).bool().tolist()
    [True, False]
    """
    return _edits(trace, names, lambda _: torch.zeros_like, heads, at)


def mean(
    trace: Trace,
    *names: str,
    reference: Trace | None = None,
    heads: Sequence[int] | None = None,
    at: Sequence[int] | None = None,
) -> Edits:
    """Edits that put a mean in the place of steps: over all real tokens of a reference, by default this trace.

    Arguments and errors as `zero`. ValueError also for attention weights and scores, whose rows have no mean.
    """
    source = reference or trace
    known = {step.path: step for step in source}

    def made(step: Step) -> Edit:
        if step.path not in known:
            raise ValueError(f"mean: expected a step {step.path} in the reference, got none; trace the same model")
        instead = _mean(source, known[step.path])
        return lambda x: instead.to(x).expand_as(x)

    return _edits(trace, names, made, heads, at)


def patch(source: Trace, *names: str, heads: Sequence[int] | None = None, at: Sequence[int] | None = None) -> Edits:
    """Edits that put what steps were in another trace in their place: activation patching.

    Vig et al. 2020 (arXiv:2004.12265); Meng et al. 2022 (arXiv:2202.05262). The text that is edited must be of the same
    length. Arguments and errors as `zero`.
    """

    def made(step: Step) -> Edit:
        def same(x: Tensor) -> Tensor:
            if x.shape != step.tensor.shape:
                raise ValueError(
                    f"patch: {step.path} has the shape {tuple(x.shape)} here and {step.shape} in the trace"
                )
            return step.tensor.to(x)

        return same

    return _edits(source, names, made, heads, at)


def matching(trace: Trace, names: Sequence[str]) -> list[Step]:
    """The steps that names or globs speak of. ValueError: none, or one that cannot be replaced."""
    if not names:
        raise ValueError("edit: expected the name of a step, got none")
    known, found = {step.path: step for step in trace}, []
    for name in names:
        matched = [known[name]] if name in known else [step for path, step in known.items() if fnmatchcase(path, name)]
        if not matched:
            raise ValueError(f"edit: no step {name!r:.80}; {hint(name, known)}")
        for step in matched:
            last = step.path.rpartition(".")[2]
            if last in INNER or step.path.endswith("head.out") or step.kind == "step.loss":
                instead = INNER.get(last) or "what comes of it"
                raise ValueError(f"edit: {step.path} is seen but cannot be replaced; replace {instead}")
        found += matched
    return found


def length(step: Step) -> int:
    """How many tokens a step speaks of."""
    return next((size for dim, size in zip(step.dims, step.shape, strict=True) if dim.startswith("L")), 1)


def _edits(
    trace: Trace,
    names: Sequence[str],
    made: Callable[[Step], Edit],
    heads: Sequence[int] | None,
    at: Sequence[int] | None,
) -> Edits:
    """An edit for each step that the names match, under the name that its tap has."""
    taps = {ours: tapped for tapped, ours in ENDS.items()} if isinstance(trace.spec, Seq2Seq) else {}
    steps = matching(trace, names)
    return {taps.get(step.path, step.path): _partly(step, made(step), heads, at) for step in steps}


def _partly(step: Step, instead: Edit, heads: Sequence[int] | None, at: Sequence[int] | None) -> Edit:
    """The edit at some heads and tokens only. ValueError: places that the step does not have."""
    axes = {"heads": ("h", "h_kv"), "at": ("L", "L_q", "L_k")}
    places: list[tuple[int, list[int]]] = []
    for name, chosen in (("heads", heads), ("at", at)):
        if chosen is None:
            continue
        axis = next((i for i, dim in enumerate(step.dims) if dim in axes[name]), None)
        if axis is None:
            raise ValueError(f"{name}: {step.path} has the axes {', '.join(step.dims)}, none for {name}")
        if wrong := [one for one in chosen if not 0 <= one < step.shape[axis]]:
            raise ValueError(f"{name}: expected 0 to {step.shape[axis] - 1} of {step.path}, got {wrong[0]}")
        places.append((axis, list(chosen)))

    def edit(x: Tensor) -> Tensor:
        keep = torch.zeros(1, dtype=torch.bool, device=x.device)
        for axis, chosen in places:
            other = torch.ones(x.shape[axis], dtype=torch.bool, device=x.device)
            other[chosen] = False
            keep = keep | other.reshape(-1, *[1] * (x.ndim - axis - 1))
        return torch.where(keep, x, instead(x))

    return edit


def _mean(source: Trace, step: Step) -> Tensor:
    """The mean over the real tokens of all texts, with axes of 1 for batch and length."""
    axes = [axis for axis, dim in enumerate(step.dims) if dim.startswith("L")]
    if len(axes) != 1:
        raise ValueError(f"mean: {step.path} has no mean over tokens; replace z or out, or use zero")
    axis, first = axes[0], step.path.partition(".")[0]
    lent = ".cross." in step.path and step.path.endswith((".key", ".value"))
    stack = "" if first not in ("encoder", "decoder") else "encoder." if lent else f"{first}."
    kept = real(source, stack, step.shape[axis]).expand(step.shape[0], -1).to(step.tensor.device)  # (batch, length)
    kept = kept.reshape(len(kept), *[1] * (axis - 1), -1, *[1] * (step.tensor.ndim - axis - 1))
    return (step.tensor * kept).sum((0, axis), keepdim=True) / kept.sum().clamp(min=1)
