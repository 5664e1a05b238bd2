"""A module under question: copies of it in each precision, asked again and again, the module itself left as it was."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from oneblock.check.asked import CannotAskError
from oneblock.check.calling.adapter import Adapter, Answer, Ask
from oneblock.check.calling.sizes import usable_ids
from oneblock.check.copies import copied, shake, undisturbed
from oneblock.check.finding import Fault, Number, Severity, Where
from oneblock.check.seeing.watch import Operation, watching

LENGTHS = (7, 11, 13, 5, 6, 9)
"""Lengths to ask with: one that no width of the model equals, so that the axis of time is known by its size."""
BATCH = 2


@dataclass
class Subject:
    """What checks are given.

    `shaken` copies have noise on all weights: branches that start at zero would hide what they do wrong.
    """

    module: nn.Module
    adapter: Adapter
    seed: int = 0
    deadline: float = float("inf")
    reference: Callable[[], nn.Module] | None = None
    copies: dict[tuple[torch.dtype, bool], nn.Module] = field(default_factory=dict)
    memo: dict[Any, Any] = field(default_factory=dict)

    # What it is

    @property
    def kind(self) -> str:
        """decoder, encoder or seq2seq."""
        return self.adapter.kind

    @property
    def causal(self) -> bool:
        """Whether a token must not see later ones."""
        return self.adapter.kind != "encoder"

    @property
    def config(self) -> Any:
        """The configuration that the module carries, if any: read only, never trusted over behaviour."""
        return getattr(self.module, "config", None)

    def needs(self, *fields: str) -> None:
        """Skip the check where the module does not take what the question needs."""
        for one in fields:
            if one not in self.adapter.takes:
                raise CannotAskError("the module takes no {}", one.replace("_", " "))

    # Copies

    def copy(self, dtype: torch.dtype = torch.float64, shaken: bool = True) -> nn.Module:
        """A copy in eval mode, made once; `shaken`: with noise a third as wide as each tensor's own spread."""
        dtype = self.usable(dtype)
        key = (dtype, shaken)
        if key not in self.copies:
            with undisturbed(self.seed):
                twin = copied(self.module).to("cpu").to(dtype).eval()
                if shaken:
                    shake(twin)
            self.copies[key] = twin
        return self.copies[key]

    def fresh(self, dtype: torch.dtype = torch.float64) -> nn.Module:
        """A copy in eval mode for one question alone: as the module is, and never asked before."""
        return copied(self.module).to("cpu").to(self.usable(dtype)).eval()

    def usable(self, dtype: torch.dtype) -> torch.dtype:
        """float32 for float64 where the module is only right in float32: its fills and softmaxes may not know more."""
        if dtype != torch.float64:
            return dtype
        if "usable" not in self.memo:
            self.memo["usable"] = dtype  # while it is tried
            fits = self.finite(dtype)
            self.memo["usable"] = dtype if all(fits) or sum(self.finite(torch.float32)) <= sum(fits) else torch.float32
        usable: torch.dtype = self.memo["usable"]
        return usable

    def finite(self, dtype: torch.dtype) -> list[bool]:
        """Whether a plain question, and questions that hide much, are answered in numbers in this precision."""
        ask = self.ask()
        asks = [ask]
        for name, x in (("real", ask.tokens), ("source_real", ask.source)):
            if name in self.adapter.takes and x is not None:
                real = torch.ones(x.shape[:2], dtype=torch.bool)
                real[0, : 2 if name == "real" and self.causal else None] = False
                asks.append(ask.but(**{name: real}))
        found = []
        for one in asks:
            try:
                found.append(bool(self.answer(one, dtype).y.isfinite().all()))
            except CannotAskError:
                raise
            except Exception:
                found.append(False)
        return found

    # Questions

    @property
    def sizes(self) -> set[int]:
        """Every size of a weight."""
        if "sizes" not in self.memo:
            held = self.module.state_dict().values()
            self.memo["sizes"] = {size for x in held if isinstance(x, Tensor) for size in x.shape}
        found: set[int] = self.memo["sizes"]
        return found

    @property
    def numbers(self) -> set[int]:
        """Every whole number that a part keeps: of heads, groups, experts."""
        return {value for part in self.module.modules() for value in vars(part).values() if type(value) is int}

    @property
    def length(self) -> int:
        """A length that is no other size in the model."""
        if "length" not in self.memo:
            most = self.adapter.longest or max(LENGTHS)
            fits = [n for n in LENGTHS if n <= most]
            if not fits:
                raise CannotAskError("the longest text has {} tokens", most)
            taken = self.sizes | self.numbers
            free = [n for n in fits if n not in taken] or [n for n in fits if n not in self.sizes] or fits
            self.memo["length"] = free[0]
        return int(self.memo["length"])

    def ask(self, batch: int = BATCH, length: int | None = None, seed: int = 0) -> Ask:
        """A random question: all tokens real, no labels; a source, where there is one, is one longer."""
        length = length or self.length
        draw = torch.Generator().manual_seed(1000 * self.seed + seed)
        tokens = self.tokens(batch, length, draw)
        source = None
        if self.kind == "seq2seq":
            source = self.tokens(batch, length + (not self.adapter.even), draw, source=True)
        return Ask(tokens, source=source)

    def tokens(self, batch: int, length: int, draw: torch.Generator | int, source: bool = False) -> Tensor:
        """Random ids (batch, length) that mean nothing special, or vectors (batch, length, dim)."""
        draw = draw if isinstance(draw, torch.Generator) else torch.Generator().manual_seed(draw)
        one = self.adapter
        vocab = (one.source_vocab or (None if one.source_dim else one.vocab)) if source else one.vocab
        if vocab is None:
            dim = (one.source_dim or one.dim) if source else one.dim
            return torch.randn(batch, length, int(dim or 0), generator=draw)
        usable = torch.tensor(usable_ids(vocab, one.avoid, one.pad))
        return usable[torch.randint(len(usable), (batch, length), generator=draw)]

    def others(self, x: Tensor, seed: int = 99) -> Tensor:
        """Tokens of the same shape, every one of them another than in `x`."""
        if x.is_floating_point():
            return x + 1 + torch.randn(x.shape, generator=torch.Generator().manual_seed(seed)).to(x).abs()
        one = self.adapter
        usable = usable_ids(one.vocab or one.source_vocab or 2, one.avoid, one.pad)
        index = {token: n for n, token in enumerate(usable)}
        return x.clone().apply_(lambda token: usable[(index.get(token, 0) + 1) % len(usable)])

    # Answers

    def answer(
        self,
        ask: Ask,
        dtype: torch.dtype = torch.float64,
        *,
        shaken: bool = True,
        train: bool = False,
        grad: bool = False,
        cache: Any = None,
        use_cache: bool = False,
        module: nn.Module | None = None,
    ) -> Answer:
        """The module's answer: eval mode, no gradient, its random numbers drawn from the same seed each time."""
        if self.left() <= 0:
            raise CannotAskError("the time given was over")
        dtype = self.usable(dtype)
        twin = self.copy(dtype, shaken) if module is None else module
        was = twin.training
        twin.train(train)
        try:
            with undisturbed(self.seed), torch.set_grad_enabled(grad):
                return self.adapter.answer(twin, ask.to(dtype), cache, use_cache)
        finally:
            twin.train(was)

    def watched(
        self, ask: Ask, dtype: torch.dtype = torch.float64, *, shaken: bool = True, train: bool = False, **more: Any
    ) -> tuple[Answer, list[Operation]]:
        """(the answer, every torch operation on the way to it)."""
        twin = self.copy(dtype, shaken)
        with watching(twin) as watch:
            found = self.answer(ask, dtype, shaken=shaken, train=train, **more)
        return found, watch.operations

    @property
    def timed(self) -> bool:
        """Whether the answer has a vector for every token."""
        if "timed" not in self.memo:
            y = self.answer(self.ask()).y
            self.memo["timed"] = y.ndim >= 3 and y.shape[1] == self.length
        return bool(self.memo["timed"])

    # Judgement

    def floor(self, dtype: torch.dtype = torch.float64) -> float:
        """How far answers move by rounding: by how much, when every weight moves by one unit in its last place.

        Relative to the answer's largest number. Modules that compute in lower precision than their weights are judged
        by that precision.
        """
        dtype = self.usable(dtype)
        key = ("floor", dtype)
        if key not in self.memo:
            ask = self.ask()
            y, seen = self.watched(ask, dtype)
            kinds = {one.result.dtype for one in seen if one.result.is_floating_point()} | {dtype}
            unit = max(torch.finfo(kind).eps for kind in kinds)
            moved = copied(self.copy(dtype))
            draw = torch.Generator().manual_seed(self.seed)
            with torch.no_grad():
                for weight in moved.parameters():
                    sign = torch.randint(0, 2, weight.shape, generator=draw).to(weight) * 2 - 1
                    weight.mul_(1 + unit * sign)
            self.memo[key] = max(16 * gap(self.answer(ask, dtype, module=moved).y, y.y), 256 * unit)
        return float(self.memo[key])

    def differs(self, a: Tensor, b: Tensor, dtype: torch.dtype = torch.float64) -> bool:
        """Whether two answers differ by more than rounding."""
        if a.shape != b.shape:
            return True
        return not gap(a, b) <= self.floor(dtype)

    def left(self) -> float:
        """Seconds until the time given is over."""
        return self.deadline - time.monotonic()


def fault(name: str, severity: Severity = "error", where: Where | None = None, **evidence: Number) -> Fault:
    """A fault, its evidence rounded for readers."""
    said = {key: float(f"{value:.3g}") if isinstance(value, float) else value for key, value in evidence.items()}
    return Fault(name, severity, where or Where(), said)


def gap(a: Tensor, b: Tensor) -> float:
    """The largest difference of two tensors relative to the largest number of the second; nan counts as infinite."""
    if a.numel() == 0:
        return 0.0
    a, b = a.detach().double(), b.detach().double()
    apart = torch.where(a == b, torch.zeros_like(a), (a - b).abs())  # inf equals inf
    apart = torch.where(a.isnan() & b.isnan(), torch.zeros_like(a), apart)
    finite = b[b.isfinite()]
    found = float(apart.max()) / max(float(finite.abs().max()) if finite.numel() else 0.0, 1e-6)
    return found if found == found else float("inf")
