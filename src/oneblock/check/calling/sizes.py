"""How many ids a module knows, how wide its vectors are, how long its texts: from its parts and its configuration."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

LONGEST = (
    "max_position_embeddings", "n_positions", "block_size", "max_len", "max_length", "max_seq_len",
    "context_length", "n_ctx",
)  # fmt: skip
VOCAB = (
    "vocab_size", "n_vocab", "vocab", "src_vocab_size",
)  # fmt: skip
DIM = (
    "hidden_size", "d_model", "n_embd", "dim", "embed_dim", "embedding_dim", "model_dim",
)  # fmt: skip
SPECIAL = (
    "pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id", "mask_token_id", "sep_token_id",
    "cls_token_id", "forced_eos_token_id", "unk_token_id",
)  # fmt: skip


@dataclass(frozen=True)
class Sizes:
    """Sizes of a module's inputs; `None` is not known."""

    embeds: bool = False
    vocab: int | None = None
    dim: int | None = None
    source_vocab: int | None = None
    source_dim: int | None = None
    longest: int | None = None
    pad: int = 0
    avoid: frozenset[int] = frozenset()
    batch_first: bool | None = None
    dims: tuple[int, ...] = ()

    def draw(self, batch: int, length: int, ids: bool, draw: torch.Generator, source: bool = False) -> Tensor:
        """Random ids or vectors."""
        if not ids:
            dim = (self.source_dim or self.dim) if source else self.dim
            return torch.randn(batch, length, dim or 1, generator=draw)
        usable = torch.tensor(self.usable((self.source_vocab or self.vocab) if source else self.vocab))
        return usable[torch.randint(len(usable), (batch, length), generator=draw)]

    def usable(self, vocab: int | None) -> list[int]:
        """Ids that mean nothing special."""
        return usable_ids(vocab or 2, self.avoid, self.pad)

    def next(self, token: Tensor) -> int:
        """Another usable id."""
        usable = self.usable(self.vocab)
        index = usable.index(int(token)) if int(token) in usable else 0
        return usable[(index + 1) % len(usable)]

    def widths(self, ids: bool, source_ids: bool | None) -> Iterator[Sizes]:
        """These sizes with each likely width, where vectors are wanted; source and target may differ."""
        if ids and source_ids is not False:
            yield self
        else:
            for dim in self.dims:
                yield replace(self, dim=dim, source_dim=dim)
            for dim in self.dims[:4]:
                for other in self.dims[:4]:
                    if other != dim and source_ids is False:
                        yield replace(self, dim=dim, source_dim=other)


def usable_ids(vocab: int, avoid: Collection[int], pad: int) -> list[int]:
    """Ids below `vocab` that mean nothing special; all, where none are left."""
    return [n for n in range(vocab) if n not in avoid and n != pad] or list(range(vocab))


def sizes_of(module: nn.Module) -> Sizes:
    """Sizes of a module, as its parts and its configuration tell them."""
    config = getattr(module, "config", None)
    tables = [part for part in module.modules() if isinstance(part, nn.Embedding)]
    said = number(config, VOCAB) or number(module, VOCAB)
    longest = number(config, LONGEST) or number(module, LONGEST)
    vocabs = [table.num_embeddings for table in tables]
    vocab = said if said in vocabs or (said and not vocabs) else min(vocabs, default=said)
    dims = list(dict.fromkeys(filter(None, [number(config, DIM), *likely_dims(module), number(module, DIM)])))
    pads = [table.padding_idx for table in tables if table.padding_idx is not None]
    pad = number(config, ["pad_token_id"], zero=True)
    flags = [flag for part in module.modules() if type(flag := getattr(part, "batch_first", None)) is bool]
    special = {number(config, [name], zero=True) for name in SPECIAL} - {None}
    return Sizes(
        embeds=bool(tables) or said is not None,
        vocab=vocab,
        dim=dims[0] if dims else None,
        source_vocab=vocab,
        source_dim=dims[0] if dims else None,
        longest=longest,
        pad=pad if pad is not None else (pads[0] if pads else 0),
        avoid=frozenset(int(n) for n in special if n is not None),
        batch_first=flags[0] if flags else None,
        dims=tuple(dims),
    )


def number(holder: Any, names: Sequence[str], zero: bool = False) -> int | None:
    """The first of these attributes that is a whole number above 0 (or 0, if that means something)."""
    for name in names:
        value = getattr(holder, name, None)
        if type(value) is int and (value > 0 or (zero and value == 0)):
            return value
    return None


def likely_dims(module: nn.Module) -> list[int]:
    """Widths that vectors may have, the likeliest first."""
    found: list[int] = []
    for part in module.modules():
        if isinstance(part, nn.MultiheadAttention):
            found.append(part.embed_dim)
        elif isinstance(part, nn.LayerNorm | nn.RMSNorm):
            found.append(int(part.normalized_shape[-1]))
        elif isinstance(part, nn.Linear):
            found.append(part.in_features)
        elif isinstance(part, nn.Embedding):
            found.append(part.embedding_dim)
    return found or [x.shape[-1] for x in module.parameters() if x.ndim][:4]
