"""Encoder and decoder: the source is read once, the target is written token by token and looks back at it.

source ids: (batch, source); target ids: (rows, target); rows = batch, or a multiple when beams share a source.
"""

from __future__ import annotations

from torch import Tensor, nn

from oneblock.bricks.context import Context, Memory
from oneblock.bricks.loss import IGNORED
from oneblock.bricks.output import Output
from oneblock.bricks.transformer import Transformer, started
from oneblock.cache import Cache
from oneblock.spec import Classify, Seq2Seq, Tokens, validate


class EncoderDecoder(nn.Module):
    """The module of a `Seq2Seq` spec."""

    def __init__(self, spec: Seq2Seq) -> None:
        super().__init__()
        validate(spec)
        self.spec = spec
        self.encoder, self.decoder = Transformer(spec.encoder), Transformer(spec.decoder)
        self.classifies = isinstance(spec.decoder.head, Classify)
        if spec.share:
            self.encoder.embedding.token = self.decoder.embedding.token

    def encode(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
    ) -> Memory:
        """The encoder's output, to be passed on as `encoder_outputs`."""
        here = self.encoder.places(input_ids, attention_mask, position_ids, inputs_embeds)
        ctx = Context(here, bias=self.encoder.position_bias)
        return Memory(self.encoder.stream(input_ids, ctx, token_type_ids, inputs_embeds)[0], here)

    def features(
        self, memory: Memory, ids: Tensor, mask: Tensor | None = None, cache: Cache | None = None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """(the decoder's final stream (rows, target, dim), the streams on the way)."""
        return self.decoder.stream(ids, self.context(memory, ids, mask, cache))

    def context(self, memory: Memory, ids: Tensor, mask: Tensor | None = None, cache: Cache | None = None) -> Context:
        """What the decoder may know about its own tokens and the source."""
        return Context(self.decoder.places(ids, mask, cache=cache), memory, cache, self.decoder.position_bias)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Memory | None = None,
        cache: Cache | None = None,
        use_cache: bool = False,
        output_hidden_states: bool = False,
        logits_to_keep: int | None = None,
    ) -> Output:
        """Run the model; arguments as in `Transformer.forward`, of the source unless they say decoder.

        Args:
            labels: (batch, target) including the end token, -100 is ignored. Without `decoder_input_ids` the decoder
                reads them shifted right behind the start token. Of a classifier (batch,), one for each text: its
                decoder reads the source itself, shifted right.
            decoder_input_ids: (rows, target); row r attends to source r // (rows / batch).
            decoder_attention_mask: (rows, target), 1 = real; padding on the right needs none under a causal mask.
            encoder_outputs: from `encode` or an earlier output, instead of the source.
        """
        memory = encoder_outputs or self.encode(input_ids, attention_mask, position_ids, token_type_ids, inputs_embeds)
        ids, mask = decoder_input_ids, decoder_attention_mask
        if ids is None:
            text, mask = (input_ids, attention_mask) if self.classifies else (labels, mask)
            ids = shift_right(text, self.spec.decoder.tokens)
        cache = started(cache, self.spec.decoder, use_cache)
        ctx = self.context(memory, ids, mask, cache)
        x, hidden = self.decoder.stream(ids, ctx)
        known = {"cache": cache, "hidden_states": (None, hidden)[output_hidden_states], "encoder_outputs": memory}
        return self.decoder.answer(x, ctx, labels, logits_to_keep, False, **known)


def shift_right(labels: Tensor | None, tokens: Tokens) -> Tensor:
    """Teacher forcing: the start token, then the labels without their last; -100 is read as padding.

    >>> import torch
    >>> shift_right(torch.tensor([[105, 495, 53, 0, -100]]), Tokens(pad=58100, start=58100)).tolist()
    [[58100, 105, 495, 53, 0]]
    """
    if labels is None:
        raise ValueError("decoder_input_ids: expected them or labels, got neither")
    start = next((t for t in (tokens.start, tokens.bos, tokens.pad) if t is not None), None)
    if start is None:
        raise ValueError("tokens.start: the spec names no token to start from; set Tokens(start=...)")
    read = labels.masked_fill(labels == IGNORED, start if tokens.pad is None else tokens.pad)
    return nn.functional.pad(read[:, :-1], (1, 0), value=start)
