"""The forms in which modules want to be told who is real: shapes, types, and what True means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Form:
    """How a mask over tokens is written: `make(real (batch, length), tokens)`."""

    said: str
    make: Callable[[Tensor, Tensor], Tensor]
    hides_where_true: bool = False


def additive(real: Tensor, like: Tensor) -> Tensor:
    """0 where real, -inf elsewhere."""
    dtype = like.dtype if like.is_floating_point() else torch.get_default_dtype()
    return torch.zeros(real.shape, dtype=dtype).masked_fill(~real, float("-inf"))


def everyone(real: Tensor) -> Tensor:
    """(batch, 1, length, length): every query may see the real keys."""
    return real[:, None, None, :].expand(-1, 1, real.shape[1], -1)


FORMS: dict[str, Form] = {
    "true real": Form("True = a real token", lambda real, _: real),
    "one real": Form("1 = a real token", lambda real, _: real.long()),
    "true hidden": Form("True = hidden", lambda real, _: ~real, True),
    "one hidden": Form("1 = hidden", lambda real, _: (~real).long(), True),
    "float hidden": Form("-inf = hidden, added", additive, True),
    "wide true real": Form("(batch, 1, 1, length), True = real", lambda real, _: real[:, None, None]),
    "wide true hidden": Form("(batch, 1, 1, length), True = hidden", lambda real, _: ~real[:, None, None], True),
    "wide additive": Form(
        "(batch, 1, 1, length), -inf = hidden, added", lambda real, like: additive(real, like)[:, None, None], True
    ),
    "square keys real": Form("(batch, 1, length, length), True = real", lambda real, _: everyone(real)),
    "square keys hidden": Form("(batch, 1, length, length), True = hidden", lambda real, _: ~everyone(real), True),
}


def square(form: str, tokens: Tensor) -> Tensor:
    """A causal mask (length, length) in one of three forms."""
    length = tokens.shape[1]
    visible = torch.ones(length, length, dtype=torch.bool).tril()
    if form == "square additive":
        return additive(visible, tokens)
    return visible if form == "square real" else ~visible
