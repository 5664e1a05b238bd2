"""One token at a time through a model that remembers: a prompt is read at once, then each step reads one token.

An encoder runs once. Its output is kept once for each sentence, however many beams look at it: rows of the decoder
that belong to one sentence stand side by side, and the model finds their sentence by division.

Shapes: batch = prompts or sentences, rows = batch * beams, length = tokens read before, vocab = tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from oneblock.bricks import Context, EncoderDecoder, Memory, Transformer
from oneblock.cache import Cache, make
from oneblock.generate.prompts import Prompts

__all__ = ["CausalStepper", "Seq2SeqStepper", "decode"]


class CausalStepper:
    """The stepper of a causal model; its first step reads the prompts, whose last tokens it is called with.

    `chunk` is how many tokens of a prompt are read at once (None: all). `compile` makes one graph of a step, by the
    name of a backend of `torch.compile`; it needs a static cache.

    >>> from oneblock.bricks import build_model
    >>> from oneblock.spec import Attention, Block, Embedding, FeedForward, Model
    >>> model = build_model(Model(8, Embedding(9), (Block(Attention(2), FeedForward(16)),))).eval()
    >>> stepper = CausalStepper(model, Prompts(torch.tensor([[5, 6, 2], [7, 8, 3]]), None))
    >>> stepper(torch.tensor([2, 3])).shape, stepper(torch.tensor([4, 4])).shape, len(stepper.cache)
    (torch.Size([2, 9]), torch.Size([2, 9]), 4)
    """

    def __init__(
        self,
        model: Transformer,
        prompts: Prompts,
        cache: Cache | None = None,
        chunk: int | None = None,
        compile: str | None = None,
    ) -> None:
        self.model, self.prompts, self.chunk, self.compile = model, prompts, chunk, compile
        self.cache = make(model.spec) if cache is None else cache

    def __call__(self, tokens: Tensor) -> Tensor:
        """Append one token to each row; the logits of what comes next (rows, vocab)."""
        if not len(self.cache):
            return self.prefill()
        if self.compile is not None:
            return decode(self.model, tokens, self.cache, compiled(self.compile))
        logits: Tensor = self.model(tokens[:, None], cache=self.cache).logits[:, -1]
        return logits

    def prefill(self) -> Tensor:
        """Read the prompts, in chunks; the logits of what comes next (batch, vocab)."""
        ids, mask = self.prompts.ids, self.prompts.mask
        length = ids.shape[1]
        chunk = self.chunk or length
        starts = range(0, length, chunk)
        for start in starts:
            stop = start + chunk
            shown = None if mask is None else mask[:, :stop]
            out = self.model(ids[:, start:stop], shown, cache=self.cache, logits_to_keep=int(stop >= length))
        logits: Tensor = out.logits[:, -1]
        return logits

    def reorder(self, rows: Tensor, sentences: Tensor | None) -> None:  # noqa: ARG002
        """Follow the search: row i continues `rows[i]`."""
        self.cache.reorder(rows)


class Seq2SeqStepper:
    """The stepper of an encoder-decoder: `memory` is what `model.encode` gave for the batch.

    >>> from oneblock.bricks import build_model
    >>> from oneblock.zoo import named
    >>> model = build_model(named("vaswani", dim=8, depth=1, heads=2, hidden=16, vocab=9)).eval()
    >>> stepper = Seq2SeqStepper(model, model.encode(torch.tensor([[5, 6, 2], [7, 8, 2]])))
    >>> stepper(torch.tensor([1, 1])).shape
    torch.Size([2, 9])
    """

    def __init__(
        self, model: EncoderDecoder, memory: Memory, cache: Cache | None = None, compile: str | None = None
    ) -> None:
        self.model, self.memory, self.compile = model, memory, compile
        self.cache = make(model.spec.decoder) if cache is None else cache

    def __call__(self, tokens: Tensor) -> Tensor:
        """Append one token to each row; the logits of what comes next (rows, vocab)."""
        if self.compile is not None and len(self.cache):
            return decode(self.model.decoder, tokens, self.cache, compiled(self.compile), self.memory)
        out = self.model(encoder_outputs=self.memory, decoder_input_ids=tokens[:, None], cache=self.cache)
        logits: Tensor = out.logits[:, -1]
        return logits

    def reorder(self, rows: Tensor, sentences: Tensor | None) -> None:
        """Follow the search: row i continues `rows[i]`; the memory is kept for `sentences` only, None: for all."""
        self.cache.reorder(rows, memory_rows=sentences)
        if sentences is not None:
            self.memory = Memory(self.memory.x[sentences], self.memory.places.rows(sentences))


def decode(
    decoder: Transformer, tokens: Tensor, cache: Cache, graph: Callable[..., Tensor], memory: Memory | None = None
) -> Tensor:
    """One step whose shapes are always the same, so that its `graph` is made once: the logits (rows, vocab).

    Counting tokens and places happens out here; with a static cache, what goes in has the size of its whole room.
    """
    ids = tokens[:, None]
    return graph(decoder, ids, Context(decoder.places(ids, cache=cache), memory, cache, decoder.position_bias))


def step(decoder: Transformer, ids: Tensor, ctx: Context) -> Tensor:
    """From the ids (rows, 1) to the logits (rows, vocab)."""
    x = decoder.stream(ids, ctx)[0]  # (rows, 1, dim)
    logits: Tensor = decoder.head(x)[:, -1]
    return logits


@lru_cache
def compiled(backend: str) -> Callable[..., Tensor]:
    """`step` as one graph."""
    return torch.compile(step, backend=backend, fullgraph=True)
