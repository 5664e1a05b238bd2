"""Is this Transformer right? Questions to any `torch.nn.Module`, judged by how it behaves, and what is wrong where."""

from oneblock.check import (
    check_adapters,
    check_blocks,
    check_borders,
    check_cache_rows,
    check_caches,
    check_dead,
    check_experts,
    check_heads,
    check_leaks,
    check_loss,
    check_masking,
    check_norms,
    check_nothing,
    check_numerics,
    check_padding,
    check_paths,
    check_positions,
    check_right_shift,
    check_rotary,
    check_scale,
    check_source,
    check_start,
    check_state,
    check_waste,
    check_weights,
)
from oneblock.check.adapter import Adapter, Answer, Ask
from oneblock.check.asked import CHECKS, Check
from oneblock.check.asserted import assert_transformer
from oneblock.check.finding import SEVERITIES, Fault, Report, Severity, Skipped, Where
from oneblock.check.whole import check

QUESTIONS = (
    check_adapters,
    check_blocks,
    check_borders,
    check_cache_rows,
    check_caches,
    check_dead,
    check_experts,
    check_heads,
    check_leaks,
    check_loss,
    check_masking,
    check_norms,
    check_nothing,
    check_numerics,
    check_padding,
    check_paths,
    check_positions,
    check_right_shift,
    check_rotary,
    check_scale,
    check_source,
    check_start,
    check_state,
    check_waste,
    check_weights,
)
"""Files of questions: each registers its own in `CHECKS`."""

__all__ = [
    "CHECKS",
    "QUESTIONS",
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
]
