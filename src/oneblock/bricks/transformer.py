"""A stack of blocks from ids to logits: an encoder, a decoder, or a language model, as its spec says.

ids: (batch, length); x: (batch, length, dim).
"""

from __future__ import annotations

from torch import Tensor, nn

from oneblock.bricks.attention import AttentionBrick
from oneblock.bricks.build import build
from oneblock.bricks.context import Context, Memory
from oneblock.bricks.dropout import Dropout
from oneblock.bricks.experts import imbalance
from oneblock.bricks.head import HEADS
from oneblock.bricks.init import initialise
from oneblock.bricks.output import Output
from oneblock.bricks.positions import score_bias
from oneblock.cache import Cache, make
from oneblock.mask import Places, places
from oneblock.spec import Causal, Model, atoms, validate
from oneblock.tap import tap


class Transformer(nn.Module):
    """The module of a `Model` spec."""

    def __init__(self, spec: Model) -> None:
        super().__init__()
        validate(spec)
        self.spec = spec
        self.embedding = build(spec.embedding, spec.dim)
        self.layers = nn.ModuleList(build(block, spec.dim) for block in spec.layers)
        heads = next((block.attention.heads for block in spec.layers if block.attention is not None), 1)
        self.position_bias = score_bias(spec.position_bias, heads)
        self.norm = build(spec.norm, spec.dim)
        self.dropout = Dropout(spec.dropout)
        self.head = None if spec.head is None else HEADS[type(spec.head)](spec.head, spec.dim, self.embedding.token)
        for name, module in self.named_modules():
            if isinstance(module, AttentionBrick):
                module.path = name
        initialise(self, len(spec.layers))

    @property
    def causal(self) -> bool:
        """Whether tokens see only what stands before them, so that labels are the inputs shifted by one."""
        masks = [block.attention.mask for block in self.spec.layers if block.attention is not None]
        return any(rule == Causal() or getattr(rule, "ahead", None) == 0 for mask in masks for rule in atoms(mask))

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        cache: Cache | None = None,
        use_cache: bool = False,
        output_hidden_states: bool = False,
        logits_to_keep: int | None = None,
    ) -> Output:
        """Run the model.

        Args:
            input_ids: (batch, length) token ids; or `inputs_embeds` (batch, length, dim) instead.
            attention_mask: (batch, length), 1 = real token, 0 = padding; with a cache it may cover past and new tokens.
            position_ids: (batch, length); by default real tokens are counted.
            token_type_ids: (batch, length) segments, where the embedding has them; by default 0.
            labels: (batch, length), the inputs themselves for a causal model (the shift is ours); -100 is ignored.
            cache: past tokens; it is filled in place and comes back in the output.
            use_cache: start a cache when none is given.
            output_hidden_states: give the stream before the first and after every block.
            logits_to_keep: logits of the last so many positions only; 0 gives none, so that with labels they never
                exist whole. None gives all.

        Raises:
            ValueError: for shapes that do not fit and for ids or lengths beyond the tables.
        """
        cache = started(cache, self.spec, use_cache)
        here = self.places(input_ids, attention_mask, position_ids, inputs_embeds, cache)
        ctx = Context(here, cache=cache, bias=self.position_bias)
        x, hidden = self.stream(input_ids, ctx, token_type_ids, inputs_embeds)
        kept = hidden if output_hidden_states else None
        known = {"cache": cache, "hidden_states": kept, "encoder_outputs": Memory(x, here)}
        return self.answer(x, ctx, labels, logits_to_keep, self.causal, **known)

    def places(
        self,
        ids: Tensor | None,
        mask: Tensor | None = None,
        position: Tensor | None = None,
        vectors: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Places:
        """Where the new tokens stand; tells the cache about them."""
        if (ids is None) == (vectors is None):
            raise ValueError("input: expected either input_ids or inputs_embeds")
        tokens = vectors if ids is None else ids
        if tokens.shape[1] == 0:
            raise ValueError("input_ids: expected at least one token, got none (an empty prompt)")
        past = cache.seen if cache else None
        here = places(tokens.shape[1], mask, position, None, past, tokens.device, self.spec.counted)
        if cache is not None:
            cache.begin(here)
        return here

    def stream(
        self, ids: Tensor | None, ctx: Context, segment: Tensor | None = None, vectors: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """(the stream after the final norm, the stream before the first and after every block)."""
        x = self.embedding(ids, ctx.here, segment, vectors)
        hidden = [x]
        for layer in self.layers:
            x = layer(x, ctx)
            hidden.append(x)
        return tap(self.dropout(self.norm(x)), "final"), tuple(hidden)

    def answer(
        self, x: Tensor, ctx: Context, labels: Tensor | None, keep: int | None, shift: bool, **known: object
    ) -> Output:
        """What the head makes of the final stream; with experts, how unevenly they were used weighs in the loss."""
        found = known if self.head is None else known | self.head.answer(x, ctx.here, labels, keep, shift)
        if ctx.routed and "loss" in found:
            found["balance"] = imbalance(ctx.routed, ctx.here.real)
            found["loss"] = found["loss"] + self.spec.balance * found["balance"]
        return Output(**found)


def started(cache: Cache | None, spec: Model, wanted: bool) -> Cache | None:
    """The cache to use: the one given, or a new one when wanted."""
    return make(spec) if cache is None and wanted else cache
