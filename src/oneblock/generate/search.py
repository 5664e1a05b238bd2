"""Greedy and beam search: find the best sentence, given a function that scores the next token.

The search knows no model. It calls a `Stepper`, which may be a network with a cache or a table of numbers, and keeps,
for each sentence, `beam` live beginnings and the best `beam` finished hypotheses. One definition of length serves the
penalty, the limit and the result: the tokens after the start token, with the end token if there is one.

Shapes: batch = sentences still searched, width = live beams of a sentence (1 at first, then up to `beam`),
rows = batch * width with the beams of a sentence side by side, vocab = tokens.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Literal, Protocol

import torch
from torch import Tensor

from oneblock.generate.hypothesis import Hypothesis, written
from oneblock.generate.largest import largest

__all__ = ["EarlyStopping", "Stepper", "beam_search", "greedy_search"]

EarlyStopping = bool | Literal["never"]


class Stepper(Protocol):
    """What a search asks of a model: the scores of the next token, and to follow when beams move."""

    def __call__(self, tokens: Tensor) -> Tensor:
        """Append `tokens` (rows,) to the rows; the logits or log-probabilities of what comes next (rows, vocab)."""
        ...

    def reorder(self, rows: Tensor, sentences: Tensor | None) -> None:
        """Row i of the next call continues the old row `rows[i]`; rows may become more or fewer.

        `sentences` are the places, among the sentences there were, of those that stay; None when all do. Sentences keep
        their order, and each has the same number of adjacent rows.
        """
        ...


@dataclass(frozen=True)
class _Rule:
    """What does not change during a search."""

    eos: int
    beam: int
    n_best: int
    alpha: float
    early_stopping: EarlyStopping

    def __post_init__(self) -> None:
        if not (isinstance(self.beam, int) and isinstance(self.n_best, int) and 1 <= self.n_best <= self.beam):
            raise ValueError(
                f"beam and n_best: expected 1 <= n_best <= beam, got n_best {self.n_best}, beam {self.beam}"
            )
        if not math.isfinite(self.alpha):
            raise ValueError(f"length_penalty: expected a finite number such as 1.0, got {self.alpha}")
        if not isinstance(self.early_stopping, bool) and self.early_stopping != "never":
            raise ValueError(f'early_stopping: expected True, False or "never", got {self.early_stopping!r}')


@dataclass
class _Beams:
    """What is known of the sentences still searched; the first axis is the batch, in the order of `sentences`."""

    sentences: list[int]
    limit: Tensor  # (batch,) how many tokens each may have
    live: Tensor  # (batch, width) sums of log-probabilities, -inf where there is no beam
    score: Tensor  # (batch, beam) penalised scores of kept hypotheses, best first, -inf where there is none
    logprob: Tensor  # (batch, beam)
    end: Tensor  # (batch, beam) where a hypothesis ends: (step * beam + parent beam) * vocab + last token


@torch.no_grad()
def beam_search(
    stepper: Stepper,
    batch: int,
    *,
    start: int | Tensor,
    eos: int,
    beam: int = 5,
    n_best: int = 1,
    max_length: int | Tensor,
    length_penalty: float = 1.0,
    early_stopping: EarlyStopping = "never",
) -> list[list[Hypothesis]]:
    """The `n_best` hypotheses of each of `batch` sentences, best first, by log-probability / length ** penalty.

    `start` is one token or one for each sentence (batch,), whose device the search then uses; `max_length` counts new
    tokens, one number or one for each sentence (batch,); what is not finished there counts as a hypothesis too. A list
    is shorter than `n_best` only where fewer sentences are possible.

    `early_stopping="never"` stops a sentence when no live beam can still pass the n_best-th kept hypothesis, whatever
    the penalty's sign, so the result is that of searching to the end. False judges a live beam by its present
    length, True stops at `beam` hypotheses; both may miss better ones. An end token counts only among the `beam` best
    continuations, and one beam stops there: `beam=1` is greedy search. Equal scores go to the earlier beam, the lower
    token, the earlier hypothesis. Sutskever et al. 2014 (arXiv:1409.3215); penalty after Wu et al. 2016 (1609.08144).

    ValueError: beam or n_best out of range, negative max_length, a penalty that is not finite, scores that are NaN.

    >>> class Coin:  # token 0 has probability 0.6, token 1 ends the sentence with 0.4
    ...     def __call__(self, tokens):
    ...         return torch.tensor([0.6, 0.4]).log().expand(len(tokens), 2)
    ...     def reorder(self, rows, sentences): ...
    >>> found = beam_search(Coin(), 1, start=0, eos=1, beam=3, n_best=2, max_length=2, length_penalty=0.0)
    >>> [hypothesis.tokens for hypothesis in found[0]]
    [(1,), (0, 0)]
    """
    rule = _Rule(eos, beam, n_best, float(length_penalty), early_stopping)
    tokens = (start if isinstance(start, Tensor) else torch.tensor(start)).expand(batch)
    limit = _limits(max_length, batch, rule.alpha)
    found = dict(_run(stepper, tokens, limit.to(tokens.device), rule))
    nothing = [Hypothesis((), 0.0, 0.0, finished=False)]
    return [found[place] if allowed else nothing for place, allowed in enumerate(limit.tolist())]


def greedy_search(
    stepper: Stepper,
    batch: int,
    *,
    start: int | Tensor,
    eos: int,
    max_length: int | Tensor,
    length_penalty: float = 1.0,
) -> list[Hypothesis]:
    """The likeliest next token, again and again until the end token: beam search with one beam.

    >>> class Count:
    ...     def __call__(self, tokens):
    ...         return torch.nn.functional.one_hot(tokens + 1, 5).float()
    ...     def reorder(self, rows, sentences): ...
    >>> greedy_search(Count(), 1, start=0, eos=3, max_length=9)[0].tokens
    (1, 2, 3)
    """
    found = beam_search(
        stepper, batch, start=start, eos=eos, beam=1, max_length=max_length, length_penalty=length_penalty
    )
    return [
        hypotheses[0] if hypotheses else Hypothesis((), -math.inf, -math.inf, finished=False) for hypotheses in found
    ]


def _limits(max_length: int | Tensor, batch: int, alpha: float) -> Tensor:
    limit = torch.as_tensor(max_length)
    if limit.is_floating_point() or limit.dtype == torch.bool or limit.shape not in ((), (batch,)):
        raise ValueError(
            f"max_length: expected a whole number, or one for each of {batch} sentences, got {max_length!r}"
        )
    limit = limit.expand(batch)
    if batch and (limit < 0).any():
        raise ValueError(f"max_length: expected 0 or more new tokens, got {int(limit.min())}")
    if batch and abs(alpha) * math.log(max(2, int(limit.max()))) > 80:
        raise ValueError(
            f"length_penalty: {int(limit.max())} tokens to the power {alpha} leave no number; take one near 1"
        )
    return limit


def _run(stepper: Stepper, tokens: Tensor, limit: Tensor, rule: _Rule) -> Iterable[tuple[int, list[Hypothesis]]]:
    """The loop: score the next tokens, keep what ended, go on with the best, let stopped sentences leave."""
    pool = torch.full((len(limit), rule.beam), -math.inf, device=limit.device)
    live = torch.zeros(len(limit), 1, device=limit.device)
    beams = _Beams(list(range(len(limit))), limit, live, pool, pool, torch.zeros_like(pool, dtype=torch.long))
    steps: list[tuple[list[int], Tensor]] = []  # sentences, and (batch, width): parent beam * vocab + token
    left: list[_Beams] = []
    vocab = 0
    while beams.sentences:
        logits = stepper(tokens)  # (rows, vocab)
        vocab = logits.shape[1]
        if not 0 <= rule.eos < vocab:
            raise ValueError(f"eos: expected a token of the vocabulary of {vocab}, got {rule.eos}")
        ranked = _candidates(logits, beams.live, rule.beam)
        _keep(beams, *ranked, len(steps), vocab, rule)
        width = beams.live.shape[1]
        parent, token = _go_on(beams, *ranked, rule)
        steps.append((beams.sentences, parent * vocab + token))
        stopped, kept = _stopped(beams, len(steps), rule), None
        if any(stopped):
            left.append(_take(beams, [i for i, stop in enumerate(stopped) if stop])[0])
            beams, kept = _take(beams, [i for i, stop in enumerate(stopped) if not stop])
            parent, token = parent[kept], token[kept]
        if beams.sentences and (kept is not None or beams.live.shape[1] > 1 or width > 1):
            first = torch.arange(len(parent), device=parent.device) if kept is None else kept
            stepper.reorder((first[:, None] * width + parent).flatten(), kept)
        tokens = token.flatten()
    if not left:
        return []
    order = [sentence for gone in left for sentence in gone.sentences]
    score, logprob, end = (
        torch.cat([getattr(gone, name)[:, : rule.n_best] for gone in left]).cpu()
        for name in ("score", "logprob", "end")
    )
    return zip(order, written(steps, order, score, logprob, end, (rule.beam, vocab, rule.eos)), strict=True)


def _candidates(logits: Tensor, live: Tensor, beam: int) -> tuple[Tensor, Tensor, Tensor]:
    """The best continuations of each sentence, best first: their sums, parent beams and tokens (batch, candidates).

    `beam + 1` of a row suffice: its end token and `beam` others.
    """
    count = min(beam + 1, logits.shape[1])
    logprob, token = largest(logits.float().log_softmax(-1), count)  # (rows, count)
    logprob = logprob.masked_fill(logits.gather(1, token) == -math.inf, -math.inf)  # a row of -inf has no softmax
    total = live[:, :, None] + logprob.view(*live.shape, count)  # (batch, width, count)
    total = total.masked_fill(live[:, :, None] == -math.inf, -math.inf).flatten(1)
    total, order = total.sort(dim=-1, descending=True, stable=True)
    order = order[:, : 2 * beam]  # `beam` to go on with, even if each beam proposes to end
    return total[:, : 2 * beam], order // count, token.view(len(live), -1).gather(1, order)


def _keep(beams: _Beams, total: Tensor, parent: Tensor, token: Tensor, step: int, vocab: int, rule: _Rule) -> None:
    """Put what ends among the `beam` best into the pool: the end token, or anything where the limit is reached."""
    best = slice(0, rule.beam)
    ends = (token[:, best] == rule.eos) | (beams.limit <= step + 1)[:, None]
    logprob = total[:, best].masked_fill(~ends, -math.inf)
    end = (step * rule.beam + parent[:, best]) * vocab + token[:, best]
    score = torch.cat([beams.score, logprob / (step + 1) ** rule.alpha], 1)
    score, order = score.sort(dim=-1, descending=True, stable=True)
    order = order[:, best]
    beams.score = score[:, best]
    beams.logprob = torch.cat([beams.logprob, logprob], 1).gather(1, order)
    beams.end = torch.cat([beams.end, end], 1).gather(1, order)


def _go_on(beams: _Beams, total: Tensor, parent: Tensor, token: Tensor, rule: _Rule) -> tuple[Tensor, Tensor]:
    """The best continuations that do not end become the live beams; their parents and tokens (batch, width)."""
    total = total.masked_fill(token == rule.eos, -math.inf)
    total, order = total.sort(dim=-1, descending=True, stable=True)
    beams.live, order = total[:, : rule.beam], order[:, : rule.beam]
    return parent.gather(1, order), token.gather(1, order)


def _stopped(beams: _Beams, step: int, rule: _Rule) -> list[bool]:
    """Which sentences are decided after `step` tokens: the one place where the search waits for the device."""
    best = beams.live[:, 0]
    if rule.early_stopping is True or rule.beam == 1:
        hopeless = beams.score[:, -1] > -math.inf
    elif rule.early_stopping is False:
        hopeless = best / step**rule.alpha <= beams.score[:, -1]
    else:  # log-probabilities only fall, so a live beam scores best at the end of the range that the penalty favours
        length = beams.limit.float() if rule.alpha > 0 else torch.full_like(best, step + 1)
        hopeless = best / length**rule.alpha <= beams.score[:, rule.n_best - 1]
    stopped = hopeless | (best == -math.inf) | (beams.limit <= step)
    broken = beams.live.isnan().any(1) | beams.score.isnan().any(1)
    answers = (stopped.int() + 2 * broken.int()).tolist()
    if max(answers) > 1:
        raise ValueError(f"the model's scores for token {step} are not numbers (NaN); check its weights and its input")
    return [answer == 1 for answer in answers]


def _take(beams: _Beams, places: list[int]) -> tuple[_Beams, Tensor]:
    """The sentences at `places`, and the places as a tensor on the device."""
    index = torch.tensor(places, dtype=torch.long, device=beams.live.device)
    return _Beams(
        [beams.sentences[i] for i in places], *(getattr(beams, f.name)[index] for f in fields(beams)[1:])
    ), index
