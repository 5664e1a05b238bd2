"""A mask, the places of queries and keys, and a bias: symbolic until a kernel needs its arguments.

batch, heads, query, key: the axes of attention scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from oneblock.mask.meaning import allowed
from oneblock.mask.places import Places
from oneblock.spec import Causal, Full, Mask, atoms

Bias = Callable[[Places, Places], Tensor]
"""Gives what is added to the scores: (batch | 1, heads, query, key)."""


@dataclass(frozen=True, eq=False)
class Sight:
    """Who sees whom in one attention. What a kernel asks for is made once and kept."""

    mask: Mask
    q: Places
    k: Places
    bias: Bias | None = None
    made: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def symbolic(self) -> bool:
        """Whether a kernel needs no mask tensor at all: nothing is hidden, or exactly the future."""
        newest = self.q.length == 1 and self.q is self.k.last  # it has no future
        free = atoms(self.mask) == {Full()} or (atoms(self.mask) == {Causal()} and (self.q is self.k or newest))
        return free and self.k.plain and self.bias is None

    @property
    def size(self) -> int:
        """Entries of the scores of one head of one sentence."""
        return self.q.length * self.k.length

    @property
    def visible(self) -> Tensor:
        """bool (batch | 1, 1, query | 1, key): True = may look."""
        return self._once("visible", lambda: allowed(self.mask, self.q, self.k)[:, None])

    @property
    def added(self) -> Tensor | None:
        """What is added to the scores before the mask: (batch | 1, heads, query, key)."""
        return None if self.bias is None else self._once("added", lambda: self.bias(self.q, self.k))

    @property
    def kernel(self) -> dict[str, Any]:
        """The cheapest arguments of `F.scaled_dot_product_attention` that mean this.

        `is_causal` only where queries are the keys: the kernel aligns the diagonal top-left.
        """
        return self._once("kernel", self._kernel)

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        # Not functools.cached_property: its lock would break a compiled graph (Python 3.11).
        if name not in self.made:
            self.made[name] = make()
        return self.made[name]

    def _kernel(self) -> dict[str, Any]:
        if self.symbolic:
            return {"is_causal": True} if Causal() in atoms(self.mask) and self.q is self.k else {}
        if self.added is None:
            return {"attn_mask": self.visible}
        return {"attn_mask": self.added.masked_fill(~self.visible, -torch.inf)}

    def rows(self, start: int, stop: int) -> Sight:
        """The same for queries start ... stop - 1 only."""
        return Sight(self.mask, self.q.part(start, stop), self.k, self.bias)
