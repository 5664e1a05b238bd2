"""The end of a run: of the last, the best and the averaged weights, keep those that do best on the held-out pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from oneblock import weights
from oneblock.train.checkpoint import average, read_weights, regular, steps, whole, write_weights
from oneblock.train.judge import judge
from oneblock.train.log import Log, Show
from oneblock.train.setup import Setup

__all__ = ["finish", "publish_best"]


def finish(
    setup: Setup, folder: Path, best: int | None, log: Log, show: Show, device: torch.device
) -> tuple[str, dict[str, Any]]:
    """Judge the candidates, write the winner as the run's model.safetensors; returns its name and its scores.

    Averaging the last checkpoints: Vaswani et al. 2017, section 6.1. Without validation pairs: averaged, or else last.
    """
    part = setup.run.training
    found = {step: path for step, path in steps(folder).items() if whole(path, show.warn)}
    last, latest = max(found), regular(found, part.save_every, part.average)
    candidates: dict[str, Path | list[Path]] = {"last": found[last]}
    if best in found and best != last:
        candidates["best"] = found[best]
    if len(latest) > 1:
        candidates["averaged"] = [found[step] for step in latest]
    if setup.valid is None:
        kept, scores = list(candidates)[-1], {}
    else:
        verdicts = {}
        for name, paths_of in candidates.items():
            _load(setup, paths_of)
            verdicts[name] = judge(setup, device)
            show.say(f"{name:>8}  {verdicts[name].line}")
        kept = max(verdicts, key=lambda name: verdicts[name].goodness)
        scores = verdicts[kept].row
    _load(setup, candidates[kept])
    publish_best(setup)
    log({"kind": "final", "step": last, "kept": kept, **scores})
    show.say(f"kept the {kept} weights in {setup.out / 'model.safetensors'}")
    return kept, scores


def publish_best(setup: Setup) -> None:
    """Write the model as it is now into the run folder, where every other command looks for it."""
    weights.save(setup.model, setup.out)


def _load(setup: Setup, source: Path | list[Path]) -> None:
    if isinstance(source, Path):
        read_weights(setup.model, source)
    else:
        write_weights(setup.model, average(source))
