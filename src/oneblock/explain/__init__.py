"""What happens inside: traces, attention, parts of a logit, edits, searches, two models compared, measured cost."""

from oneblock.explain.ablation import ablate, effects, patching
from oneblock.explain.adopt import adopt
from oneblock.explain.attention import attention, detect, repeated
from oneblock.explain.attribution import Attribution, attribute, attribution
from oneblock.explain.compare import compare
from oneblock.explain.comparison import Cause, Comparison, Difference
from oneblock.explain.edits import mean, patch, zero
from oneblock.explain.lens_table import logit_lens
from oneblock.explain.mask import mask_matrix, masks
from oneblock.explain.page import page, page_of_two
from oneblock.explain.search_tree import beam_tree, draws
from oneblock.explain.step import Operand, Statistics, Step
from oneblock.explain.table import Table
from oneblock.explain.trace import Trace, trace
from oneblock.explain.worked import exercise

__all__ = [
    "Attribution",
    "Cause",
    "Comparison",
    "Difference",
    "Operand",
    "Statistics",
    "Step",
    "Table",
    "Trace",
    "ablate",
    "adopt",
    "attention",
    "attribute",
    "attribution",
    "beam_tree",
    "compare",
    "detect",
    "draws",
    "effects",
    "exercise",
    "logit_lens",
    "mask_matrix",
    "masks",
    "mean",
    "page",
    "page_of_two",
    "patch",
    "patching",
    "repeated",
    "trace",
    "zero",
]
