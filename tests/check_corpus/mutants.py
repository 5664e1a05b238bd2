"""All planted faults."""

from __future__ import annotations

from check_corpus.attention import ATTENTION
from check_corpus.caches import CACHES
from check_corpus.joined import JOINED
from check_corpus.leaks import LEAKS
from check_corpus.loss import LOSS
from check_corpus.numerics import NUMERICS
from check_corpus.padding import PADDING
from check_corpus.plant import Mutant
from check_corpus.positions import POSITIONS
from check_corpus.state import STATE
from check_corpus.stored import STORED

MUTANTS: list[Mutant] = [*LEAKS, *CACHES, *PADDING, *LOSS, *POSITIONS, *STATE, *JOINED, *STORED, *ATTENTION, *NUMERICS]
