"""Questions about low-rank adapters: layers that add s·B·A·x to W·x, found by that, whatever they are called.

W (outputs, inputs), A (rank, inputs), B (outputs, rank); either may be stored transposed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations

import torch
from torch import Tensor, nn

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.copies import copied, shake, undisturbed
from oneblock.check.finding import Fault, Where
from oneblock.check.questions.start import trained
from oneblock.check.seeing.draws import undropped
from oneblock.check.subject import Subject, fault, gap

MERGE = ("merge", "merge_weights", "merge_adapter", "merge_lora", "fuse")
UNMERGE = ("unmerge", "unmerge_weights", "unmerge_adapter", "unmerge_lora", "unfuse")
START = ("reset_parameters", "reset_lora_parameters", "reset_adapter", "init_weights", "reset")
CLOSE = 1e-5


@dataclass(frozen=True)
class LowRank:
    """An adapter: path of its layer, names (in the layer) of W, A and B, and the factor s that was measured."""

    path: str
    base: str
    down: str
    up: str
    factor: float


def adapters(subject: Subject) -> list[LowRank]:
    """Every layer that adds a low-rank product to its own. CannotAskError: there is none."""
    if "adapters" not in subject.memo:
        twin, found = undropped(subject), []
        for path, part in twin.named_modules():
            inner = any(path.startswith(f"{one.path}.") for one in found)
            one = None if inner or not path else low_rank(path, part)
            found += [one] if one else []
        subject.memo["adapters"] = found
    found = subject.memo["adapters"]
    if not found:
        raise CannotAskError("no layer adds a low-rank product to another")
    return found


def low_rank(path: str, part: nn.Module) -> LowRank | None:
    """The adapter that a layer is, if it is one: by the shapes it holds, then by what it answers."""
    held = {name: x for name, x in part.named_parameters() if x.ndim == 2}
    if not 3 <= len(held) <= 6:
        return None
    largest = max(held, key=lambda name: held[name].numel())
    wide, high = held[largest].shape
    others = [name for name, x in held.items() if name != largest and min(x.shape) < min(wide, high)]
    for base in (held[largest], held[largest].T):
        for down, up in (pair for two in combinations(others, 2) for pair in permutations(two)):
            a, b = fitting(held[down], base.shape[1]), fitting(held[up].T, base.shape[0])
            if a is None or b is None or a.shape[0] != b.shape[0]:
                continue
            factor = measured(part, base, a, b.T)
            if factor is not None:
                return LowRank(path, largest, down, up, factor)
    return None


def fitting(x: Tensor, inputs: int) -> Tensor | None:
    """A matrix (rank, inputs), turned where it must be; None where it cannot be."""
    return x if x.shape[1] == inputs else x.T if x.shape[0] == inputs else None


@torch.no_grad()
def measured(part: nn.Module, base: Tensor, a: Tensor, b: Tensor) -> float | None:
    """s, where the layer answers W·x + bias + s·B·A·x for random x; else None."""
    x = torch.randn(4, base.shape[1], generator=torch.Generator().manual_seed(0)).to(base)
    try:
        with undisturbed(0):
            y, zero = part(x), part(torch.zeros_like(x))
    except Exception:
        return None
    if not isinstance(y, Tensor) or y.shape != (4, base.shape[0]):
        return None
    rest, shape = y - zero - x @ base.T, x @ a.T @ b.T
    factor = float((rest * shape).sum() / shape.square().sum().clamp_min(1e-30))
    if abs(factor) < 1e-9:
        return None
    return factor if gap(factor * shape, rest) < CLOSE else None


@asks("OB811", "adapter-start")
def adapter_start(subject: Subject) -> Iterator[Fault]:
    """An adapter must add nothing before it has learnt: A or B starts at zero."""
    found = adapters(subject)
    twin = subject.fresh()
    for one in found:
        part = twin.get_submodule(one.path)
        held = dict(part.named_parameters())
        if not bool((held[one.down] != 0).any()) or not bool((held[one.up] != 0).any()):
            continue
        reset = next((f for name in START if callable(f := getattr(part, name, None))), None)
        if reset is not None:
            with undisturbed(subject.seed):
                reset()
            if not bool((held[one.down] != 0).any()) or not bool((held[one.up] != 0).any()):
                continue
        elif subject.reference is None and trained(subject.module):
            raise CannotAskError("the adapters look trained; give reference=, which makes a fresh module")
        a, b = held[one.down], held[one.up]
        yield fault(
            "adapter.start", where=Where(one.path), down=one.down, up=one.up, size=float(a.abs().max() * b.abs().max())
        )
        return


@asks("OB812", "adapter-base")
def adapter_base(subject: Subject) -> Iterator[Fault]:
    """Where adapters learn, the weights beside them must not."""
    found = adapters(subject)
    for one in found:
        held = dict(subject.module.get_submodule(one.path).named_parameters())
        if held[one.base].requires_grad and (held[one.down].requires_grad or held[one.up].requires_grad):
            count = sum(
                dict(subject.module.get_submodule(x.path).named_parameters())[x.base].requires_grad for x in found
            )
            yield fault("adapter.base", "warning", Where(one.path), base=one.base, count=count, of=len(found))
            return
        if not held[one.down].requires_grad or not held[one.up].requires_grad:
            frozen = one.down if not held[one.down].requires_grad else one.up
            if any(x.requires_grad for x in subject.module.parameters()):
                yield fault("adapter.frozen", "warning", Where(one.path), weight=frozen)
                return


@asks("OB813", "adapter-merge")
def adapter_merge(subject: Subject) -> Iterator[Fault]:
    """Merging an adapter must change no answer, and taking it out again must give the weights back."""
    asked = False
    for one in adapters(subject):
        part = copied(undropped(subject).get_submodule(one.path))
        with undisturbed(subject.seed):
            shake(part)
        merge, unmerge = (
            next((f for name in names if callable(f := getattr(part, name, None))), None) for names in (MERGE, UNMERGE)
        )
        if merge is None:
            continue
        asked = True
        base = dict(part.named_parameters())[one.base]
        x = torch.randn(4, inputs(part, one), generator=torch.Generator().manual_seed(1)).to(base)
        with torch.no_grad():
            plain, was = part(x), base.detach().clone()
            merge()
            moved = gap(part(x), plain)
            if moved > CLOSE:
                yield fault("adapter.merge", where=Where(one.path), moved=moved, factor=one.factor)
                return
            if unmerge is not None:
                unmerge()
                now = dict(part.named_parameters()).get(one.base, base)
                if gap(now, was) > CLOSE or gap(part(x), plain) > CLOSE:
                    yield fault("adapter.unmerge", where=Where(one.path), moved=gap(part(x), plain))
                    return
    if not asked:
        raise CannotAskError("no adapter can be merged")


def inputs(part: nn.Module, one: LowRank) -> int:
    """How many numbers a layer reads: the side of A that is not the rank."""
    held = dict(part.named_parameters())
    return max(held[one.down].shape)
