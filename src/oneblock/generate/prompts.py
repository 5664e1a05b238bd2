"""Prompts of any length as one batch: padded on the left, so that what comes next stands in one column.

Shapes: batch = prompts, length = tokens of the longest of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from oneblock.generate.checks import shown
from oneblock.spec import Learned, Model

__all__ = ["MaskLike", "Prompts", "prompts", "within"]

MaskLike = Tensor | Sequence[Sequence[int]] | None
"""(batch, length), 1 at real tokens; None where all are real."""


@dataclass(frozen=True, eq=False)
class Prompts:
    """`ids` (batch, length), and `mask` (batch, length), 1 at real tokens, None where all are real."""

    ids: Tensor
    mask: Tensor | None

    @property
    def known(self) -> Tensor:
        """The ids with -1 for padding."""
        return self.ids if self.mask is None else self.ids.where(self.mask.bool(), -1)

    @property
    def longest(self) -> int:
        """Real tokens of the longest prompt."""
        return self.ids.shape[1] if self.mask is None else int(self.mask.sum(1).max())

    def fits(self, spec: Model, new: int = 0) -> None:
        """Refuse what a table of positions has no row for; warn where a model was trained on less.

        `new` tokens more will be read.
        """
        length = self.ids.shape[1] if spec.counted == "all" else self.longest
        within(length, spec, new)
        if _table(spec) is None and spec.length is not None and length + new > spec.length:
            needs = _needs(length, new)
            warnings.warn(f"{needs}: the model was trained on at most {spec.length} and may ramble", stacklevel=5)


def within(length: int, spec: Model, new: int = 0) -> None:
    """Refuse `length` tokens, and `new` ones more, where a table of positions has fewer rows."""
    table = _table(spec)
    if table is not None and length + new > table:
        raise ValueError(
            f"input_ids: the model has {table} positions, {_needs(length, new)} need more; shorten the prompt"
            + (" or lower max_new_tokens" if new else "")
        )


def prompts(
    input_ids: Any,
    attention_mask: MaskLike = None,
    *,
    pad: int = 0,
    own_pad: int | None = None,
    vocab: int | None = None,
    device: torch.device | str = "cpu",
    side: Literal["left"] | None = "left",
) -> Prompts:
    """A batch from ids (batch, length) or (length,), or from a list of prompts of any lengths.

    Ids may be tensors, arrays or lists. `attention_mask` is (batch, length), 1 at real tokens; without it, ids of a
    tensor equal to `own_pad` are padding. Padding moves to the left and columns of nothing else are left out; with
    `side=None` a tensor stays as it is. Rows of a list are filled up with `pad`: on the left, with `side=None` on the
    right.

    ValueError: an empty prompt, ids that are no whole numbers or no ids of the `vocab`, a mask that does not fit.

    >>> made = prompts([[5], [6, 7, 8]])
    >>> made.ids.tolist(), made.mask.tolist()
    ([[0, 0, 5], [6, 7, 8]], [[0, 0, 1], [1, 1, 1]])
    """
    ids, mask = _tensor(input_ids, attention_mask, pad)
    ids, mask = ids.to(device), None if mask is None else mask.to(device)
    if mask is None and own_pad is not None:
        mask = (ids != own_pad).long()
    if ids.shape[0] == 0 or ids.shape[1] == 0:
        raise ValueError("input_ids: expected at least one token, got none (an empty prompt)")
    if mask is None:
        return Prompts(_checked(ids, None, vocab), None)
    if mask.shape != ids.shape:
        raise ValueError(f"attention_mask: expected {tuple(ids.shape)} as input_ids, got {tuple(mask.shape)}")
    mask = (mask != 0).long()
    lengths = mask.sum(1)
    if not bool(lengths.all()):
        empty = int((lengths == 0).nonzero()[0]) + 1
        raise ValueError(f"input_ids: expected at least one token, got none in prompt {empty} (an empty prompt)")
    ids = _checked(ids, mask, vocab)
    if bool(mask.all()):
        return Prompts(ids, None)
    if side == "left":
        order = mask.argsort(dim=1, stable=True)[:, ids.shape[1] - int(lengths.max()) :]
        ids, mask = ids.gather(1, order), mask.gather(1, order)
    return Prompts(ids, None if bool(mask.all()) else mask)


def _tensor(input_ids: Any, mask: Any, pad: int) -> tuple[Tensor, Tensor | None]:
    """(ids (batch, length), what is known of padding (batch, length))."""
    if hasattr(input_ids, "__array__"):  # a tensor or an array
        return _whole(input_ids, (1, 2)), _mask(mask)
    if not isinstance(input_ids, Sequence) or isinstance(input_ids, str | bytes):
        raise ValueError(f"input_ids: expected token ids, got {type(input_ids).__name__}; encode the text first")
    rows = [input_ids] if all(isinstance(item, int) for item in input_ids) else input_ids
    tensors = [_whole(row, (1,))[0] for row in rows]
    length = max((len(row) for row in tensors), default=0)
    if mask is not None and any(len(row) < length for row in tensors):
        raise ValueError("attention_mask: prompts of several lengths need none, their lengths say it; leave it out")
    ids, real = torch.full((len(tensors), length), pad), torch.zeros(len(tensors), length, dtype=torch.long)
    for row, filled, there in zip(tensors, ids, real, strict=True):
        filled[: len(row)], there[: len(row)] = row, 1
    return ids, real if mask is None else _mask(mask)


def _whole(ids: Any, axes: tuple[int, ...]) -> Tensor:
    """Ids (batch, length) from whole numbers (length,) or (batch, length), as many `axes` as they may have."""
    try:
        found = torch.as_tensor(ids)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise ValueError(
            f"input_ids: expected whole numbers (batch, length), got {shown(ids)}; encode texts first"
        ) from None
    nothing = not isinstance(ids, Tensor) and found.numel() == 0  # an empty list counts as float
    other = found.is_floating_point() or found.is_complex() or found.dtype == torch.bool
    if found.ndim not in axes or (other and not nothing):
        got = f"{found.dtype} {tuple(found.shape)}"
        raise ValueError(f"input_ids: expected whole numbers (batch, length), got {got}")
    return (found[None] if found.ndim == 1 else found).long()


def _mask(mask: Any) -> Tensor | None:
    """A mask (batch, length) from whatever has its numbers."""
    try:
        found = None if mask is None else torch.as_tensor(mask)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise ValueError(f"attention_mask: expected numbers (batch, length), got {shown(mask)}") from None
    return found[None] if found is not None and found.ndim == 1 else found


def _table(spec: Model) -> int | None:
    """Rows of the table of positions, None where there is none."""
    position = spec.embedding.position
    return position.length if isinstance(position, Learned) else None


def _needs(length: int, new: int) -> str:
    return f"{length} tokens" + (f" and {new} of the answer" if new else "")


def _checked(ids: Tensor, mask: Tensor | None, vocab: int | None) -> Tensor:
    """The ids; padding that no table of embeddings can look up becomes 0."""
    if vocab is None:
        return ids
    wrong = (ids < 0) | (ids >= vocab)
    real = wrong if mask is None else wrong & (mask != 0)
    if bool(real.any()):
        raise ValueError(
            f"input_ids: expected ids of the vocabulary of {vocab}, got {int(ids[real][0])}; is this its tokenizer?"
        )
    return ids.masked_fill(wrong, 0)
