"""Files and folders that are wholly there or not there at all, whenever the power goes: write, flush, sync, rename."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

TEMPORARY = ".tmp-"
"""How the name of a file or folder begins that is still being written."""
INTACT = "; what was there before is intact"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A sibling path to write to; it takes the name `path` when the `with` ends well, and vanishes when it does not.

    The file has the mode that `open` gives a new one, whatever the one who writes it gave it. OSError, one line, where
    it cannot be written; what was there before is intact.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "note.txt"
    >>> with replacing(target) as sibling:
    ...     _ = sibling.write_text("whole")
    >>> target.read_text()
    'whole'
    """
    sibling = path.with_name(TEMPORARY + path.name)
    try:
        sibling.unlink(missing_ok=True)  # a killed process left it, in whatever mode
        sibling.touch()
        mode = sibling.stat().st_mode
        yield sibling
        sibling.chmod(mode)
        with sibling.open("rb+") as written:
            os.fsync(written.fileno())
        os.replace(sibling, path)
        sync_folder(path.parent)
    except OSError as error:
        if INTACT in _said(error):  # from a `replacing` inside this one
            raise
        raise OSError(error.errno, f"cannot write {path}: {_said(error)}{INTACT}") from None
    finally:
        sibling.unlink(missing_ok=True)


def write_file(path: Path, data: bytes) -> None:
    """Replace `path` by `data` in one step."""
    with replacing(path) as sibling:
        sibling.write_bytes(data)


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """A sibling folder to fill; by one rename it takes the name `folder` when the `with` ends well, else it vanishes.

    A folder of that name that is already there is replaced. OSError, one line, when a write fails, for instance
    because the disk is full; what was there before is intact.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "model"
    >>> with appearing(target) as sibling:
    ...     write_file(sibling / "note.txt", b"whole")
    >>> [path.name for path in target.iterdir()]
    ['note.txt']
    """
    fresh = folder.with_name(TEMPORARY + folder.name)
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        yield fresh
        sync_folder(fresh)
        if folder.exists():
            discard(folder)
        os.replace(fresh, folder)
        sync_folder(folder.parent)
    except OSError as error:
        raise OSError(error.errno, f"cannot save {folder}: {_said(error)}; earlier ones are intact") from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def publish(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make `folder` with these files appear by one rename, after every file and the folder itself are on the disk.

    A folder of that name that is already there (a damaged one) is replaced. When a write fails, for instance because
    the disk is full, nothing of the new folder is left and OSError says so in one line.
    """
    with appearing(folder) as fresh:
        for name, data in files.items():
            write_file(fresh / name, data)


def discard(folder: Path) -> None:
    """Remove a folder so that a crash half-way leaves a temporary one, never a damaged one under its own name."""
    doomed = folder.with_name(f"{TEMPORARY}old-{folder.name}")
    shutil.rmtree(doomed, ignore_errors=True)
    os.replace(folder, doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove the temporary files and folders that a killed process left in `folder`."""
    for left in folder.glob(TEMPORARY + "*") if folder.is_dir() else ():
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable, where the system can (Windows cannot open a folder)."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _said(error: OSError) -> str:
    return error.strerror or str(error)
