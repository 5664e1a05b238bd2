"""What happens inside: traces, attention maps, measured cost."""

from oneblock.explain.adopt import adopt
from oneblock.explain.step import Operand, Statistics, Step
from oneblock.explain.trace import Trace, trace

__all__ = ["Operand", "Statistics", "Step", "Trace", "adopt", "trace"]
