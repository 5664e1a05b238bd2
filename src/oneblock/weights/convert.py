"""A model folder of one kind as a folder of another: written beside its place, read again, and only then put there."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from oneblock.files import appearing, read_json
from oneblock.weights.fetch import fetched
from oneblock.weights.fill import spec_of, unique
from oneblock.weights.folder import load, save
from oneblock.weights.foreign import read_foreign
from oneblock.weights.hub import CONFIG
from oneblock.weights.labels import read_labels, write_labels
from oneblock.weights.tensors import converted
from oneblock.weights.words import Dtype, dtype_of

BESIDE = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "tokenizer.model",
    "generation_config.json",
)
"""Files that go along as they are."""


@dataclass(frozen=True)
class Converted:
    """What was written: the class of the model, its parameters, all bytes, the dtypes of the tensors, the files."""

    folder: str
    format: str
    model: str
    parameters: int
    bytes: int
    dtype: str
    files: tuple[str, ...]


def convert(
    source: str | Path,
    folder: str | Path,
    format: Literal["oneblock", "hf"] = "oneblock",
    family: str | None = None,
    dtype: Dtype = None,
    layout: str | None = None,
    sizes: Mapping[str, Any] | None = None,
) -> Converted:
    """Write the model in `source` into a new folder, with the files of its tokenizer and the names of its labels.

    Args:
        source: what `load` takes: a folder of ours or of Hugging Face's, a hub id.
        folder: where to write; it must not be there, or be empty. Either all of the model appears in it or nothing.
        format: as `save` has it.
        family: whose files to write in format "hf".
        dtype: of floating tensors, as `load` has it; None keeps what is stored.
        layout: of files that no config.json goes with, and `sizes`: as `read_foreign` has them.

    Raises:
        ValueError: as `load` and `save`; a folder that holds something, or lies in the source; a model that did not
            come back as it was.
    """
    target, dtype = Path(folder).resolve(), dtype_of(dtype)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{folder}: is there already and not empty; name a new folder, or remove that one first")
    found = fetched(source)
    if found.resolve() in target.parents:
        raise ValueError(f"{folder}: lies in {source}, which is only read; name a folder outside it")
    there = found if found.is_dir() else found.parent
    model = read_foreign(found, layout, dtype=None, **(sizes or {})) if layout or sizes else load(found, dtype=None)
    with appearing(target) as fresh:
        save(model, fresh, dtype, format, family)
        for name in BESIDE:
            if (there / name).is_file():
                shutil.copyfile(there / name, fresh / name)
        names, spec = read_labels(there), spec_of(model)
        if names and len(names) == getattr(getattr(spec, "decoder", spec).head, "labels", 0):
            write_labels(fresh, names)
        same(model, load(fresh, dtype=None), dtype)
        written = sorted(fresh.iterdir())
        sizes_of = sum(path.stat().st_size for path in written)
        kind = read_json(fresh / CONFIG)["architectures"][0] if format == "hf" else type(model).__name__
    tensors = {name: converted(x, dtype) for name, x in unique(model).items()}
    dtypes = ", ".join(sorted({str(x.dtype).removeprefix("torch.") for x in tensors.values()}))
    count = sum(x.numel() for x in tensors.values())
    return Converted(str(folder), format, kind, count, sizes_of, dtypes, tuple(path.name for path in written))


def same(model: nn.Module, again: nn.Module, dtype: torch.dtype | None) -> None:
    """Refuse a copy that is not the model, bit for bit, after conversion to `dtype`."""
    if spec_of(model) != spec_of(again):
        raise ValueError("convert: the spec did not come back as it was; nothing was written")
    copy = unique(again)
    for name, x in unique(model).items():
        if not equal(converted(x, dtype), copy[name]):
            raise ValueError(f"convert: {name} did not come back as it was; nothing was written")


def equal(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are the same bits: NaN is equal to itself, 0.0 not to -0.0."""
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    return torch.equal(*(x.contiguous().flatten().view(torch.uint8) for x in (a, b)))


__all__ = ["Converted", "convert"]
