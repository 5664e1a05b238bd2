"""Model folders as the hub has them: config.json and safetensors under the family's own names, read and written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from oneblock.files import replacing
from oneblock.hint import nearest
from oneblock.weights import rows
from oneblock.weights.fill import empty, fill, spec_of, ties, unique
from oneblock.weights.spelt import Spelt
from oneblock.weights.tensors import INDEX, WEIGHTS, Stored, converted, stored
from oneblock.weights.words import Device, Dtype, device_of, dtype_of
from oneblock.zoo import FAMILIES
from oneblock.zoo.config import read_public, write_config
from oneblock.zoo.family import Family

CONFIG = "config.json"
SHARD = 5_000_000_000
"""Bytes of one file beyond which a model is written in several."""


def read_hub(folder: Path, device: Device = "cpu", dtype: Dtype = torch.float32) -> nn.Module:
    """The model in a folder with a config.json, in eval mode.

    Raises:
        ValueError: what is wrong with the config or the files, or a tensor that is missing, left over, or misshapen.
    """
    device, dtype = device_of(device), dtype_of(dtype)
    family, name, spec = read_public(folder / CONFIG, FAMILIES)
    model = empty(spec)
    fill(model, named(stored(folder), model, family, name, dtype, folder), folder)
    return model.to(device).eval()


def named(
    files: Stored, model: nn.Module, family: Family, name: str, dtype: torch.dtype | None, source: object
) -> dict[str, Tensor]:
    """The tensors of a public model under our names; every one of theirs is read, or is known to say nothing."""
    kind, own, second = family.kinds[name], unique(model), twins(model, family, name)
    groups = list(rows.groups(family.row(spec_of(model), kind), shapes(own)))
    wanted = {key for group in groups for key in group.theirs} | second.keys()
    spelt = Spelt(files, family.spellings(spec_of(model)), wanted, kind.prefix, source)
    found: dict[str, Tensor] = {}
    for group in groups:
        others = [twin for twin, same in second.items() if same == group.ours[0]]
        keys = [spelt.first([key, *others, family.instead.get(key, key)]) for key in group.theirs]
        parts = rows.ours(group.row, spelt.read(keys), [tuple(own[one].shape) for one in group.ours])
        found |= {one: converted(part, dtype) for one, part in zip(group.ours, parts, strict=True)}
    for theirs, same in second.items():
        if theirs in spelt.left and not torch.equal(converted(spelt.read([theirs])[0], dtype), found[same]):
            raise ValueError(f"{source}: {theirs} differs from {same}, though the config says they are one")
    for key in sorted(spelt.left):
        if not any(fnmatchcase(key, glob) or fnmatchcase(key, f"*.{glob}") for glob in family.ignored):
            raise ValueError(f"{source}: {key} is not read by anything in this model; {nearest(key, wanted)}")
    return found


def twins(model: nn.Module, family: Family, name: str) -> dict[str, str]:
    """Their name of a tensor that is another one's twin -> our name of that one: a head tied to an embedding."""
    second = {key: same for key, same in ties(model).items() if key != same}
    state = model.state_dict(keep_vars=True)
    table = family.row(spec_of(model), family.kinds[name])
    found = {}
    for group in rows.groups(table, {key: tuple(state[key].shape) for key in second}):
        found |= dict.fromkeys(group.theirs, second[group.ours[0]])
    return found


def shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    """Name -> shape."""
    return {name: tuple(x.shape) for name, x in tensors.items()}


def write_hub(
    model: nn.Module,
    folder: Path,
    dtype: torch.dtype | None = None,
    family: str | None = None,
    most: int = SHARD,
) -> str:
    """Write a model as the hub's readers open it, in files of about `most` bytes; the name of its class.

    Raises:
        ValueError: the spec is of no family whose files are known.
    """
    spec = spec_of(model)
    known, name, config = write_config(spec, FAMILIES, family)
    tensors = {key: converted(x, dtype) for key, x in theirs(model, known, name).items()}
    stored_as = str(next(iter(tensors.values())).dtype).removeprefix("torch.")
    texts = {CONFIG: config | {"dtype": stored_as, "torch_dtype": stored_as}}
    parts = cut(tensors, most)
    if len(parts) > 1:
        places = {key: file for file, held in parts.items() for key in held}
        size = sum(x.nbytes for x in tensors.values())
        texts[INDEX] = {"metadata": {"total_size": size}, "weight_map": places}
    folder.mkdir(parents=True, exist_ok=True)
    # All are written before any takes its name: a full disk leaves the old model.
    with ExitStack() as stack:
        for file, said in texts.items():
            path = stack.enter_context(replacing(folder / file))
            path.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
        for file, held in parts.items():
            path = stack.enter_context(replacing(folder / file))
            save_file({key: x.contiguous() for key, x in held.items()}, path, metadata={"format": "pt"})
    _forget(folder, {*texts, *parts})
    return name


def _forget(folder: Path, kept: set[str]) -> None:
    """Remove weights of a model that was here before: readers would take them for this one's."""
    for path in [folder / WEIGHTS, folder / INDEX, *folder.glob("model-?????-of-?????.safetensors")]:
        if path.name not in kept:
            path.unlink(missing_ok=True)


def theirs(model: nn.Module, family: Family, name: str) -> dict[str, Tensor]:
    """The tensors of a model under the family's names."""
    own = unique(model)
    found: dict[str, Tensor] = {}
    for group in rows.groups(family.row(spec_of(model), family.kinds[name]), shapes(own)):
        parts = rows.theirs(group.row, [own[one] for one in group.ours])
        found |= dict(zip(group.theirs, parts, strict=True))
    return {copy: found[key].clone() for copy, key in family.copies.items() if key in found} | found


def cut(tensors: dict[str, Tensor], most: int = SHARD) -> dict[str, dict[str, Tensor]]:
    """File name -> tensors, none of the files much above `most` bytes."""
    parts: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, x in tensors.items():
        if size and size + x.nbytes > most:
            parts.append({})
            size = 0
        parts[-1][name] = x
        size += x.nbytes
    if len(parts) == 1:
        return {WEIGHTS: parts[0]}
    return {f"model-{i + 1:05}-of-{len(parts):05}.safetensors": part for i, part in enumerate(parts)}


__all__ = ["cut", "named", "read_hub", "theirs", "write_hub"]
