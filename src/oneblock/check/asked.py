"""The list of checks: each is one function that puts a question to a subject and yields the faults it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from oneblock.check.finding import Fault, Skipped
from oneblock.hint import first_line, nearest
from oneblock.words.phrase import Phrase

if TYPE_CHECKING:
    from oneblock.check.subject import Subject

Asked = Callable[["Subject"], Iterator[Fault]]
CHECKS: dict[str, Check] = {}
"""Code -> check, in the order of their codes."""


class CannotAskError(Exception):
    """Raised by a check that does not apply to this subject; the reason is reported, never passed in silence.

    The reason is a template and what fills it, so that it can be said in both languages (`words/reasons.py`).
    """

    def __init__(self, template: str, *fills: object) -> None:
        self.reason = Phrase(template, *fills)
        super().__init__(self.reason)


@dataclass(frozen=True)
class Check:
    """A question: its code, its name, and the function that puts it."""

    code: str
    name: str
    ask: Asked

    def __call__(self, subject: Subject) -> list[Fault] | Skipped:
        """The faults found, or why the question could not be put."""
        try:
            return [replace(fault, code=self.code, check=self.name) for fault in self.ask(subject)]
        except CannotAskError as reason:
            return Skipped(self.code, self.name, reason.reason)
        except Exception as error:  # the module's own, under a question that it was never meant for
            said = f"{type(error).__name__}: {first_line(error)}"
            return Skipped(self.code, self.name, Phrase("could not be asked: {}", said))


def asks(code: str, name: str) -> Callable[[Asked], Asked]:
    """Register a check."""

    def register(ask: Asked) -> Asked:
        if code in CHECKS or any(one.name == name for one in CHECKS.values()):
            raise ValueError(f"check: {code} {name} is registered already")
        CHECKS[code] = Check(code, name, ask)
        return ask

    return register


def chosen(only: Iterable[str] = (), skip: Iterable[str] = ()) -> list[Check]:
    """The checks to run, by name or code or the beginning of a code ("OB1"). ValueError: a name nobody has."""
    wanted, left = list(only), list(skip)
    for word in [*wanted, *left]:
        if not any(meant(word, one) for one in CHECKS.values()):
            names = [*CHECKS, *(one.name for one in CHECKS.values())]
            raise ValueError(f"check: no check is called {word!r}; {nearest(word, names)}")
    every = (CHECKS[code] for code in sorted(CHECKS))
    return [
        one
        for one in every
        if (not wanted or any(meant(word, one) for word in wanted)) and not any(meant(word, one) for word in left)
    ]


def meant(word: str, check: Check) -> bool:
    """Whether a word of the user means this check."""
    return word == check.name or (word.upper().startswith("OB") and check.code.startswith(word.upper()))
