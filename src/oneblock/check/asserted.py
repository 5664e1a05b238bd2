"""A module in a test: `assert_transformer` fails with the report where something is wrong."""

from __future__ import annotations

from typing import Any

from torch import nn

from oneblock.check.finding import Report, Severity
from oneblock.check.formats import text
from oneblock.check.whole import check


def assert_transformer(module: nn.Module, fail_on: Severity = "error", **options: Any) -> Report:
    """Fail where a check finds something at least as severe as `fail_on`.

    Args:
        module: any `torch.nn.Module`.
        fail_on: "error", "warning" or "note".
        options: those of `oneblock.check`.

    Raises:
        AssertionError: with a line per fault.

    >>> import torch
    >>> layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    >>> encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    >>> assert_transformer(encoder, only=["batch"]).passed
    ('batch',)
    """
    report = check(module, **options)
    if report.at(fail_on):
        raise AssertionError("\n" + text(report, told=False))
    return report
