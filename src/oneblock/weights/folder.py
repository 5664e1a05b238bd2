"""A model as a folder: ours (spec.json and model.safetensors, each tensor once) or the hub's. No pickle, ever."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from oneblock.files import replacing
from oneblock.spec import Spec, to_dict
from oneblock.spec.read import read
from oneblock.weights.fetch import fetched
from oneblock.weights.fill import empty, fill, spec_of, unique
from oneblock.weights.foreign import read_foreign, recognised
from oneblock.weights.hub import CONFIG, read_hub, write_hub
from oneblock.weights.labels import LABELS
from oneblock.weights.tensors import WEIGHTS, converted, pickled, stored
from oneblock.weights.words import Device, Dtype, device_of, dtype_of

SPEC = "spec.json"


def save(
    model: nn.Module,
    folder: str | Path,
    dtype: Dtype = None,
    format: Literal["oneblock", "hf"] = "oneblock",
    family: str | None = None,
) -> None:
    """Write a model into a folder, each file by one rename.

    Args:
        model: made by `oneblock.build` or `oneblock.load`, wrapped or not.
        folder: made if needed; files of those names in it are replaced.
        dtype: store floating tensors in this dtype, which may be a name as in `load`; by default as they are.
        format: "oneblock" writes spec.json and model.safetensors; "hf" config.json and model.safetensors as Hugging
            Face's transformers opens them.
        family: whose files to write in format "hf"; by default the first family that the spec belongs to.

    Raises:
        ValueError: an unknown format, family or dtype; a spec that no family's files can say.
    """
    folder, dtype = Path(folder), dtype_of(dtype)
    if format == "hf":
        write_hub(model, folder, dtype, family)
        for name in (SPEC, LABELS):  # they spoke of a model that was here before
            (folder / name).unlink(missing_ok=True)
        return
    if format != "oneblock":
        raise ValueError(f"format: expected 'oneblock' or 'hf', got {format!r}")
    folder.mkdir(parents=True, exist_ok=True)
    spec = json.dumps(to_dict(spec_of(model)), indent=1) + "\n"
    tensors = {name: converted(x, dtype).contiguous() for name, x in unique(model).items()}
    # Both are written before either takes its name: a full disk leaves the old model, whatever the new spec is.
    with replacing(folder / SPEC) as spec_path, replacing(folder / WEIGHTS) as weights_path:
        spec_path.write_text(spec, encoding="utf-8")
        save_file(tensors, weights_path, metadata={"format": "pt"})
    (folder / CONFIG).unlink(missing_ok=True)  # it names tensors that were here before


def save_pretrained(model: nn.Module, folder: str | Path, dtype: Dtype = None, family: str | None = None) -> None:
    """Write a model into a folder that Hugging Face's transformers opens: `save` with format "hf".

    >>> import tempfile, oneblock
    >>> model = oneblock.build(oneblock.named("gpt2", dim=8, depth=1, heads=2, hidden=16, vocab=9, length=4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_pretrained(model, folder)
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['config.json', 'model.safetensors']
    """
    save(model, folder, dtype, "hf", family)


def load(folder: str | Path, device: Device = "cpu", dtype: Dtype = torch.float32) -> nn.Module:
    """The model in a folder or on the hub, in eval mode. Files are memory-mapped; no pickle is read.

    Args:
        folder: holds spec.json or a Hugging Face config.json, and safetensors (one file or shards); or a hub id such as
            "org/name", fetched into the hub's own cache; or what `read_foreign` recognises by itself.
        device: where the tensors go; "auto" is a GPU where there is one.
        dtype: of floating tensors, a dtype or its name: "float32", "bfloat16", "float16"; None or "auto" keeps what is
            stored.

    Raises:
        ValueError: the folder or a file in it is missing, cut short, no safetensors, or does not fit the spec; a config
            that is not understood; a hub id that cannot be fetched; no such device or dtype.
    """
    folder, device, dtype = fetched(folder), device_of(device), dtype_of(dtype)
    if not (folder / SPEC).is_file() and (folder / CONFIG).is_file():
        return read_hub(folder, device, dtype)
    if not (folder / SPEC).is_file() and recognised(folder):
        return read_foreign(folder, None, device, dtype)
    model = empty(read_spec(folder))
    fill(model, {name: converted(x, dtype) for name, x in read_tensors(folder / WEIGHTS).items()}, folder / WEIGHTS)
    return model.to(device).eval()


def read_spec(folder: Path) -> Spec:
    """The spec that a model folder holds."""
    if not folder.is_dir():
        there = "a file" if folder.exists() else "nothing"
        raise ValueError(f"{folder}: expected a model folder, found {there} there{pickled(folder)}")
    path = folder / SPEC
    if not path.is_file():
        raise ValueError(f"{path}: not there; a model folder holds {SPEC} or {CONFIG}, and {WEIGHTS}{pickled(folder)}")
    return read(path)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, memory-mapped."""
    if not path.is_file() and path.suffix == ".safetensors":
        raise ValueError(f"{path}: not there; a model folder holds {SPEC} and {WEIGHTS}")
    files = stored(path)
    return dict(zip(files.files, files.read(files.files), strict=True))
