"""Checks in pytest: a test that asks for `transformer_check` becomes one test per check of the fixture `transformer`.

Loaded by pytest on its own where oneblock is installed; imports torch only when such a test runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import oneblock
from oneblock.words.checks import CHECKS


def pytest_generate_tests(metafunc: Any) -> None:
    """One test per check for whoever asks for `transformer_check`."""
    if "transformer_check" in metafunc.fixturenames:
        metafunc.parametrize("transformer_check", list(CHECKS), indirect=True)


@pytest.fixture
def transformer_options() -> dict[str, Any]:
    """Options of `oneblock.check`; overwrite it in your tests: kind, adapter, kwargs, seed."""
    return {}


@pytest.fixture
def transformer_check(request: Any, transformer: Any, transformer_options: dict[str, Any]) -> Callable[..., None]:
    """Call it: it puts one check to the fixture `transformer`, skips with the reason, or fails with the fault."""

    def put(fail_on: str = "error") -> None:
        report = oneblock.check(transformer, only=[request.param], **transformer_options)
        if report.skipped:
            pytest.skip(report.skipped[0].reason)
        found = report.at(fail_on)
        if found:
            pytest.fail("\n".join(f"{one.where.module or '.'}: {one.message()} {one.remedy()}" for one in found), False)

    return put
