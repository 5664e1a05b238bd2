"""What a check has to say: findings with code, severity, place, evidence and remedy, and the report of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from oneblock.words.faults import fault_said, remedy_said

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""error: the result is wrong. warning: likely wrong, or fragile. note: wasted work."""

Number = float | int | str
Finding = dict[str, Any]
"""What a reader of the JSON gets: code, severity, check, module, file, line, message, evidence, remedy."""


@dataclass(frozen=True)
class Where:
    """A place in a model: path of the module ("" is the whole), and the line of source that ran, if it is known."""

    module: str = ""
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Fault:
    """One thing that a check found: its name has the words, its evidence the numbers that they mention."""

    name: str
    severity: Severity = "error"
    where: Where = Where()
    evidence: Mapping[str, Number] = field(default_factory=dict)
    code: str = ""
    check: str = ""

    def message(self, lang: str = "en") -> str:
        """What is wrong, in one sentence."""
        return fault_said(self.name, lang, self.evidence)

    def remedy(self, lang: str = "en") -> str:
        """What to do about it."""
        return remedy_said(self.name, lang, self.evidence)

    def to_dict(self, lang: str = "en") -> Finding:
        """The fault as plain data."""
        return {
            "code": self.code,
            "severity": self.severity,
            "check": self.check,
            "module": self.where.module,
            "file": self.where.file,
            "line": self.where.line,
            "message": self.message(lang),
            "evidence": dict(self.evidence),
            "remedy": self.remedy(lang),
        }


@dataclass(frozen=True)
class Skipped:
    """A check that could not be asked, and why."""

    code: str
    check: str
    reason: str


@dataclass(frozen=True)
class Report:
    """What all checks found in one module.

    `convention` says how the module is called, one line each; `faults` are ordered, errors first; `passed` are the
    names of checks that found nothing; `skipped` those that could not be asked.
    """

    subject: str
    kind: str
    convention: tuple[str, ...]
    faults: tuple[Fault, ...]
    passed: tuple[str, ...]
    skipped: tuple[Skipped, ...]

    def at(self, level: Severity) -> tuple[Fault, ...]:
        """The faults at least as severe as `level`."""
        worst = SEVERITIES[: SEVERITIES.index(level) + 1]
        return tuple(fault for fault in self.faults if fault.severity in worst)

    def to_dict(self, lang: str = "en") -> list[Finding]:
        """All faults as plain data."""
        return [fault.to_dict(lang) for fault in self.faults]


def ordered(faults: Sequence[Fault]) -> tuple[Fault, ...]:
    """Errors first, then by code; a fault found twice at one place is said once."""
    once = {(fault.name, fault.where): fault for fault in faults}
    return tuple(sorted(once.values(), key=lambda one: (SEVERITIES.index(one.severity), one.code)))
