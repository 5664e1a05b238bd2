"""Files and folders that are either wholly there or not there at all, whenever the power goes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

__all__ = ["discard", "publish", "sweep", "write_file"]

TEMPORARY = ".tmp-"


def write_file(path: Path, data: bytes) -> None:
    """Replace `path` by `data` in one step: a sibling is written, flushed to the disk, then renamed over it."""
    sibling = path.with_name(TEMPORARY + path.name)
    try:
        _write(sibling, data)
        os.replace(sibling, path)
        _sync_folder(path.parent)
    except OSError as error:
        sibling.unlink(missing_ok=True)
        raise OSError(error.errno, f"cannot write {path}: {error.strerror}; what was there before is intact") from None


def publish(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make `folder` with these files appear by one rename, after every file and the folder itself are on the disk.

    A folder of that name that is already there (a damaged one) is replaced. When a write fails, for instance because
    the disk is full, nothing of the new folder is left and OSError says so in one line.
    """
    fresh = folder.with_name(TEMPORARY + folder.name)
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        for name, data in files.items():
            _write(fresh / name, data)
        _sync_folder(fresh)
        if folder.exists():
            discard(folder)
        os.replace(fresh, folder)
        _sync_folder(folder.parent)
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise OSError(error.errno, f"cannot save {folder}: {error.strerror}; earlier checkpoints are intact") from None


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


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
