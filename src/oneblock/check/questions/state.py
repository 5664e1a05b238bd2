"""Questions about what a module remembers and draws: dropout where it belongs, and one answer to one question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import torch

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.copies import copied
from oneblock.check.finding import Fault, Where
from oneblock.check.seeing.draws import drawn, drops, generator_moves, operations_of, rates, seeded
from oneblock.check.seeing.locate import Same, first, place
from oneblock.check.seeing.watch import watching
from oneblock.check.subject import Subject, fault, gap
from oneblock.hint import first_line

SAME = 1e-7
"""How far two runs of the same operations may be apart: the noise floor of a module that changes itself is no floor."""


@asks("OB401", "dropout-eval")
def dropout_in_eval(subject: Subject) -> Iterator[Fault]:
    """In eval mode the answer must not depend on the state of the random generator."""
    ask = subject.ask()
    y, z = (seeded(subject, subject.seed + step).answer(ask).y for step in (0, 1))
    moved = gap(z, y)
    if not moved > subject.floor():
        return
    found = drawn(subject.watched(ask)[1])
    where = found[0].where if found else Where()
    name = "dropout.eval" if found and (drops(found[0]) or "drop" in found[0].path.lower()) else "random.eval"
    yield fault(name, where=where, moved=moved, places=len({one.path for one in found}) or 1)


@asks("OB402", "dropout-train")
def dropout_in_train(subject: Subject) -> Iterator[Fault]:
    """In train mode every dropout that is configured above 0 must draw."""
    twin = copied(subject.copy())
    given = [(path, part, name, rate) for path, part, name, rate in rates(twin) if rate > 0]
    if not given:
        raise CannotAskError("no dropout above 0 is configured")
    called: set[str] = set()
    handles = [part.register_forward_hook(lambda *_, path=path: called.add(path)) for path, part, _, _ in given]
    found = {one.path for one in drawn(operations_of(subject, twin, subject.ask(), train=True))}
    for handle in handles:
        handle.remove()
    for path, _, name, rate in given:
        if path in called and path in found:
            continue
        owner = path.rpartition(".")[0] if name == "p" and path else path
        if name == "p" and path not in called:
            missing = owner not in found and not any(one in called for one in cousins(owner, given))
        else:
            missing = not any(one == path or one.startswith(f"{path}." if path else "") for one in found)
        if missing:
            yield fault("dropout.absent", "warning", Where(path), rate=rate, attribute=name)
            return


def cousins(owner: str, given: list[tuple[str, torch.nn.Module, str, float]]) -> list[str]:
    """Dropouts that stand directly beside one: a list that holds several may use any of them."""
    return [path for path, _, name, _ in given if name == "p" and path.rpartition(".")[0] == owner and is_index(path)]


def is_index(path: str) -> bool:
    """Whether a module stands in a list."""
    return path.rpartition(".")[2].isdigit()


@asks("OB403", "dropout-again")
def dropout_after_eval(subject: Subject) -> Iterator[Fault]:
    """After eval mode and back, train mode must drop wherever it did before."""
    twin = copied(subject.module).to("cpu").float()  # never in eval mode before
    ask = subject.ask()
    subject.answer(ask, torch.float32, module=twin, train=True)  # some choose their kernel by the first text they see
    twin.train()
    before = Counter(one.path for one in drawn(operations_of(subject, twin, ask, train=True)))
    if not before:
        raise CannotAskError("nothing is drawn in train mode")
    twin.eval()
    subject.answer(ask, torch.float32, module=twin)
    twin.train()
    after = Counter(one.path for one in drawn(operations_of(subject, twin, ask, train=True)))
    lost = before - after
    if lost:
        yield fault("dropout.off", where=Where(next(iter(lost))), lost=sum(lost.values()), before=before.total())


@asks("OB404", "generator")
def generator(subject: Subject) -> Iterator[Fault]:
    """A run in eval mode must leave torch's random generator as it was."""
    ask = subject.ask()
    if not generator_moves(subject, ask):
        return
    y, z = (seeded(subject, subject.seed + step).answer(ask).y for step in (0, 1))
    if gap(z, y) > subject.floor():
        raise CannotAskError("the answer depends on what is drawn: see OB401")
    found = drawn(subject.watched(ask)[1])
    where = found[0].where if found else Where()
    yield fault("random.drawn", "warning", where, operation=found[0].name if found else "?")


@asks("OB405", "same-twice")
def same_twice(subject: Subject) -> Iterator[Fault]:
    """The same question, asked again after another one, must get the same answer."""
    ask, other = subject.ask(), subject.ask(batch=3, length=max(2, subject.length - 2), seed=5)
    twin = copied(subject.copy())
    plain = subject.answer(ask, module=twin).y
    try:
        subject.answer(other, module=twin)
        again = subject.answer(ask, module=twin).y
    except Exception as error:
        said = first_line(error)
        yield fault("state.fails", where=changed_part(subject), said=said)
        return
    moved = gap(again, plain) if again.shape == plain.shape else float("inf")
    if moved > SAME:
        yield fault("state.changes", where=changed_place(subject), moved=moved)


def changed_place(subject: Subject) -> Where:
    """The first operation that answers otherwise the second time, or the module whose state moved."""
    ask, other = subject.ask(), subject.ask(batch=3, length=max(2, subject.length - 2), seed=5)
    twin = copied(subject.copy())
    runs = []
    for step in range(2):
        with watching(twin) as watch:
            subject.answer(ask, module=twin)
        runs.append(watch.operations)
        if not step:
            subject.answer(other, module=twin)
    state = changed_part(subject)
    return state if state.module else place(first(runs[0], runs[1], within(SAME)))


def within(tolerance: float) -> Same:
    """Tensors must agree everywhere."""
    return lambda x, y: gap(x, y) <= tolerance if x.is_floating_point() else bool(torch.equal(x, y))


def changed_part(subject: Subject) -> Where:
    """The first module whose parameters, buffers or plain numbers one run changes; the whole where none does."""
    twin = subject.fresh(torch.float32)
    before = {path: held(part) for path, part in twin.named_modules()}
    subject.answer(subject.ask(), torch.float32, module=twin)
    for path, part in twin.named_modules():
        now = held(part)
        names = before[path].keys() | now.keys()
        if any(not alike(before[path].get(name), now.get(name)) for name in names):
            return Where(path)
    return Where()


def held(part: torch.nn.Module) -> dict[str, object]:
    """What a module holds itself: tensors (copied) and numbers."""
    found: dict[str, object] = {}
    own = {**part._parameters, **part._buffers, **vars(part)}
    for name, value in own.items():
        if isinstance(value, torch.Tensor):
            found[name] = value.detach().clone()
        elif isinstance(value, int | float | None) and name != "training":
            found[name] = value
        elif isinstance(value, list | tuple | dict):
            found[name] = len(value)
    return found


def alike(a: object, b: object) -> bool:
    """Whether two things that a module holds are the same."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.shape == b.shape and bool(torch.equal(a, b))
    return type(a) is type(b) and not isinstance(a, torch.Tensor) and a == b
