"""Attention by plain loops over sentences, heads and queries: slow, obvious, and the judge of every faster way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import pytest
import torch
from torch import Tensor

from oneblock.mask import Places
from oneblock.spec import Causal, Every, Full, Mask, Window


def may(mask: Mask, q: int, k: int) -> bool:
    """Whether a query at index q may look at a key at index k, by the words of the mask's description."""
    if isinstance(mask, Every):
        return all(may(rule, q, k) for rule in mask.rules)
    if isinstance(mask, Window):
        return q - k <= mask.back - 1 and (mask.ahead is None or k - q <= mask.ahead)
    assert isinstance(mask, Full | Causal)
    return isinstance(mask, Full) or k <= q


def visible(mask: Mask, q: Places, k: Places, batch: int) -> list[list[list[bool]]]:
    """[sentence][query][key], one question at a time."""

    def of(field: Tensor | None, row: int, at: int, default: int) -> int:
        return default if field is None else int(field[row % len(field), at])

    return [
        [
            [
                may(mask, of(q.index, b, i, 0), of(k.index, b, j, 0))
                and of(k.real, b, j, 1) == 1
                and (q.document is None or k.document is None or of(q.document, b, i, 0) == of(k.document, b, j, 0))
                for j in range(k.length)
            ]
            for i in range(q.length)
        ]
        for b in range(batch)
    ]


def loops(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    see: list[list[list[bool]]],
    scale: float,
    bias: Tensor | None = None,
    softcap: float | None = None,
) -> Tensor:
    """(batch, heads, query, value_dim): each query takes the softmax over keys it sees, or zeros."""
    batch, heads, queries, _ = q.shape
    group = heads // k.shape[1]
    rows = []
    for b in range(batch):
        for h in range(heads):
            for i in range(queries):
                seen = [j for j, may_look in enumerate(see[b][i]) if may_look]
                if not seen:
                    rows.append(0 * v[b, 0, 0])
                    continue
                scores = torch.stack([scale * torch.dot(q[b, h, i], k[b, h // group, j]) for j in seen])
                if softcap is not None:
                    scores = softcap * torch.tanh(scores / softcap)
                if bias is not None:
                    scores = scores + torch.stack([bias[b % len(bias), h, i, j] for j in seen])
                weights = scores.exp() / scores.exp().sum()
                rows.append(sum(w * v[b, h // group, j] for w, j in zip(weights, seen, strict=True)))
    return torch.stack(rows).view(batch, heads, queries, -1)


@contextmanager
def chunked(size: int = 2) -> Iterator[None]:
    """Let attention believe that every text is long: queries are computed `size` at a time."""
    file = import_module("oneblock.bricks.attend")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file, "LARGE", 0)
        patch.setattr(file, "CHUNK", size)
        yield
