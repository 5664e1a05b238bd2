"""Write files so that a crash, a kill or a full disk never leaves half of one: sibling, flush, fsync, rename."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A sibling path to write to; it takes the name `path` when the `with` ends well, and vanishes when it does not.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "note.txt"
    >>> with replacing(target) as sibling:
    ...     _ = sibling.write_text("whole")
    >>> target.read_text()
    'whole'
    """
    sibling = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield sibling
        with sibling.open("rb+") as written:
            os.fsync(written.fileno())
        os.replace(sibling, path)
    finally:
        sibling.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable, where the system can (Windows cannot open a folder)."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
