"""Greedy and beam search: find the best sentence, given a function that scores the next token.

The search knows no model. It calls a `Stepper`, which may be a network with a cache or a table of numbers, and keeps,
for each sentence, `beam` live beginnings and the best `beam` finished hypotheses. One definition of length serves the
penalty, the limit and the result: the tokens after the start token, with the end token if there is one.

Shapes: batch = sentences still searched, width = live beams of a sentence (1 at first, then up to `beam`),
rows = batch * width with the beams of a sentence side by side, vocab = tokens.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

import torch
from torch import Tensor

from oneblock.generate.hypothesis import Hypothesis, written
from oneblock.generate.largest import largest
from oneblock.generate.rule import EarlyStopping, Rule, limits

__all__ = ["EarlyStopping", "Stepper", "beam_search", "greedy_search"]


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
    eos: int | Sequence[int],
    beam: int = 5,
    n_best: int = 1,
    max_length: int | Tensor,
    length_penalty: float = 1.0,
    early_stopping: EarlyStopping = "never",
    ready: bool = False,
    ends: Callable[[Tensor, Tensor], Tensor] | None = None,
    draw: torch.Generator | None = None,
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

    `eos` may be several tokens. With `ready`, what the stepper gives is added as it is, not made log-probabilities.
    `ends(rows, tokens)`, both (batch, candidates), says which continuations end for another reason. With `draw`,
    continuations are drawn without replacement, as likely as they are (Kool et al. 2019, arXiv:1903.06059).

    ValueError: beam or n_best out of range, negative max_length, a penalty that is not finite, scores that are NaN.

    >>> class Coin:  # token 0 has probability 0.6, token 1 ends the sentence with 0.4
    ...     def __call__(self, tokens):
    ...         return torch.tensor([0.6, 0.4]).log().expand(len(tokens), 2)
    ...     def reorder(self, rows, sentences): ...
    >>> found = beam_search(Coin(), 1, start=0, eos=1, beam=3, n_best=2, max_length=2, length_penalty=0.0)
    >>> [hypothesis.tokens for hypothesis in found[0]]
    [(1,), (0, 0)]
    """
    several = (eos,) if isinstance(eos, int) else tuple(eos)
    rule = Rule(several, beam, n_best, float(length_penalty), early_stopping, ready, ends, draw)
    tokens = (start if isinstance(start, Tensor) else torch.tensor(start)).expand(batch)
    limit = limits(max_length, batch, rule.alpha)
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


def _run(stepper: Stepper, tokens: Tensor, limit: Tensor, rule: Rule) -> Iterable[tuple[int, list[Hypothesis]]]:
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
        if wrong := [token for token in rule.eos if not 0 <= token < vocab]:
            raise ValueError(f"eos: expected a token of the vocabulary of {vocab}, got {wrong[0]}")
        width = beams.live.shape[1]
        ranked = _candidates(logits, beams.live, rule)
        ended = _ended(ranked[1], ranked[2], width, rule)
        _keep(beams, *ranked, ended, len(steps), vocab, rule)
        parent, token = _go_on(beams, *ranked, ended, rule)
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


def _candidates(logits: Tensor, live: Tensor, rule: Rule) -> tuple[Tensor, Tensor, Tensor]:
    """The best continuations of each sentence, best first: their sums, parent beams and tokens (batch, candidates).

    `beam` of a row and its end tokens suffice, where nothing else ends and nothing is drawn.
    """
    vocab = logits.shape[1]
    scores = logits if rule.ready else logits.float().log_softmax(-1)
    if rule.draw is not None:
        return _drawn(scores, live, rule)
    count = min(rule.beam + max(1, len(rule.eos)) if rule.ends is None else rule.spare, vocab)
    logprob, token = largest(scores, count)  # (rows, count)
    logprob = logprob.masked_fill(logits.gather(1, token) == -math.inf, -math.inf)  # a row of -inf has no softmax
    total = live[:, :, None] + logprob.view(*live.shape, count)  # (batch, width, count)
    total = total.masked_fill(live[:, :, None] == -math.inf, -math.inf).flatten(1)
    total, order = total.sort(dim=-1, descending=True, stable=True)
    order = order[:, : rule.spare]
    return total[:, : rule.spare], order // count, token.view(len(live), -1).gather(1, order)


def _drawn(scores: Tensor, live: Tensor, rule: Rule) -> tuple[Tensor, Tensor, Tensor]:
    """Continuations drawn without replacement: the best after each sum got its own Gumbel noise."""
    total = (live[:, :, None] + scores.view(*live.shape, -1)).flatten(1)  # (batch, width * vocab)
    noise = -torch.empty_like(total).exponential_(generator=rule.draw).log()
    chosen = largest(total + noise, min(rule.spare, total.shape[1]))[1]
    total, order = total.gather(1, chosen).sort(dim=-1, descending=True, stable=True)
    chosen, vocab = chosen.gather(1, order), scores.shape[1]
    return total, chosen // vocab, chosen % vocab


def _ended(parent: Tensor, token: Tensor, width: int, rule: Rule) -> Tensor:
    """Which continuations are whole: bool (batch, candidates)."""
    ended = torch.zeros_like(token, dtype=torch.bool)
    for eos in rule.eos:
        ended = ended | (token == eos)
    if rule.ends is not None:
        first = torch.arange(len(parent), device=parent.device)[:, None] * width
        ended = ended | rule.ends(first + parent, token)
    return ended


def _keep(
    beams: _Beams, total: Tensor, parent: Tensor, token: Tensor, ended: Tensor, step: int, vocab: int, rule: Rule
) -> None:
    """Put what ends among the `beam` best into the pool: the end token, or anything where the limit is reached."""
    best = slice(0, rule.beam)
    ends = ended[:, best] | (beams.limit <= step + 1)[:, None]
    logprob = total[:, best].masked_fill(~ends, -math.inf)
    end = (step * rule.beam + parent[:, best]) * vocab + token[:, best]
    score = torch.cat([beams.score, logprob / (step + 1) ** rule.alpha], 1)
    score, order = score.sort(dim=-1, descending=True, stable=True)
    order = order[:, best]
    beams.score = score[:, best]
    beams.logprob = torch.cat([beams.logprob, logprob], 1).gather(1, order)
    beams.end = torch.cat([beams.end, end], 1).gather(1, order)


def _go_on(
    beams: _Beams, total: Tensor, parent: Tensor, token: Tensor, ended: Tensor, rule: Rule
) -> tuple[Tensor, Tensor]:
    """The best continuations that do not end become the live beams; their parents and tokens (batch, width)."""
    total = total.masked_fill(ended, -math.inf)
    total, order = total.sort(dim=-1, descending=True, stable=True)
    beams.live, order = total[:, : rule.beam], order[:, : rule.beam]
    return parent.gather(1, order), token.gather(1, order)


def _stopped(beams: _Beams, step: int, rule: Rule) -> list[bool]:
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
