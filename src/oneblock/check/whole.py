"""`check`: a module, its adapter found or given, all questions put, and a report."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from oneblock.check.asked import CannotAskError, chosen
from oneblock.check.calling.adapter import KINDS, Adapter, Kind
from oneblock.check.calling.example import Example, read_example
from oneblock.check.calling.find import found
from oneblock.check.copies import bare
from oneblock.check.finding import Fault, Report, Skipped, ordered
from oneblock.check.subject import Subject
from oneblock.hint import first_line, nearest
from oneblock.words.phrase import Phrase

OVER = Phrase("the time given was over")
Progress = Callable[[int, int, str], None]
"""Called before each check: (number done, number in all, name)."""


def check(
    module: nn.Module,
    inputs: Any = None,
    adapter: Adapter | None = None,
    *,
    kind: Kind | None = None,
    only: Iterable[str] = (),
    skip: Iterable[str] = (),
    timeout: float | None = None,
    seed: int = 0,
    reference: Callable[[], nn.Module] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Put every question to a module and report what is wrong with it, where, on what evidence, and what to do.

    Args:
        module: any `torch.nn.Module`; it is copied, never changed.
        inputs: an example of what it is called with, a tensor or (for several) a mapping from argument to value:
            sizes and names are read off it, and what holds no tokens is given in every call. None: found out.
        adapter: how it is called; None: found out.
        kind: "decoder", "encoder" or "seq2seq" where it is not what its behaviour says.
        only, skip: names or codes of checks ("causal", "OB101", "OB1").
        timeout: seconds after which no further check begins; what is left is reported as skipped.
        seed: of the random questions.
        reference: makes a fresh module of the same class, for questions about how it starts.
        progress: called before each check.

    Raises:
        ValueError: a module that cannot be called, answers with nothing, or is not finite from the start.

    >>> import torch
    >>> layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    >>> check(torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), only=["causal"]).skipped[0].reason
    'an encoder may see the future; say --as decoder if it must not'
    """
    if not isinstance(module, nn.Module):
        raise ValueError(f"check: expected a torch.nn.Module, got {type(module).__name__}; give an instance of a model")
    if kind is not None and kind not in KINDS:
        raise ValueError(f"check: {kind!r} is no kind of model; {nearest(kind, KINDS)}")
    asked = chosen(only, skip)
    end = time.monotonic() + timeout if timeout is not None else float("inf")
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of foreign code, asked in ways that it was not meant for
        adapter = adapter or convention(module, kind, read_example(inputs), end)
        subject = Subject(module, replace(adapter, kind=kind or adapter.kind), seed, end, reference)
        begin(subject)
        return put(subject, asked, progress)


def convention(module: nn.Module, kind: Kind | None, example: Example, end: float) -> Adapter:
    """How the module is called. ValueError: it could not be found out, or not in time."""
    try:
        return found(module, kind, example, end)
    except TimeoutError as error:
        raise ValueError(f"check: {error}; give more time, or an Adapter") from error


def begin(subject: Subject) -> None:
    """Ask once. ValueError: a module that fails, or answers with numbers that are not finite from the start."""
    name = type(bare(subject.module)).__name__
    try:
        y = subject.answer(subject.ask(), torch.float32, shaken=False).y
    except CannotAskError as error:
        raise ValueError(f"check: {error} before the first question; give more time, or an Adapter") from error
    except Exception as error:
        said = first_line(error)
        raise ValueError(f"check: the forward of {name} failed: {type(error).__name__}: {said}") from error
    if not bool(y.isfinite().all()):
        raise ValueError(f"check: {name} answers with numbers that are not finite, before anything was changed")


def put(subject: Subject, asked: list[Any], progress: Progress | None) -> Report:
    """Put the questions, one after the other."""
    faults: list[Fault] = []
    passed: list[str] = []
    skipped: list[Skipped] = []
    for number, one in enumerate(asked):
        if progress:
            progress(number, len(asked), one.name)
        answer = one(subject) if subject.left() > 0 else Skipped(one.code, one.name, OVER)
        if isinstance(answer, Skipped):
            skipped.append(answer)
        elif answer:
            faults += answer
        else:
            passed.append(one.name)
    if progress:
        progress(len(asked), len(asked), "")
    return Report(
        type(bare(subject.module)).__name__,
        subject.kind,
        subject.adapter.told,
        ordered(faults),
        tuple(passed),
        tuple(skipped),
    )
