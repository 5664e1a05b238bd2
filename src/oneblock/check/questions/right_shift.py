"""A question to models that make the decoder's input of the labels: the start first, shifted by one, no -100 left.

Shapes: labels and decoder input (batch, length); logits (batch, length, vocab).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from oneblock.check.asked import CannotAskError, asks
from oneblock.check.calling.adapter import Ask
from oneblock.check.calling.convention import Convention
from oneblock.check.calling.reply import read
from oneblock.check.copies import undisturbed
from oneblock.check.finding import Fault
from oneblock.check.subject import Subject, fault, gap
from oneblock.hint import first_line


def from_labels(subject: Subject, ask: Ask) -> Tensor:
    """The logits of a call that gives a source and labels, and no decoder input."""
    way = getattr(subject.adapter.call, "__self__", None)
    if not isinstance(way, Convention):
        raise CannotAskError("the Adapter says not how to call without a decoder input")
    arguments = way.arguments(ask, None, False)
    arguments.pop(way.tokens)
    with undisturbed(subject.seed), torch.no_grad():
        return read(subject.copy()(**arguments), ask, way.batch_first).y


@asks("OB215", "right-shift")
def right_shift(subject: Subject) -> Iterator[Fault]:
    """The decoder's input made of labels must be the start and all labels but the last."""
    if subject.kind != "seq2seq":
        raise CannotAskError("the module reads no source")
    subject.needs("labels")
    ask = subject.ask(1)
    ask = ask.but(labels=subject.tokens(1, ask.length, subject.seed + 3))
    assert ask.labels is not None
    try:
        y = from_labels(subject, ask)
    except CannotAskError:
        raise
    except Exception as error:
        raise CannotAskError("the module wants its decoder input from the caller") from error
    if y.shape[1] != ask.length:
        raise CannotAskError("the module answers with another length than its labels have")
    fed = fed_by(subject, ask, y)
    late = next(((at, label) for label in range(ask.length) for at in range(label + 1) if fed[at][label]), None)
    wraps = all(fed[at][-1] for at in range(ask.length))
    start = getattr(subject.config, "decoder_start_token_id", None)
    if wraps and not any(fed[0][:-1]):
        if type(start) is int:
            yield fault("shift.wraps", wanted=start)
        return
    if late:
        yield fault("shift.leak", position=late[0], label=late[1])
        return
    if any(not fed[label + 1][label] for label in range(ask.length - 1)):
        yield fault("shift.far")
        return
    yield from begun(subject, ask, y, start)
    yield from refused(subject, ask, y)


def fed_by(subject: Subject, ask: Ask, y: Tensor) -> list[list[bool]]:
    """[position of the logits][label]: whether changing the label changes the logits."""
    assert ask.labels is not None
    columns = []
    for label in range(ask.length):
        labels = ask.labels.clone()
        labels[:, label] = subject.others(labels[:, label])
        apart = (from_labels(subject, ask.but(labels=labels)) - y).abs().amax(dim=(0, 2))
        columns.append((apart / y.abs().max().clamp_min(1e-6) > subject.floor()).tolist())
    return [list(row) for row in zip(*columns, strict=True)]


def begun(subject: Subject, ask: Ask, y: Tensor, start: object) -> Iterator[Fault]:
    """The start that the configuration names must be the one that is used."""
    if type(start) is not int or ask.labels is None:
        return

    def with_start(one: int) -> Tensor:
        """Logits of the input that should be made."""
        tokens = torch.cat([torch.full_like(ask.labels[:, :1], one), ask.labels[:, :-1]], 1)  # type: ignore[index]
        return subject.answer(ask.but(tokens=tokens)).y

    if gap(with_start(start), y) > subject.floor():
        others = [one for one in range(min(subject.adapter.vocab or 0, 256)) if one != start]
        got = next((one for one in others if gap(with_start(one), y) <= subject.floor()), "?")
        yield fault("shift.start", wanted=start, got=got)


def refused(subject: Subject, ask: Ask, y: Tensor) -> Iterator[Fault]:
    """-100 among the labels must become an id that the decoder knows."""
    assert ask.labels is not None
    labels = ask.labels.clone()
    labels[:, -2:] = -100
    try:
        z = from_labels(subject, ask.but(labels=labels))
    except Exception as error:
        yield fault("shift.index", said=first_line(error))
        return
    if gap(z[:, :-1], y[:, :-1]) > subject.floor():
        yield fault("shift.leak", position=0, label=ask.length - 2)
