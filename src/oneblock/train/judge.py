"""Validation: how surprised is the model by held-out translations, and how good are its own?"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import torch

from oneblock.train.data import directions
from oneblock.train.evaluate import evaluate
from oneblock.train.setup import Setup
from oneblock.train.task import mean_loss

__all__ = ["Verdict", "judge"]


class Verdict(NamedTuple):
    """`goodness`: higher is better, by what `training.choose` names first; `row` for a file, `line` for people."""

    goodness: tuple[float, float]
    row: dict[str, Any]
    line: str


def judge(setup: Setup, device: torch.device) -> Verdict:
    """Loss over all validation examples; BLEU and chrF over the first `training.sample` pairs in each direction."""
    begun, run = time.perf_counter(), setup.run
    if setup.valid is None:
        raise ValueError("judge: the run has no validation pairs")
    plain, smoothed = mean_loss(setup.model, setup.valid.once(), run.training.label_smoothing, device)
    pairs = setup.valid_pairs[: run.training.sample or None]
    ways = directions(run.data)
    scores = evaluate(setup.model, setup.tokenizer, pairs, ways, beam=run.training.beam)
    setup.model.train()
    row = {
        "loss": plain,
        "loss_smoothed": smoothed,
        "scores": [score.to_dict() for score in scores],
        "seconds": round(time.perf_counter() - begun, 3),
    }
    mean = sum(score.bleu for score in scores) / len(scores)
    figures = "  ".join(f"{score.direction} BLEU {score.bleu:.1f} chrF {score.chrf:.1f}" for score in scores)
    line = f"validation loss {plain:.3f}  {figures}  ({row['seconds']:.0f} s)"
    return Verdict((mean, -plain) if run.training.choose == "bleu" else (-plain, mean), row, line)
