"""Choosing tokens: one after the other, the likeliest or a drawn one, or along beams.

Shapes: batch = prompts, rows = batch * answers of each, length = ids so far, vocab = tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from oneblock.generate.decode import CausalStepper, Seq2SeqStepper
from oneblock.generate.filters import Filter
from oneblock.generate.hypothesis import Hypothesis
from oneblock.generate.plan import Plan
from oneblock.generate.search import beam_search

__all__ = ["Step", "beams", "pick", "walk"]


@dataclass(frozen=True, eq=False)
class Step:
    """The tokens of one step (rows,), `pad` in rows that had ended; `live` (rows,) says which had not."""

    tokens: Tensor
    live: Tensor


@torch.no_grad()
def walk(plan: Plan) -> Iterator[Step]:
    """One token for each row after the other, until all rows have ended. ValueError: scores that allow no token."""
    stepper, many = plan.begin(), plan.config.num_return_sequences
    tokens, ids = plan.before[:, -1], plan.known
    live, going = torch.ones(len(ids) * many, dtype=torch.bool, device=ids.device), True
    while going:
        scores = stepper(tokens).float()  # (batch, vocab), then (rows, vocab)
        if len(scores) < len(live):  # the prompt was read once; from here each answer goes its own way
            rows = torch.arange(len(ids), device=ids.device).repeat_interleave(many)
            stepper.reorder(rows, None)
            scores, ids = scores[rows], ids[rows]
        tokens = pick(filtered(scores, ids, plan.filters, live), plan.draw)
        ids = torch.cat([ids, tokens[:, None]], 1)
        yield Step(tokens.where(live, plan.pad), live)
        live = live & ~ended(plan, ids, live)
        going = ids.shape[1] < plan.before.shape[1] + plan.config.max_new_tokens and bool(live.any())


def filtered(scores: Tensor, ids: Tensor, filters: list[Filter], live: Tensor) -> Tensor:
    """The scores after all filters. ValueError: a live row that has none left, or scores that are no numbers."""
    for change in filters:
        scores = change(scores, ids)
    lost = ~(scores.amax(-1) > -torch.inf) & live
    if bool(lost.any()):
        if bool(scores.isnan().any()):
            raise ValueError("the model's scores are not numbers (NaN); check its weights and its input")
        raise ValueError(f"row {int(lost.nonzero()[0]) + 1}: the bans leave no token to go on with; lift one of them")
    return scores


def pick(scores: Tensor, draw: torch.Generator | None) -> Tensor:
    """The best token of each row, or one drawn by the softmax of the scores: (rows,)."""
    if draw is None:
        return scores.argmax(-1)
    likely = scores.softmax(-1)
    # The first of independent alarms with these rates rings: no cumulative sums, and no waiting for the device.
    return (likely / torch.empty_like(likely).exponential_(generator=draw)).argmax(-1)


def ended(plan: Plan, ids: Tensor, live: Tensor) -> Tensor:
    """Which rows their last token ends: bool (rows,)."""
    last, done = ids[:, -1], torch.zeros_like(live)
    for eos in plan.eos:
        done = done | (last == eos)
    if plan.stops is None:
        return done
    new, going = ids[:, plan.before.shape[1] :].tolist(), live.tolist()
    stopped = [alive and plan.stops(row) for row, alive in zip(new, going, strict=True)]
    return done | torch.tensor(stopped, device=ids.device)


class FilteredStepper:
    """A stepper whose log-probabilities go through filters; for them it remembers the ids of each row."""

    def __init__(self, inner: CausalStepper | Seq2SeqStepper, plan: Plan) -> None:
        self.inner, self.plan, self.ids, self.begun = inner, plan, plan.known, False

    def __call__(self, tokens: Tensor) -> Tensor:
        """Append one token to each row; the filtered log-probabilities of what comes next (rows, vocab)."""
        if self.begun:
            self.ids = torch.cat([self.ids, tokens[:, None]], 1)
        self.begun, scores = True, self.inner(tokens).float().log_softmax(-1)
        for change in self.plan.filters:
            scores = change(scores, self.ids)
        return scores

    def reorder(self, rows: Tensor, sentences: Tensor | None) -> None:
        """Follow the search."""
        self.ids = self.ids[rows]
        self.inner.reorder(rows, sentences)

    def ends(self, rows: Tensor, tokens: Tensor) -> Tensor:
        """Which continuations, of `rows` by `tokens` (batch, candidates), hold a stop string."""
        assert self.plan.stops is not None
        new = self.ids[:, self.plan.before.shape[1] :].tolist()
        found = [
            [self.plan.stops([*new[row], token]) for row, token in zip(*sentence, strict=True)]
            for sentence in zip(rows.tolist(), tokens.tolist(), strict=True)
        ]
        return torch.tensor(found, device=rows.device)


@torch.no_grad()
def beams(plan: Plan) -> list[list[Hypothesis]]:
    """The best answers to each prompt, best first. ValueError: a prompt with fewer answers than asked for."""
    config, stepper = plan.config, FilteredStepper(plan.begin(), plan)
    found = beam_search(
        stepper, len(plan.before), start=plan.before[:, -1], eos=plan.eos, beam=config.num_beams,
        n_best=config.num_return_sequences, max_length=config.max_new_tokens, length_penalty=config.length_penalty,
        early_stopping=config.early_stopping, ready=True, ends=None if plan.stops is None else stepper.ends,
        draw=plan.draw,
    )  # fmt: skip
    for number, answers in enumerate(found, 1):
        if len(answers) < config.num_return_sequences:
            raise ValueError(
                f"prompt {number}: the bans leave {len(answers)} answers, expected {config.num_return_sequences}; "
                "lift one of them or ask for fewer"
            )
    return found
