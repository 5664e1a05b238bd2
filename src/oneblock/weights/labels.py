"""What a classifier calls its labels: in labels.json beside a spec.json of ours, in config.json on the hub."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from oneblock.files import read_json, write_file
from oneblock.weights.hub import CONFIG

LABELS = "labels.json"


def read_labels(folder: Path) -> list[str]:
    """The names in order; none where no file gives a name to each. ValueError: a labels.json that is no list of names.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_labels(folder, ["bad", "good"])
    >>> read_labels(folder)
    ['bad', 'good']
    """
    if (folder / LABELS).is_file():
        names = read_json(folder / LABELS)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f'{folder / LABELS}: expected a list of names such as ["bad", "good"]')
        return names
    said = read_json(folder / CONFIG) if (folder / CONFIG).is_file() else {}
    names = said.get("id2label") if isinstance(said, dict) else None
    if not isinstance(names, dict) or not all(str(i) in names for i in range(len(names))):
        return []
    return [str(names[str(i)]) for i in range(len(names))]


def write_labels(folder: Path, names: Sequence[str]) -> None:
    """Name the labels of the model in a folder, in its config.json if it has one."""
    file, said = LABELS, list(names)
    if (folder / CONFIG).is_file():
        config = {"id2label": dict(enumerate(names)), "label2id": {name: i for i, name in enumerate(names)}}
        file, said = CONFIG, read_json(folder / CONFIG) | config
    write_file(folder / file, (json.dumps(said, indent=2) + "\n").encode())


__all__ = ["LABELS", "read_labels", "write_labels"]
