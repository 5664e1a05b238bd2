"""What a model answers. batch: sentences; length: tokens; dim: width of the stream."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from oneblock.bricks.context import Memory
from oneblock.cache import Cache


@dataclass(frozen=True, eq=False)
class Output:
    """The answer of a forward pass; what was not asked for is None.

    logits: (batch, length, vocab), or fewer positions with `logits_to_keep`; (batch, labels) of a classifier. loss:
    mean over `tokens` real tokens (or texts); 0 when every label is ignored. hidden_states: the stream before the first
    and after every block, (batch, length, dim) each. encoder_outputs: the final stream with its places: of the encoder,
    to pass on instead of encoding again, or of a model that stands alone; all there is to have of one without a head.
    pooled: (batch, dim), of a model that ends in one vector per text. balance: how unevenly experts were used, `active`
    where evenly.
    """

    logits: Tensor | None = None
    loss: Tensor | None = None
    tokens: int | None = None
    cache: Cache | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    encoder_outputs: Memory | None = None
    pooled: Tensor | None = None
    balance: Tensor | None = None
