"""A report for its readers: people (text), programs (JSON), and the two forms that code hosts read (GitHub, SARIF)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from oneblock.check.finding import SEVERITIES, Fault, Report
from oneblock.words import label
from oneblock.words.checks import explained
from oneblock.words.reasons import in_language

LEVELS = {"error": "error", "warning": "warning", "note": "notice"}
"""Severity -> what the host of code calls it."""


def text(report: Report, lang: str = "en", told: bool = True) -> str:
    """A line per fault, as linters print them, its remedy below it; then what was skipped and the sum."""
    lines: list[str] = []
    if told:
        lines.append(
            label("called", lang, report.subject, "; ".join(in_language(line, lang) for line in report.convention))
        )
        lines += [""] * bool(report.faults or report.skipped)
    for fault in report.faults:
        lines.append(f"{place(fault)}: {fault.severity} {fault.code} [{fault.check}] {fault.message(lang)}")
        lines.append(f"    {fault.remedy(lang)}")
    if report.skipped and told:
        lines += [""] * bool(report.faults)
        lines += [label("skipped", lang, one.code, one.check, in_language(one.reason, lang)) for one in report.skipped]
    counts = [sum(fault.severity == level for fault in report.faults) for level in SEVERITIES]
    lines += [""] * bool(lines)
    lines.append(label("sum of checks", lang, *counts, len(report.passed), len(report.skipped)))
    return "\n".join(lines)


def place(fault: Fault) -> str:
    """Where a fault is: file and line if they are known, and the module."""
    module = fault.where.module or "."
    if fault.where.file is None:
        return module
    return f"{near(fault.where.file)}:{fault.where.line}: {module}"


def near(file: str) -> str:
    """A file's path as seen from here, where it lies below."""
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here)) if path.is_absolute() and path.is_relative_to(here) else file


def as_json(report: Report, lang: str = "en") -> str:
    """A list of {code, severity, check, module, file, line, message, evidence, remedy}."""
    return json.dumps(report.to_dict(lang), ensure_ascii=False, indent=2)


def github(report: Report, lang: str = "en") -> str:
    """Workflow commands that mark the lines of a pull request."""
    lines = []
    for fault in report.faults:
        where = f" file={escaped(near(fault.where.file), True)},line={fault.where.line}," if fault.where.file else " "
        title = escaped(f"{fault.code} {fault.check}", True)
        said = escaped(f"{fault.where.module or report.subject}: {fault.message(lang)} {fault.remedy(lang)}", False)
        lines.append(f"::{LEVELS[fault.severity]}{where}title={title}::{said}")
    return "\n".join(lines)


def escaped(said: str, in_property: bool) -> str:
    """Text in a workflow command: no character of it ends the command or its property."""
    said = said.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return said.replace(":", "%3A").replace(",", "%2C") if in_property else said


def sarif(report: Report, lang: str = "en") -> str:
    """SARIF 2.1.0, which code hosts and editors read."""
    codes = sorted({fault.code for fault in report.faults})
    said = {code: explained(code, lang) for code in codes}
    rules = [
        {"id": code, "shortDescription": {"text": one.title}, "help": {"text": one.remedy}}
        for code, one in said.items()
    ]
    results = []
    for fault in report.faults:
        found: dict[str, object] = {
            "ruleId": fault.code,
            "level": fault.severity,
            "message": {"text": f"{fault.message(lang)} {fault.remedy(lang)}"},
        }
        location: dict[str, object] = {"logicalLocations": [{"fullyQualifiedName": fault.where.module or "."}]}
        if fault.where.file and fault.where.line and not fault.where.file.startswith("<"):
            uri = near(fault.where.file).replace(os.sep, "/")
            region = {"startLine": fault.where.line}
            location["physicalLocation"] = {"artifactLocation": {"uri": uri}, "region": region}
        results.append(found | {"locations": [location]})
    driver = {"name": "oneblock", "rules": rules}
    whole = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(whole, ensure_ascii=False, indent=2)


FORMATS: dict[str, Callable[[Report, str], str]] = {"text": text, "json": as_json, "github": github, "sarif": sarif}
