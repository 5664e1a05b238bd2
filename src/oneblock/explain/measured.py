"""What a model costs when it runs: for every brick, FLOPs predicted and counted, bytes kept, time bound and measured.

The model is built with random weights; times are of forward passes, a brick's without those of bricks inside it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import torch
from torch import nn

from oneblock.bricks import build_model
from oneblock.cost import Cost, Line, Machine, bound, cost
from oneblock.explain.counted import flops, forward, on_meta
from oneblock.explain.kept import kept
from oneblock.explain.probe import memory
from oneblock.spec import Seq2Seq

APART = 1.5
"""Bricks whose predicted times differ by less than this factor are not ordered."""


@dataclass(frozen=True)
class Measured:
    """One brick, all its copies together. `kept` are bytes, only of training; seconds are of one forward pass."""

    path: str
    brick: Any
    times: int
    flops: tuple[int, int]
    kept: tuple[int, int]
    seconds: tuple[float, float]
    """(predicted, counted or measured), each."""


def measured(found: Cost, machine: Machine, rounds: int = 5) -> tuple[Measured, ...]:
    """Run what a cost prices, and set what was predicted beside it, in the order of a forward pass.

    Raises ValueError where the model does not fit into this machine's memory.

    >>> from oneblock.cost import machine
    >>> from oneblock.zoo import named
    >>> spec = named("vaswani", dim=16, depth=1, heads=2, hidden=32, vocab=50)
    >>> rows = measured(cost(spec, length=12, dtype="float32"), machine("cpu-2-cores"), rounds=1)
    >>> all(one.flops[0] == one.flops[1] for one in rows)
    True
    """
    room = memory("cpu")
    if room and found.memory > 0.8 * room:
        raise ValueError(f"--measure: expected at most {0.8 * room:,.0f} bytes to be held, got {found.memory:,}")
    job, lines = found.job, [line for line in found.lines if line.terms]
    paths = {line.path: of(line) for line in lines}
    counts = counted(found, paths)
    model = build_model(found.spec).to(getattr(torch, job.dtype)).train(job.training)
    vocab = (found.spec.decoder if isinstance(found.spec, Seq2Seq) else found.spec).embedding.vocab
    saved: Mapping[str, int] = {}
    if job.training:
        saved = gathered(kept(model, forward(model, job, "cpu", vocab)), paths)
    clocks = timed(model, found, paths, rounds, vocab)
    once = {line.path: line for line in cost(found.spec, **forward_only(found)).lines}
    return tuple(
        Measured(
            line.path,
            line.brick,
            line.times,
            (line.total("forward"), counts.get(line.path, 0)),
            (sum(t.value for t in line.terms if t.column == "activations" and t.name != "kept.loss") * line.times,
             saved.get(line.path, 0)),
            (bound([once[line.path]], machine, job.dtype).seconds, clocks.get(line.path, 0.0)),
        )
        for line in lines
    )  # fmt: skip


def forward_only(found: Cost) -> dict[str, Any]:
    """The arguments of the same job without backward."""
    job = vars(found.job)
    return job | {"phase": "prefill"} if found.job.training else dict(job)


def of(line: Line) -> list[str]:
    """The names of all modules that a line stands for."""
    stack, layers, rest = line.path.partition("layers.")
    if not layers:
        return [line.path]
    inner = rest.partition(".")[2]
    return [f"{stack}layers.{layer}{'.' if inner else ''}{inner}" for layer in line.layers]


def owner(name: str, modules: Mapping[str, str]) -> str | None:
    """The line that a module belongs to: of the nearest module around it that has one."""
    while name not in modules:
        if not name:
            return None
        name = name.rpartition(".")[0]
    return modules[name]


def inverse(paths: Mapping[str, list[str]]) -> dict[str, str]:
    """Module -> the path of its line."""
    return {module: path for path, modules in paths.items() for module in modules}


def counted(found: Cost, paths: Mapping[str, list[str]]) -> dict[str, int]:
    """FLOPs that torch counts on meta, by line, those of lines inside a line left out."""
    modules = inverse(paths)
    model = on_meta(found.spec).eval()
    with torch.no_grad():
        by_module = flops(forward(model, found.job))
    own = {name: by_module[name] for name in modules if name in by_module}
    for name in modules:
        around = name.rpartition(".")[0]
        while around and around not in own:
            around = around.rpartition(".")[0]
        if name and around in own:
            own[around] -= by_module.get(name, 0)
    return gathered(own, paths)


def gathered(values: Mapping[str, int], paths: Mapping[str, list[str]]) -> dict[str, int]:
    """Values of modules added up by line."""
    modules, found = inverse(paths), dict.fromkeys(paths, 0)
    for name, value in values.items():
        path = owner(name, modules)
        if path is not None:
            found[path] += value
    return found


def timed(model: nn.Module, found: Cost, paths: Mapping[str, list[str]], rounds: int, vocab: int) -> dict[str, float]:
    """Seconds of each line in a forward pass: the median over rounds, after one that is not counted."""
    names, job = inverse(paths), found.job if not found.job.training else replace(found.job, phase="prefill")
    rows: list[dict[str, float]] = []
    model.eval()
    with torch.inference_mode():
        for _ in range(rounds + 1):
            run = forward(model, job, "cpu", vocab)
            with clock(model, names) as spent:
                run()
            rows.append(spent)
    return {path: statistics.median(row.get(path, 0.0) for row in rows[1:]) for path in paths}


@contextmanager
def clock(model: nn.Module, names: Mapping[str, str]) -> Iterator[dict[str, float]]:
    """Seconds spent in the modules of each line, without those spent in others inside them."""
    spent: dict[str, float] = {}
    open_: list[list[Any]] = []
    handles = []

    def enter(name: str) -> Callable[..., None]:
        return lambda *_: open_.append([names[name], time.perf_counter(), 0.0])

    def leave(*_: Any) -> None:
        path, begun, inside = open_.pop()
        whole = time.perf_counter() - begun
        spent[path] = spent.get(path, 0.0) + whole - inside
        if open_:
            open_[-1][2] += whole

    for name, module in model.named_modules():
        if name in names:
            handles.append(module.register_forward_pre_hook(enter(name)))
            handles.append(module.register_forward_hook(leave))
    try:
        yield spent
    finally:
        for handle in handles:
            handle.remove()


def ordered(rows: tuple[Measured, ...]) -> tuple[int, int]:
    """(pairs measured in the predicted order, all pairs of bricks that are predicted 1.5 times apart or more)."""
    right = total = 0
    for a, b in combinations([row for row in rows if row.seconds[0] and row.seconds[1]], 2):
        slow, fast = (a, b) if a.seconds[0] > b.seconds[0] else (b, a)
        if slow.seconds[0] >= APART * fast.seconds[0]:
            total += 1
            right += slow.seconds[1] > fast.seconds[1]
    return right, total
