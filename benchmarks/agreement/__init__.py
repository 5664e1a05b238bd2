"""How closely our models agree with the reference library's, over random configs: same logits, gradients, tokens."""

from benchmarks.agreement import decoders, encoders, parallel, successors, translators

FAMILIES_FILES = (decoders, encoders, parallel, successors, translators)
"""The files that draw configs."""
