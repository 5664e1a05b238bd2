"""Runs whose scores are made large on purpose: what attention does with them tells whether masks and softmax hold.

Shapes: scores (…, queries, keys).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from oneblock.check.seeing.attended import Attended, attended, raw
from oneblock.check.seeing.sites import Site, sites
from oneblock.check.seeing.watch import Watch, name_of, watching
from oneblock.check.subject import Subject

Push = tuple[int, float, float, float]
"""(index of the queries among the arguments, what they and the keys are multiplied with, what is added to scores)."""


class Straining(Watch):
    """Multiplies queries and keys, or shifts scores, where a site of another run computed them."""

    def __init__(self, module: nn.Module, pushes: Mapping[tuple[str, str, int], Push]) -> None:
        super().__init__(module)
        self.pushes = pushes
        self.count: Counter[tuple[str, str]] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Push, run, note."""
        key = (self.path[-1], name_of(func))
        push = self.pushes.get((*key, self.count[key]))
        self.count[key] += 1
        if push is None:
            return super().__torch_dispatch__(func, types, args, kwargs)
        at, by_q, by_k, shift = push
        given = list(args)
        for index, by in ((at, by_q), (at + 1, by_k)):
            given[index] = given[index] * by
            self.alive.append(given[index])
            if id(args[index]) in self.made:
                self.made[id(given[index])] = self.made[id(args[index])]
        found = super().__torch_dispatch__(func, types, tuple(given), kwargs)
        if shift and isinstance(found, Tensor):
            found.add_(shift)
            self.operations[-1].result = found.clone()
        return found


def pushes_of(run: Attended, size: float, sign: int, shifted: bool) -> dict[tuple[str, str, int], Push]:
    """What is to be pushed where, so that scores reach about `size`."""
    count: Counter[tuple[str, str]] = Counter()
    number: dict[int, int] = {}
    for one in run.operations:
        number[one.number] = count[one.path, one.name]
        count[one.path, one.name] += 1
    found = {}
    for site in run.sites:
        start = site.softmax if site.fused else site.chain[0]
        if start is None or site.normed:
            continue
        key = (start.path, start.name, number[start.number])
        found[key] = push(site, size, sign, shifted)
    return found


def push(site: Site, size: float, sign: int, shifted: bool) -> Push:
    """What one site's queries, keys and scores are pushed with."""
    name = site.chain[0].name if site.chain else ""
    at = 1 if name in ("baddbmm", "addmm") else 0
    if shifted and not site.fused:
        return at, 1.0, 1.0, sign * size / (site.kernel or 1.0)
    by = max(size / max(float(raw(site).double().nan_to_num(0, 0, 0).abs().max()), 1e-6), 1.0) ** 0.5
    return at, sign * by, by, 0.0


def strained(
    subject: Subject, size: float, how: str = "", dtype: torch.dtype | None = None, sign: int = 1, shifted: bool = False
) -> Attended | None:
    """A run whose scores reach about `size`, None where it cannot be run.

    Queries and keys are multiplied (`sign` -1 turns all scores round), or `shifted`: all scores are moved by `size`, as
    large biases of queries and keys move them. Queries and keys that are normalised are left alone.
    """
    key = ("strained", size, how, dtype, sign, shifted)
    if key not in subject.memo:
        base = attended(subject, how)
        dtype = dtype or base.dtype
        twin = subject.copy(dtype)
        try:
            with watching(twin, Straining(twin, pushes_of(base, size, sign, shifted))) as watch:
                answer = subject.answer(base.ask, dtype)
            found = Attended(base.ask, answer, watch.operations, sites(watch.operations), dtype)
        except RuntimeError:
            found = None
        subject.memo[key] = found
    return subject.memo[key]  # type: ignore[no-any-return]
