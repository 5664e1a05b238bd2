"""Write on: `generate` gives whole answers to prompts, `stream` gives one answer token by token.

Shapes: batch = prompts, rows = batch * answers of each, length = tokens of prompt and answer, new = of the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from oneblock.bricks import EncoderDecoder, Transformer
from oneblock.bricks.loss import IGNORED
from oneblock.generate.config import GenerationConfig, chosen
from oneblock.generate.mode import evaluating
from oneblock.generate.plan import Plan, plan
from oneblock.generate.prompts import MaskLike
from oneblock.generate.room import CacheChoice
from oneblock.generate.scoring import score
from oneblock.generate.stops import Decodes
from oneblock.generate.walk import beams, ended, walk
from oneblock.text import Pieces

__all__ = ["Generated", "generate", "stream"]


@dataclass(frozen=True, eq=False)
class Generated:
    """What `generate` says with `return_scores`.

    sequences: (rows, length), as without. scores: (rows,) by which answers are ranked: of beams the penalised sum of
    filtered log-probabilities, else the sum of `logprobs` / new tokens ** length_penalty. logprobs: (rows, new) the
    model's own log-probability of each new token, without any filter; 0 at padding. finished: (rows,) whether an answer
    came to its end, not to max_new_tokens. lengths: (rows,) new tokens, end token included.
    """

    sequences: Tensor
    scores: Tensor
    logprobs: Tensor
    finished: Tensor
    lengths: Tensor


def generate(
    model: Any,
    input_ids: Any,
    attention_mask: MaskLike = None,
    generation_config: GenerationConfig | None = None,
    *,
    tokenizer: Decodes | None = None,
    cache: CacheChoice = None,
    prefill_chunk: int | None = None,
    compile: bool | str = False,
    return_scores: bool = False,
    **options: Any,
) -> Tensor | Generated:
    """Answers to prompts, as token ids: (rows, length) int64.

    Of a causal model the prompts with what follows, of an encoder-decoder the target behind its start token; padded on
    the right, rows of one prompt side by side. `input_ids` is (batch, length), padded on either side and then with an
    `attention_mask` (1 at real tokens), or a list of prompts of any lengths; a mask may be a list too. In the result
    padding of prompts stands on the left. A batch gives what each prompt alone gives, where nothing is drawn.

    `options` are the fields of `GenerationConfig`, with the names and meanings of Hugging Face's `generate`, and change
    `generation_config`. `cache` is "growing", "static", "rolling" (windowed layers keep their window), None for the
    model's usual one, or a `Cache`, which is emptied first. `prefill_chunk` is how many tokens of a prompt are read at
    once. `compile` makes each step one graph over a static cache; it may name a backend of `torch.compile`.
    `return_scores` gives a `Generated`. The model is in eval mode meanwhile.

    ValueError: an empty prompt, one longer than the model's table of positions, choices out of range or that do not go
    together, bans that leave no token, a model that predicts no next token. A model without such a table that was
    trained on less is warned about only.

    >>> from oneblock.bricks import build_model
    >>> from oneblock.spec import Attention, Block, Embedding, FeedForward, Model
    >>> model = build_model(Model(8, Embedding(9), (Block(Attention(2), FeedForward(16)),)))
    >>> generate(model, [[5, 6, 7], [8]], max_new_tokens=4, num_beams=2).shape
    torch.Size([2, 7])
    """
    config = chosen(generation_config, options)
    with evaluating(model):
        made = plan(model, input_ids, attention_mask, config, tokenizer, cache, prefill_chunk, compile)
        new, real, ranks = _beams(made) if config.num_beams > 1 else _walk(made)
        many = config.num_return_sequences
        sequences = torch.cat([made.before.repeat_interleave(many, 0), new], 1)
        if not return_scores:
            return sequences
        logprobs = _logprobs(made, sequences, new, real)
    lengths = real.sum(1)
    if ranks is None:
        ranks = logprobs.sum(1) / lengths**config.length_penalty
    whole = torch.cat([made.known.repeat_interleave(many, 0), new], 1)
    finished = [
        bool(ended(made, row[None, : row.shape[0] - new.shape[1] + int(length)], torch.ones(1, dtype=torch.bool))[0])
        for row, length in zip(whole.cpu(), lengths, strict=True)
    ]
    return Generated(sequences, ranks, logprobs, torch.tensor(finished, device=new.device), lengths)


def stream(
    model: Transformer | EncoderDecoder,
    input_ids: Any,
    attention_mask: MaskLike = None,
    generation_config: GenerationConfig | None = None,
    *,
    tokenizer: Decodes | None = None,
    cache: CacheChoice = None,
    prefill_chunk: int | None = None,
    compile: bool | str = False,
    **options: Any,
) -> Iterator[Any]:
    """The answer to one prompt while it is written: token ids, or with a `tokenizer` pieces of text.

    Arguments as for `generate`. Pieces are whole characters, and joined they are the text of the answer as it reads
    behind the prompt; end tokens are not text. All checks are made before the first piece is asked for.

    ValueError: several prompts, beams or answers, of which nobody knows the best before the end; else as `generate`.

    >>> from oneblock.bricks import build_model
    >>> from oneblock.spec import Attention, Block, Embedding, FeedForward, Model
    >>> model = build_model(Model(8, Embedding(9), (Block(Attention(2), FeedForward(16)),)))
    >>> len(list(stream(model, [5, 6, 7], max_new_tokens=4)))
    4
    """
    config = chosen(generation_config, options)
    made = plan(model, input_ids, attention_mask, config, tokenizer, cache, prefill_chunk, compile)
    if len(made.before) > 1 or config.num_beams > 1 or config.num_return_sequences > 1:
        raise ValueError("stream: expected one prompt and one answer without beams; use generate for more")
    tokens = _tokens(model, made)
    return tokens if tokenizer is None else _texts(tokens, tokenizer, made)


def _tokens(model: nn.Module, made: Plan) -> Iterator[int]:
    with evaluating(model):
        for step in walk(made):
            yield int(step.tokens[0])


def _texts(tokens: Iterator[int], tokenizer: Decodes, made: Plan) -> Iterator[str]:
    prompt = [] if isinstance(made.model, EncoderDecoder) else [token for token in made.known[0].tolist() if token >= 0]
    pieces = Pieces(tokenizer.decode, prompt)
    for token in tokens:
        if token not in made.eos and (piece := pieces.add(token)):
            yield piece
    if rest := pieces.end():
        yield rest


def _walk(made: Plan) -> tuple[Tensor, Tensor, None]:
    """(the new tokens (rows, new), which of them are real, nothing)."""
    steps = list(walk(made))
    return torch.stack([step.tokens for step in steps], 1), torch.stack([step.live for step in steps], 1), None


def _beams(made: Plan) -> tuple[Tensor, Tensor, Tensor]:
    """(the new tokens (rows, new), which of them are real, the scores (rows,))."""
    found = [answer for answers in beams(made) for answer in answers]
    rows = [torch.tensor(answer.tokens, dtype=torch.long) for answer in found]
    new = pad_sequence(rows, batch_first=True, padding_value=made.pad)
    real = torch.arange(new.shape[1]) < torch.tensor([len(row) for row in rows])[:, None]
    device = made.before.device
    return new.to(device), real.to(device), torch.tensor([answer.score for answer in found], device=device)


def _logprobs(made: Plan, sequences: Tensor, new: Tensor, real: Tensor) -> Tensor:
    """The model's log-probability of each new token (rows, new), in one more pass."""
    many, mask = made.config.num_return_sequences, made.source.mask
    if isinstance(made.model, EncoderDecoder):
        ids, mask = (None if x is None else x.repeat_interleave(many, 0) for x in (made.source.ids, mask))
        return score(made.model, ids, new.masked_fill(~real, IGNORED), mask)
    shown = torch.ones_like(made.before) if mask is None else mask
    shown = torch.cat([shown.repeat_interleave(many, 0), real.long()], 1)
    return score(made.model, sequences.masked_fill(shown == 0, 0), attention_mask=shown)[:, made.before.shape[1] :]
