"""One decoder step at a time through a model with a memory of the source, and the score of a given translation.

The encoder runs once. Its output is kept once for each sentence, however many beams look at it: rows of the decoder
that belong to one sentence stand side by side, and the model finds their sentence by division.

Shapes: batch = sentences, rows = batch * beams, length = source tokens, target = target tokens, vocab = tokens.
"""

import torch
from torch import Tensor

from oneblock.bricks import EncoderDecoder, Memory, shift_right
from oneblock.bricks.loss import IGNORED
from oneblock.cache import make

__all__ = ["Seq2SeqStepper", "score"]


class Seq2SeqStepper:
    """The stepper of an encoder-decoder: `memory` is what `model.encode` gave for the batch.

    >>> from oneblock.bricks import build_model
    >>> from oneblock.zoo import named
    >>> model = build_model(named("vaswani", dim=8, depth=1, heads=2, hidden=16, vocab=9)).eval()
    >>> stepper = Seq2SeqStepper(model, model.encode(torch.tensor([[5, 6, 2], [7, 8, 2]])))
    >>> stepper(torch.tensor([1, 1])).shape
    torch.Size([2, 9])
    """

    def __init__(self, model: EncoderDecoder, memory: Memory) -> None:
        self.model, self.memory, self.cache = model, memory, make(model.spec.decoder)

    def __call__(self, tokens: Tensor) -> Tensor:
        """Append one token to each row; the logits of what comes next (rows, vocab)."""
        out = self.model(encoder_outputs=self.memory, decoder_input_ids=tokens[:, None], cache=self.cache)
        logits: Tensor = out.logits[:, -1]
        return logits

    def reorder(self, rows: Tensor, sentences: Tensor | None) -> None:
        """Follow the search: row i continues `rows[i]`; the memory is kept for `sentences` only, None: for all."""
        self.cache.reorder(rows, memory_rows=sentences)
        if sentences is not None:
            self.memory = Memory(self.memory.x[sentences], self.memory.places.rows(sentences))


@torch.no_grad()
def score(model: EncoderDecoder, input_ids: Tensor, targets: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """The log-probability of each token of given translations (batch, target), float32; 0 where there is no target.

    `input_ids` and `attention_mask` are (batch, length) as for the model; `targets` (batch, target) have the end token
    and -100 behind it. All tokens are scored in one pass, each after the true ones before it; the sum over a row is
    what a search reports as `logprob`. The model is used in the mode it is in.

    ValueError: no start token in the model's spec.

    >>> from oneblock.bricks import build_model
    >>> from oneblock.zoo import named
    >>> model = build_model(named("vaswani", dim=8, depth=1, heads=2, hidden=16, vocab=9)).eval()
    >>> score(model, torch.tensor([[5, 6, 2]]), torch.tensor([[7, 2, -100]])).shape
    torch.Size([1, 3])
    """
    read = shift_right(targets, model.spec.decoder.tokens)
    out = model(input_ids, attention_mask=attention_mask, decoder_input_ids=read)
    logprob: Tensor = out.logits.float().log_softmax(-1).gather(-1, targets.clamp(min=0)[:, :, None])[:, :, 0]
    return logprob.masked_fill(targets == IGNORED, 0.0)
