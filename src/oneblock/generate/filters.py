"""What may come next: small functions that change the scores of the next token before one is chosen.

Each takes the scores of all tokens (rows, vocab) in float32 and the ids so far (rows, length), where -1 stands for
padding, and gives new scores; -inf means never. They are applied in the order of Hugging Face's `generate`, and give
what its processors give. A filter keeps at least one token that it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import torch
from torch import Tensor

from oneblock.generate.config import GenerationConfig

__all__ = ["Filter", "bans", "filters", "warpers"]

Filter = Callable[[Tensor, Tensor], Tensor]
"""(scores (rows, vocab), ids so far (rows, length)) -> scores."""


def filters(
    config: GenerationConfig, eos: Sequence[int], prompt: int, vocab: int, device: torch.device | str = "cpu"
) -> list[Filter]:
    """The filters that a config asks for, in order. `prompt` is how many ids there are before the answer begins.

    ValueError: bans that leave no token of the `vocab`.

    >>> cold = filters(GenerationConfig(do_sample=True, temperature=0.5, top_k=1), [], 0, 3)
    >>> scores = torch.tensor([[1.0, 3.0, 2.0]])
    >>> for filter in cold:
    ...     scores = filter(scores, torch.tensor([[0]]))
    >>> scores
    tensor([[-inf, 6., -inf]])
    """
    found = list(bans(config, eos, prompt, vocab, device))
    return [*found, *warpers(config, len(eos) + 1 if config.num_beams > 1 else 1)] if config.sampled else found


def bans(
    config: GenerationConfig, eos: Sequence[int], prompt: int, vocab: int, device: torch.device | str
) -> Iterator[Filter]:
    """The filters that hold for every way of choosing."""
    if config.repetition_penalty != 1:
        yield lambda scores, ids: repetition_penalty(scores, ids, config.repetition_penalty)
    if config.no_repeat_ngram_size:
        yield lambda scores, ids: no_repeat_ngram(scores, ids, config.no_repeat_ngram_size)
    words = [list(word) for word in config.bad_words_ids or () if list(word) not in [[token] for token in eos]]
    for word in (word for word in words if len(word) > 1):
        yield lambda scores, ids, word=word: bad_word(scores, ids, word)
    if config.min_new_tokens and eos:
        late, ends = prompt + config.min_new_tokens, torch.tensor(eos, device=device)
        yield lambda scores, ids: suppress(scores, ends) if ids.shape[1] < late else scores
    asked = {"suppress_tokens": config.suppress_tokens or (), "bad_words_ids": chain.from_iterable(words)}
    for name, tokens in asked.items():
        if outside := [token for token in tokens if not 0 <= token < vocab]:
            raise ValueError(f"{name}: expected ids of the vocabulary of {vocab}, got {outside[0]}")
    never = {*(config.suppress_tokens or ()), *(word[0] for word in words if len(word) == 1)}
    never |= set(range(vocab if config.vocab is None else config.vocab, vocab))
    if never >= set(range(vocab)):
        raise ValueError(f"suppress_tokens: they ban all {vocab} tokens of the model; leave some")
    if never:
        banned = torch.tensor(sorted(never), device=device)
        yield lambda scores, _: suppress(scores, banned)


def warpers(config: GenerationConfig, least: int) -> Iterator[Filter]:
    """The filters of sampling; each keeps at least `least` tokens, so that a beam may go on when the best one ends."""
    if config.temperature != 1:
        yield lambda scores, _: scores / config.temperature
    if config.top_k:
        yield lambda scores, _: top_k(scores, max(config.top_k or 0, least))
    if config.top_p < 1:
        yield lambda scores, _: top_p(scores, config.top_p, least)
    if config.min_p is not None:
        yield lambda scores, _: min_p(scores, config.min_p or 0.0, least)
    if config.typical_p < 1:
        yield lambda scores, _: typical_p(scores, config.typical_p, least)


def repetition_penalty(scores: Tensor, ids: Tensor, penalty: float) -> Tensor:
    """Tokens that came before: a positive score is divided by `penalty`, a negative one multiplied.

    >>> repetition_penalty(torch.tensor([[1.0, -1.0, 0.5]]), torch.tensor([[-1, 0, 1]]), 2.0)
    tensor([[ 0.5000, -2.0000,  0.5000]])
    """
    less = torch.where(scores < 0, scores * penalty, scores / penalty)
    return less.where(_marked(ids, scores.shape[1]), scores)


def no_repeat_ngram(scores: Tensor, ids: Tensor, size: int) -> Tensor:
    """No `size` tokens come twice in a row's ids.

    >>> no_repeat_ngram(torch.zeros(1, 4), torch.tensor([[2, 3, 1, 2]]), 2)
    tensor([[0., 0., 0., -inf]])
    """
    if ids.shape[1] < size:
        return scores
    grams = ids.unfold(1, size, 1)  # (rows, grams, size)
    now = ids[:, ids.shape[1] + 1 - size :]  # (rows, size - 1): what the next token would end
    again = (grams[:, :, :-1] == now[:, None]).all(-1)  # padding stands in front, so what holds it comes once only
    return scores.masked_fill(_marked(grams[:, :, -1].where(again, -1), scores.shape[1]), -torch.inf)


def bad_word(scores: Tensor, ids: Tensor, word: Sequence[int]) -> Tensor:
    """The last id of `word` does not come after the others."""
    if ids.shape[1] < len(word) - 1:
        return scores
    begun = (ids[:, 1 - len(word) :] == torch.tensor(word[:-1], device=ids.device)).all(-1)
    banned = scores.clone()
    banned[:, word[-1]] = scores[:, word[-1]].masked_fill(begun, -torch.inf)
    return banned


def suppress(scores: Tensor, tokens: Tensor) -> Tensor:
    """Some tokens (few,) never."""
    return scores.index_fill(1, tokens, -torch.inf)


def top_k(scores: Tensor, k: int) -> Tensor:
    """The k best, and what equals the last of them (Fan et al. 2018, arXiv:1805.04833)."""
    return scores.masked_fill(scores < _kth(scores, k), -torch.inf)


def top_p(scores: Tensor, p: float, least: int = 1) -> Tensor:
    """The fewest tokens whose probabilities sum to at least p.

    >>> top_p(torch.tensor([[0.5, 0.3, 0.2]]).log(), 0.6).exp()
    tensor([[0.5000, 0.3000, 0.0000]])
    """
    rising, order = scores.sort(-1)
    out = rising.softmax(-1).cumsum(-1) <= 1 - p
    out[:, -least:] = False
    return scores.masked_fill(out.scatter(1, order, out), -torch.inf)


def min_p(scores: Tensor, p: float, least: int = 1) -> Tensor:
    """Tokens at least p times as likely as the likeliest.

    >>> min_p(torch.tensor([[0.5, 0.3, 0.2]]).log(), 0.5).exp()
    tensor([[0.5000, 0.3000, 0.0000]])
    """
    likely = scores.softmax(-1)
    out = (likely < p * likely.amax(-1, keepdim=True)) & (scores < _kth(scores, least))
    return scores.masked_fill(out, -torch.inf)


def typical_p(scores: Tensor, mass: float, least: int = 1) -> Tensor:
    """Tokens whose surprise is nearest to the mean surprise (the entropy), as many as make up `mass`."""
    logprob = scores.log_softmax(-1)
    entropy = -(logprob * logprob.exp()).nansum(-1, keepdim=True)
    strange, order = (-logprob - entropy).abs().sort(-1)
    taken = scores.gather(1, order).softmax(-1).cumsum(-1)
    last = (taken < mass).sum(-1, keepdim=True).clamp(max=scores.shape[1] - 1)
    out = strange > strange.gather(1, last)
    out[:, :least] = False
    return scores.masked_fill(out.scatter(1, order, out), -torch.inf)


def _kth(scores: Tensor, k: int) -> Tensor:
    return scores.topk(min(k, scores.shape[1]))[0][:, -1:]


def _marked(ids: Tensor, vocab: int) -> Tensor:
    """bool (rows, vocab): which tokens are among the ids of each row; -1 is none."""
    marks = torch.zeros(len(ids), vocab + 1, dtype=torch.bool, device=ids.device)
    return marks.scatter_(1, ids.where((ids >= 0) & (ids < vocab), vocab), True)[:, :vocab]
