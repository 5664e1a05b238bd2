"""Which sentence pairs a model is scored on: those of a file, or those that a run never saw."""

from __future__ import annotations

from pathlib import Path

from oneblock.text import Pair, read_pairs
from oneblock.train.config import Run
from oneblock.train.data import read_split

__all__ = ["held_out"]


def held_out(data: str | Path) -> list[Pair]:
    """The pairs of a TSV or JSONL file (.gz too); of a run file (.toml), its test pairs.

    Raises ValueError for a file that is not there, bad lines, and a run that holds out no test pairs.
    """
    path = Path(data)
    if not path.is_file():
        raise ValueError(f"{path}: expected pairs or a run file, found nothing there")
    if path.suffix != ".toml":
        return list(read_pairs(path))
    pairs = read_split(Run.load(path).data).test
    if not pairs:
        raise ValueError(f"{path}: data.test is 0, so no pairs are held out; name a file of pairs instead")
    return pairs
