"""A spec out of a file that may be anything."""

from __future__ import annotations

from pathlib import Path

from oneblock.files import read_json
from oneblock.spec.model import Spec, validate
from oneblock.tree import from_dict


def read(path: Path) -> Spec:
    """The architecture that a spec.json holds, its parts fitting each other. ValueError, one line: what is wrong."""
    saved = read_json(path)
    try:
        if not isinstance(spec := from_dict(saved), Spec):
            raise ValueError(f"expected a Model or a Seq2Seq, got {type(spec).__name__}")
        validate(spec)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return spec
