"""Checkpoints: everything a run needs to go on bit for bit, published by one rename, no pickle.

A step is a function of (weights, moments, seed, step number): the batch and the dropout masks follow from the last two.
So a checkpoint holds weights, moments and a few numbers, and no state of any random generator.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.optim import Optimizer

from oneblock.files import discard, publish, sweep
from oneblock.weights.fill import unique, unwrapped

__all__ = [
    "average",
    "newest",
    "prune",
    "read_weights",
    "regular",
    "restore",
    "save_checkpoint",
    "steps",
    "whole",
    "write_weights",
]

FILES = ("model.safetensors", "optimizer.safetensors")


def warned(line: str) -> None:
    """A warning as people read it: one line on stderr."""
    print(line, file=sys.stderr, flush=True)


def save_checkpoint(
    folder: Path,
    step: int,
    model: nn.Module,
    optimizer: Optimizer,
    state: Mapping[str, Any],
    extra: Mapping[str, bytes],
) -> Path:
    """Write `folder`/step-XXXXXXXX durably: weights, moments, `extra` files, and state.json with a sha256 per file."""
    tensors = [{name: tensor.cpu().contiguous() for name, tensor in unique(model).items()}, _moments(model, optimizer)]
    files = dict(extra) | {name: save(group) for name, group in zip(FILES, tensors, strict=True)}
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    text = json.dumps({"step": step, **state, "files": hashes}, ensure_ascii=False, indent=1)
    target = folder / f"step-{step:08d}"
    publish(target, files | {"state.json": text.encode()})
    return target


def newest(folder: Path, warn: Callable[[str], object] = warned) -> tuple[Path, dict[str, Any]] | None:
    """The newest whole checkpoint and its state, None when there is none; `warn` says which are damaged and skipped."""
    sweep(folder)
    path = next((path for path in sorted(folder.glob("step-*"), reverse=True) if whole(path, warn)), None)
    return None if path is None else (path, read_state(path))


def whole(path: Path, warn: Callable[[str], object] = warned) -> bool:
    """Whether a checkpoint is undamaged; `warn` says in one line when it is not."""
    try:
        read_state(path)
    except ValueError as error:
        warn(f"{error}; skipped")
        return False
    return True


def read_state(path: Path) -> dict[str, Any]:
    """The state of one checkpoint, after checking every file; ValueError says what is damaged."""
    try:
        state: dict[str, Any] = json.loads((path / "state.json").read_bytes())
        for name, expected in state["files"].items():
            if hashlib.sha256((path / name).read_bytes()).hexdigest() != expected:
                raise ValueError(f"{path}: {name} is damaged (its sha256 differs)")
    except (OSError, KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: damaged checkpoint ({type(error).__name__}: {error})") from None
    return state


def read_weights(model: nn.Module, path: Path) -> None:
    """Copy a checkpoint's weights into `model`, strictly."""
    write_weights(model, load_file(path / FILES[0]))


def write_weights(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Copy `tensors` into `model`; ValueError when names are missing or left over."""
    mine = unique(model)  # views of the parameters themselves
    if odd := sorted(mine.keys() ^ tensors.keys()):
        raise ValueError(f"checkpoint: {len(odd)} tensor names differ from the model's, first {odd[0]!r}")
    with torch.no_grad():
        for name, tensor in mine.items():
            tensor.copy_(tensors[name])


def restore(model: nn.Module, optimizer: Optimizer, path: Path) -> None:
    """Weights and the optimizer's moments and step counts from a checkpoint."""
    read_weights(model, path)
    moments = load_file(path / FILES[1])
    for name, parameter in _parameters(model).items():
        prefix = name + "/"
        found = {key.removeprefix(prefix): tensor for key, tensor in moments.items() if key.startswith(prefix)}
        if found:
            optimizer.state[parameter] = {
                key: tensor.to(parameter.device, copy=True)  # the file is mapped: it must be free to go
                for key, tensor in found.items()
            }


def average(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the weights of several checkpoints, summed in float64."""
    total: dict[str, Tensor] = {}
    for path in paths:
        for name, tensor in load_file(path / FILES[0]).items():
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    return {name: tensor / len(paths) for name, tensor in total.items()}


def prune(folder: Path, step: int, keep: int, *others: int | None) -> None:
    """Remove all checkpoints but the `keep` newest up to `step`, just saved, and those of the steps `others`.

    Called only when the save of `step` is durable. A later one is damaged: the run fell back from it.
    """
    found = steps(folder)
    kept = {*[number for number in found if number <= step][-keep:], *others}
    for number, path in found.items():
        if number not in kept:
            discard(path)


def steps(folder: Path) -> dict[int, Path]:
    """Step -> checkpoint, in rising order."""
    return {int(path.name.removeprefix("step-")): path for path in sorted(folder.glob("step-*"))}


def regular(found: Collection[int], every: int, count: int) -> list[int]:
    """The last `count` of the steps that were saved by the clock, `every` so many steps, and the very last step.

    What was saved because it was the best, or at an interruption, is not among them: an average must not depend on it.

    >>> regular([5, 10, 12, 15, 17], every=5, count=3)
    [10, 15, 17]
    """
    last = max(found, default=0)
    return [step for step in sorted(found) if step % every == 0 or step == last][-count:] if count else []


def _parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    return {unwrapped(name): parameter for name, parameter in model.named_parameters()}


def _moments(model: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    state = {name: optimizer.state.get(parameter, {}) for name, parameter in _parameters(model).items()}
    return {
        f"{name}/{key}": torch.as_tensor(value).cpu().contiguous()
        for name, entries in state.items()
        for key, value in entries.items()
    }
