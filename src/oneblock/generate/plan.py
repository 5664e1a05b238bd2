"""What one call of `generate` will do, decided and checked before the model runs.

Shapes: batch = prompts, length = tokens of the longest of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from oneblock.bricks import EncoderDecoder, Transformer, shift_right
from oneblock.cache import Cache
from oneblock.generate.checks import checked
from oneblock.generate.config import GenerationConfig
from oneblock.generate.decode import CausalStepper, Seq2SeqStepper
from oneblock.generate.filters import Filter, filters
from oneblock.generate.kind import causal_or_pair, stream_of, writer_of
from oneblock.generate.prompts import MaskLike, Prompts, prompts
from oneblock.generate.room import CacheChoice, backend_of, cache_for
from oneblock.generate.stops import Decodes, StopStrings
from oneblock.spec import Model

__all__ = ["Plan", "plan"]


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that a way of choosing tokens needs.

    `source` is what the model reads. `before` (batch, length) is what the answer is written after and returned with:
    the prompts, or the start token of a decoder; `known` is the same with -1 for padding. `eos` may be empty.
    """

    model: Transformer | EncoderDecoder
    config: GenerationConfig
    source: Prompts
    before: Tensor
    known: Tensor
    filters: list[Filter]
    eos: tuple[int, ...]
    pad: int
    stops: StopStrings | None
    cache: Cache
    chunk: int | None
    backend: str | None
    draw: torch.Generator | None

    def begin(self) -> CausalStepper | Seq2SeqStepper:
        """The stepper; a source is read here, prompts in its first step."""
        if isinstance(self.model, EncoderDecoder):
            memory = self.model.encode(self.source.ids, self.source.mask)
            return Seq2SeqStepper(self.model, memory, self.cache, self.backend)
        return CausalStepper(self.model, self.source, self.cache, self.chunk, self.backend)


def plan(
    model: Transformer | EncoderDecoder,
    input_ids: Any,
    attention_mask: MaskLike,
    config: GenerationConfig,
    tokenizer: Decodes | None = None,
    cache: CacheChoice = None,
    prefill_chunk: int | None = None,
    compile: bool | str = False,
) -> Plan:
    """Decide and check. ValueError: whatever does not fit, before anything is computed."""
    pair, device = causal_or_pair(model, "generate") == "pair", next(model.parameters()).device
    reader, writer = stream_of(model), writer_of(model)
    eos = _ends(config, writer)
    given = next((t for t in (config.pad_token_id, reader.tokens.pad) if t is not None), None)
    pad = next((t for t in (given, *eos) if t is not None), 0)
    source = prompts(
        input_ids, attention_mask, pad=pad if 0 <= pad < reader.embedding.vocab else 0,
        own_pad=None if given in eos else given, vocab=reader.embedding.vocab, device=device,
        side=None if pair else "left",
    )  # fmt: skip
    before = shift_right(source.ids[:, :1], writer.tokens) if pair else source.ids
    room = before.shape[1] + config.max_new_tokens - 1
    source.fits(reader, 0 if pair else config.max_new_tokens - 1)
    if pair:
        Prompts(before, None).fits(writer, config.max_new_tokens - 1)
    if config.stops and tokenizer is None:
        raise ValueError("stop_strings: they need a tokenizer to read tokens as text; pass tokenizer=")
    if prefill_chunk is not None:
        prefill_chunk = checked("prefill_chunk", prefill_chunk)
    backend = backend_of(compile)
    return Plan(
        model, config, source, before, before if pair else source.known,
        filters(config, eos, before.shape[1], writer.embedding.vocab, device),
        eos, pad, StopStrings(tokenizer, config.stops) if config.stops and tokenizer else None,
        cache_for(cache, writer, room, backend), prefill_chunk, backend, _generator(config, device),
    )  # fmt: skip


def _ends(config: GenerationConfig, spec: Model) -> tuple[int, ...]:
    """The end tokens: those asked for, else the model's; a negative one stands for none."""
    asked, vocab = config.eos_token_id, spec.embedding.vocab
    if asked is None:
        own = (spec.tokens.eos, *spec.tokens.stop)
        return tuple(dict.fromkeys(token for token in own if token is not None and 0 <= token < vocab))
    several = (asked,) if isinstance(asked, int) else tuple(asked)
    if wrong := [token for token in several if token >= vocab]:
        raise ValueError(f"eos_token_id: expected ids of the vocabulary of {vocab}, got {wrong[0]}")
    return tuple(dict.fromkeys(token for token in several if token >= 0))


def _generator(config: GenerationConfig, device: torch.device) -> torch.Generator | None:
    """The source of chance, None where nothing is drawn; without a seed it follows `torch.manual_seed`."""
    if not config.sampled:
        return None
    seed = int(torch.randint(2**62, ())) if config.seed is None else config.seed
    return torch.Generator(device).manual_seed(seed)
