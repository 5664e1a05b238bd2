"""Questions about the loss: which answer it holds against which label, what it leaves out, and how it averages.

Shapes: tokens and labels (batch, length), -100 (or what the module uses) = ignored; logits and their gradient (batch,
length, vocab). A label's place minus the place of the logits that it is held against is the shift.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.calling.adapter import Ask
from oneblock.check.calling.sizes import usable_ids
from oneblock.check.finding import Fault
from oneblock.check.subject import Subject, fault, gap

SHIFTED_BY_CALLER = ("target", "targets", "target_ids", "y")


def pulls(subject: Subject, ask: Ask) -> tuple[Tensor, Tensor | None]:
    """(the loss, its gradient by the logits (batch, length, vocab), None where it is not made of those returned)."""
    found = subject.answer(ask, grad=True)
    if found.loss is None:
        raise CannotAskError("the module gives no loss")
    if not found.loss.requires_grad or not found.y.requires_grad:
        return found.loss, None
    return found.loss, torch.autograd.grad(found.loss.sum(), found.y, allow_unused=True)[0]


def blank(subject: Subject) -> tuple[int | None, int | None]:
    """(the label that the module ignores, the first it takes at all): of -100, the pad id and -1; None: it has none."""
    if "blank" not in subject.memo:
        ask = subject.ask()
        pulls(subject, ask.but(labels=ask.tokens))  # what fails here fails for another reason
        taken: int | None = None
        found: int | None = None
        for value in dict.fromkeys((-100, subject.adapter.pad, -1)):
            try:
                trained = len(trained_on(subject, only(ask.but(labels=ask.tokens), value, [(0, 3)])))
            except CannotAskError:
                raise
            except Exception:
                continue
            taken = value if taken is None else taken
            if trained <= 1:
                found = value
                break
        subject.memo["blank"] = found, taken
    blank: tuple[int | None, int | None] = subject.memo["blank"]
    return blank


def trained_on(subject: Subject, ask: Ask) -> set[tuple[int, int]]:
    """(row, position) of the logits that a loss moves; empty where the loss is not made of what is returned."""
    _, pull = pulls(subject, ask)
    if pull is None or pull.ndim != 3:
        return {(0, 0), (0, 1)} if moved_later(subject, ask) else set()
    return {(int(row), int(place)) for row, place in (pull.abs().amax(-1) > 1e-12).nonzero()}


def moved_later(subject: Subject, ask: Ask) -> bool:
    """Whether a loss of one early label changes with much later tokens, of a module that must not see them."""
    if not subject.causal:
        return False
    later = subject.others(ask.tokens[:, 4:])
    a, b = (subject.answer(one).loss for one in (ask, ask.but(tokens=torch.cat([ask.tokens[:, :4], later], 1))))
    return a is not None and b is not None and gap(b, a) > subject.floor()


def asked(subject: Subject) -> tuple[Ask, int]:
    """A question whose labels all differ from each other, and the label that is ignored; skips where none is."""
    subject.needs("labels")
    if not subject.timed:
        raise CannotAskError("the module answers with no vector per token")
    empty, _ = blank(subject)
    if empty is None:
        raise CannotAskError("the loss ignores no label: neither -100 nor the pad id nor -1")
    ask = subject.ask()
    usable = usable_ids(subject.adapter.vocab or 1, subject.adapter.avoid, subject.adapter.pad)
    order = torch.randperm(len(usable), generator=torch.Generator().manual_seed(subject.seed))
    if len(usable) < ask.tokens.numel():
        raise CannotAskError("the module knows too few ids to tell labels apart")
    ids = torch.tensor(usable)[order[: ask.tokens.numel()]]
    return ask.but(labels=ids.reshape(ask.tokens.shape)), empty


def only(ask: Ask, empty: int, places: Sequence[tuple[int, int]]) -> Ask:
    """The question with labels at some (row, position) and nowhere else."""
    assert ask.labels is not None
    labels = torch.full_like(ask.labels, empty)
    for row, position in places:
        labels[row, position] = ask.labels[row, position]
    return ask.but(labels=labels)


def read_from(subject: Subject, ask: Ask, empty: int, row: int, position: int) -> list[tuple[int, int]]:
    """(row, position) of the logits that one label is held against: by gradient, else by who must not change."""
    one = only(ask, empty, [(row, position)])
    loss, pull = pulls(subject, one)
    if pull is not None and pull.ndim == 3:
        return [(int(r), int(p)) for r, p in (pull.abs().amax(-1) > 1e-12).nonzero()]
    if not subject.causal:
        raise CannotAskError("the loss is not made of the logits that are returned")
    reach = []
    for other in range(ask.length):
        tokens = one.tokens.clone()
        tokens[row, other] = subject.others(tokens[row : row + 1, other : other + 1])[0, 0]
        changed = subject.answer(one.but(tokens=tokens)).loss
        if changed is not None and gap(changed, loss) > subject.floor():
            reach.append(other)
    return [(row, max(reach))] if reach else []


@asks("OB211", "label-shift")
def label_shift(subject: Subject) -> Iterator[Fault]:
    """A label is held against the logits of its own place or, in a language model, of the place before."""
    ask, empty = asked(subject)
    position = min(3, ask.length - 2)
    found = read_from(subject, ask, empty, 0, position)
    if not found:
        yield fault("labels.unread", position=position)
        return
    if len({place for _, place in found}) > 1:
        raise CannotAskError("one label is held against several places")
    shift = position - found[0][1]
    legal = (0,) if subject.kind == "encoder" else (0, 1)
    if shift not in legal:
        yield fault("labels.shift", shift=shift, right=legal[-1] if subject.kind == "decoder" else 0)
    elif shift == 0 and subject.kind == "decoder" and not shifts_itself(subject):
        yield fault("labels.unshifted", "warning")
    across = [row for row, _ in read_from(subject, ask, empty, 1, 0) if row != 1]
    if across:
        yield fault("labels.rows")


def shifts_itself(subject: Subject) -> bool:
    """Whether the name of the labels promises that the caller shifts them, as `targets` do."""
    named = [line.split(":")[0] for line in subject.adapter.told if line.endswith(": labels")]
    return not named or named[0] in SHIFTED_BY_CALLER


@asks("OB212", "loss-padding")
def ignored(subject: Subject) -> Iterator[Fault]:
    """Places that are labelled as ignored must neither be trained on nor counted."""
    subject.needs("labels")
    empty, taken = blank(subject)
    if empty is None:
        if {"real", "source_real"} & subject.adapter.takes:
            yield fault("loss.noignore") if taken is None else fault("loss.pads", value=taken)
            return
        raise CannotAskError("the loss ignores no label, and the module takes no padding mask")
    ask, empty = asked(subject)
    if not subject.causal:
        return
    # tokens later than every label change no logits that count: the loss must not notice that they are there
    last = ask.length - 1
    few = [(row, place) for row in range(len(ask.tokens)) for place in range(2, last - 1)]
    labels = ask.labels
    assert labels is not None
    short = Ask(ask.tokens[:, :last], labels=labels[:, :last], source=ask.source)
    alone, padded = (subject.answer(only(one, empty, few)).loss for one in (short, ask))
    if alone is not None and padded is not None and gap(alone, padded) > subject.floor():
        yield fault("loss.diluted", alone=float(alone.sum()), padded=float(padded.sum()))


@asks("OB213", "loss-mean")
def token_mean(subject: Subject) -> Iterator[Fault]:
    """Every labelled token of a batch weighs alike, however few its text has."""
    ask, empty = asked(subject)
    places = [(0, 3), *((1, place) for place in range(2, ask.length - 1))]
    loss, pull = pulls(subject, only(ask, empty, places))
    weights = []
    for row, place in ((0, 3), (1, 3)):
        alone = only(ask, empty, [(row, place)]).rows(slice(row, row + 1))
        _, one = pulls(subject, alone)
        if pull is None or one is None:
            break
        weights.append(float(pull[row].abs().sum()) if row == 0 else float(pull[row][at(one[0])].abs().sum()))
        weights[-1] /= float(one[0][at(one[0])].abs().sum())
    if len(weights) == 2:
        if not abs(weights[0] / weights[1] - 1) <= 1e-4:
            yield fault("loss.weighting", ratio=weights[0] / weights[1])
        return
    parts = [subject.answer(only(ask, empty, [one])).loss for one in places]
    mean = torch.stack([part for part in parts if part is not None]).mean()
    if min(gap(loss, mean), gap(loss, mean * len(places)), gap(loss, mean * len(places) / 2)) > 1e-5:
        yield fault("loss.weighting", ratio=float(loss / mean))


def at(pull: Tensor) -> Tensor:
    """(length,), True where the loss reads the logits of a text."""
    return pull.abs().amax(-1) > 1e-12


@asks("OB214", "loss-nothing")
def nothing_labelled(subject: Subject) -> Iterator[Fault]:
    """A batch whose every label is ignored must give a loss of 0, not nan."""
    ask, empty = asked(subject)
    loss = subject.answer(only(ask, empty, [])).loss
    if loss is not None and not bool(loss.isfinite().all()):
        yield fault("loss.nothing", "warning", loss=str(float(loss.sum())))


@asks("OB216", "loss-end")
def end_learned(subject: Subject) -> Iterator[Fault]:
    """The end of a text must be trained on, also where the same id pads."""
    ask, empty = asked(subject)
    end = getattr(subject.config, "eos_token_id", None)
    if type(end) is not int or end < 0 or end >= (subject.adapter.vocab or 0):
        raise CannotAskError("no configuration says which id ends a text")
    labels = torch.full_like(ask.tokens, empty)
    labels[0, 3] = end
    if end == empty:
        yield fault("labels.end", "warning", end=end)
        return
    loss = subject.answer(ask.but(labels=labels)).loss
    if loss is not None and (not bool(loss.isfinite().all()) or float(loss.abs().sum()) == 0):
        yield fault("labels.end", "warning", end=end)
