"""Is this Transformer right? Questions to any `torch.nn.Module`, judged by how it behaves, and what is wrong where."""

from oneblock.check import questions
from oneblock.check.asked import CHECKS, Check
from oneblock.check.asserted import assert_transformer
from oneblock.check.calling.adapter import Adapter, Answer, Ask
from oneblock.check.finding import SEVERITIES, Fault, Report, Severity, Skipped, Where
from oneblock.check.whole import check

__all__ = [
    "CHECKS",
    "SEVERITIES",
    "Adapter",
    "Answer",
    "Ask",
    "Check",
    "Fault",
    "Report",
    "Severity",
    "Skipped",
    "Where",
    "assert_transformer",
    "check",
    "questions",
]
