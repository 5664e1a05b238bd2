"""Is this Transformer right? Questions to any `torch.nn.Module`, judged by how it behaves, and what is wrong where."""

from oneblock.check import check_borders, check_cache_rows, check_caches, check_leaks, check_source

from oneblock.check import check_heads, check_masking, check_numerics, check_scale, check_waste  # isort: skip
from oneblock.check import check_loss, check_nothing, check_padding, check_positions, check_right_shift, check_rotary  # isort: skip
from oneblock.check import check_blocks, check_dead, check_norms, check_paths, check_start, check_state  # isort: skip
from oneblock.check import check_adapters, check_experts, check_weights  # isort: skip
from oneblock.check.adapter import Adapter, Answer, Ask
from oneblock.check.asked import CHECKS, Check
from oneblock.check.asserted import assert_transformer
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
    "check_borders",
    "check_cache_rows",
    "check_caches",
    "check_heads",
    "check_leaks",
    "check_loss",
    "check_masking",
    "check_nothing",
    "check_numerics",
    "check_padding",
    "check_positions",
    "check_right_shift",
    "check_rotary",
    "check_scale",
    "check_source",
    "check_waste",
]
