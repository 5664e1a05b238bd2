"""One answer of a search, and how all answers are read back from the steps that led to them.

A search writes down, at each step, from which beam each live beam came and with which token; no sentence is copied
while it grows. Only the hypotheses that were kept are followed back, all at once.

Shapes: sentences, n_best hypotheses of each; batch = sentences present at a step, width = live beams of each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Hypothesis", "written"]


@dataclass(frozen=True)
class Hypothesis:
    """One answer: its `tokens` after the start, its penalised `score`, the sum `logprob`, and whether it ended.

    >>> Hypothesis((5, 2), score=-0.75, logprob=-1.5, finished=True).tokens
    (5, 2)
    """

    tokens: tuple[int, ...]
    score: float
    logprob: float
    finished: bool


def written(
    steps: Sequence[tuple[Sequence[int], Tensor]],
    order: Sequence[int],
    score: Tensor,
    logprob: Tensor,
    end: Tensor,
    radix: tuple[int, int, tuple[int, ...]],
) -> Iterator[list[Hypothesis]]:
    """The hypotheses of each sentence of `order`, from (sentences, n_best) scores and ends; -inf means there is none.

    `radix` is (beam, vocab, eos). `steps` are (sentences present, codes (batch, width) = parent * vocab + token), and
    `end` is (step * beam + parent) * vocab + last token.
    """
    beam, vocab, eos = radix
    last, parent, step = end % vocab, end // vocab % beam, end // vocab // beam  # (sentences, n_best)
    tokens = torch.zeros(*end.shape, len(steps), dtype=torch.long).scatter(2, step[:, :, None], last[:, :, None])
    codes = torch.cat([code.flatten() for _, code in steps]).cpu().split([code.numel() for _, code in steps])
    present: Sequence[int] = ()
    rows = torch.tensor(order)
    for t in reversed(range(len(steps) - 1)):
        if steps[t][0] is not present:
            present = steps[t][0]
            place = {sentence: i for i, sentence in enumerate(present)}
            rows = torch.tensor([place.get(sentence, 0) for sentence in order])
        inside = step > t
        code = codes[t].view(len(present), -1)[rows].gather(1, parent.where(inside, 0))
        tokens[:, :, t] = torch.where(inside, code % vocab, tokens[:, :, t])
        parent = torch.where(inside, code // vocab, parent)
    columns = (tokens.tolist(), score.tolist(), logprob.tolist(), step.tolist())
    for sentence in zip(*columns, strict=True):
        kept = (item for item in zip(*sentence, strict=True) if item[1] > float("-inf"))
        yield [Hypothesis(tuple(t[: n + 1]), s, p, t[n] in eos) for t, s, p, n in kept]
