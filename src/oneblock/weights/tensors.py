"""Tensors in safetensors files, one or several shards: every header is checked before anything is read. No pickle."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from oneblock.files import read_json

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
LONGEST_HEADER = 100_000_000


@dataclass(frozen=True)
class Stored:
    """Where the tensors of a folder or file lie: name -> file."""

    files: Mapping[str, Path]

    def read(self, names: Iterable[str]) -> list[Tensor]:
        """Tensors by name, memory-mapped: pages are read when they are touched, and shared until written to."""
        found = []
        for name in names:
            # Opened for each tensor: what is copied out of a map leaves memory with it.
            with safe_open(self.files[name], framework="pt", device="cpu") as file:
                found.append(file.get_tensor(name))
        return found


def stored(path: Path) -> Stored:
    """The tensors of a file, or of all shards of a folder.

    Raises:
        ValueError: nothing there, a pickle, a file that is cut short or malformed, a shard that is missing or named
            twice, a tensor that lies in two of them.
    """
    if path.suffix in PICKLES:
        raise ValueError(f"{path}: pickles can run code and are never read; convert it to safetensors elsewhere")
    found: dict[str, Path] = {}
    for file in shards(path) if path.is_dir() else [path]:
        for name in header(file):
            if name in found:
                raise ValueError(f"{file}: {name} is also in {found[name].name}")
            found[name] = file
    return Stored(found)


def shards(folder: Path) -> list[Path]:
    """The safetensors files of a model folder."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if not (folder / INDEX).is_file():
        raise ValueError(f"{folder}: neither {WEIGHTS} nor {INDEX} there{pickled(folder)}")
    listed = read_json(folder / INDEX)
    names = listed.get("weight_map") if isinstance(listed, dict) else None
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise ValueError(f"{folder / INDEX}: expected a weight_map from tensors to files")
    files = sorted(set(names.values()))
    for name in files:
        if Path(name).name != name or name in ("", ".", "..") or "\\" in name or "\0" in name:
            raise ValueError(f"{folder / INDEX}: expected names of files beside it, got {name!r}")
    for name in files:
        if not (folder / name).is_file():
            raise ValueError(f"{folder / name}: not there, though {INDEX} lists it; fetch it again")
    for name in files:
        missing = {tensor for tensor, file in names.items() if file == name} - set(header(folder / name))
        if missing:
            raise ValueError(f"{folder / name}: {min(missing)} is not in it, though {INDEX} says so")
    return [folder / name for name in files]


def pickled(folder: Path) -> str:
    """What to say of a folder, or a file, in which only a pickle was found; else nothing."""
    files = sorted(folder.iterdir()) if folder.is_dir() else [folder]
    names = [path.name for path in files if path.suffix in PICKLES and path.is_file()]
    how = "convert it to safetensors where you trust it, with transformers' save_pretrained or safetensors' save_file"
    return f"; {names[0]} is a pickle, which can run code and is never read: {how}" if names else ""


def header(path: Path) -> dict[str, Any]:
    """Name -> {dtype, shape, data_offsets} of a safetensors file, checked against the file's size."""

    def bad(why: str) -> ValueError:
        return ValueError(f"{path}: no whole safetensors file ({why}); it may be cut short, fetch it again")

    def odd(why: str) -> ValueError:
        return ValueError(f"{path}: {why}; nobody who writes safetensors does that, do not trust this file")

    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, LONGEST_HEADER):
                raise bad(f"its header should be {length:,} bytes, the file has {size:,}")
            raw = file.read(length)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        pairs: list[tuple[str, Any]] = json.loads(raw.decode("utf-8"), object_pairs_hook=list)
        entries = {name: dict(entry) for name, entry in pairs if name != "__metadata__"}
        names = [name for name, _ in pairs]
        end = max((int(entry["data_offsets"][1]) for entry in entries.values()), default=0)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError) as error:
        raise bad(f"its header is not what it should be: {type(error).__name__}") from None
    for name, count in Counter(names).items():
        if count > 1:
            raise odd(f"{name!r} stands twice in its header")
    for name in names:
        if not name or "\0" in name or ".." in re.split(r"[/\\]", name):
            raise odd(f"{name!r} is no name of a tensor")
    if end != size - 8 - length:
        raise bad(f"its tensors end at {end:,}, the file at {size - 8 - length:,}")
    try:
        with safe_open(path, framework="pt", device="cpu"):
            return entries
    except (SafetensorError, OSError) as error:
        raise bad(str(error)) from None


def converted(x: Tensor, dtype: torch.dtype | None) -> Tensor:
    """A floating tensor in a dtype; others, and all with None, as they are."""
    return x.to(dtype) if dtype is not None and x.is_floating_point() else x
