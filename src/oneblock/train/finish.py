"""The end of a run: of the last, the best and the averaged weights, keep those that do best on the held-out pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from oneblock import weights
from oneblock.train.checkpoint import average, read_weights, whole, write_weights
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
    paths = [path for path in sorted(folder.glob("step-*")) if whole(path)]
    last = paths[-setup.run.training.average :] if setup.run.training.average > 1 else []
    candidates: dict[str, Path | list[Path]] = {"last": paths[-1]}
    if best is not None and (found := folder / f"step-{best:08d}") in paths[:-1]:
        candidates["best"] = found
    if len(last) > 1:
        candidates["averaged"] = last
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
    log({"kind": "final", "step": int(paths[-1].name.removeprefix("step-")), "kept": kept, **scores})
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
