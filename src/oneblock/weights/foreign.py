"""Models in files without a config.json: recognised by their tensors' names, sizes read off shapes. No pickle, ever."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from oneblock.files import read_json
from oneblock.hint import nearest
from oneblock.spec import Spec, validate
from oneblock.weights.fill import WRAPPED, empty, fill
from oneblock.weights.hub import named
from oneblock.weights.packed import packed, unpacked
from oneblock.weights.spelt import today
from oneblock.weights.tensors import INDEX, WEIGHTS, Stored, header, shards
from oneblock.weights.words import Device, Dtype, device_of, dtype_of
from oneblock.zoo.family import Family, Kind, Rows
from oneblock.zoo.foreign import FLAT, LAYOUTS
from oneblock.zoo.layout import Layout, Shapes
from oneblock.zoo.stacks import ABSENT

SIZES = "params.json"
CUT = "consolidated*.safetensors"
"""Files of one model, each with a part of every matrix."""


@dataclass(frozen=True)
class Pieces(Stored):
    """Tensors by name: `cut` names those that lie in several files, and the axis along which; `held` are at hand."""

    cut: Mapping[str, tuple[int | None, Sequence[Path]]] = field(default_factory=dict)
    held: Mapping[str, Tensor] = field(default_factory=dict)

    def read(self, names: Iterable[str]) -> list[Tensor]:
        """Whole tensors by name."""
        return [self.held[name] if name in self.held else self._whole(name) for name in names]

    def beside(self, held: Mapping[str, Tensor], path: Path) -> Pieces:
        """These and others that are at hand."""
        return Pieces(dict.fromkeys(held, path) | dict(self.files), self.cut, {**self.held, **held})

    def _whole(self, name: str) -> Tensor:
        axis, files = self.cut.get(name, (None, [self.files[name]]))
        parts = [Stored({name: file}).read([name])[0] for file in files]
        return parts[0] if axis is None else torch.cat(parts, axis)


def read_foreign(
    path: str | Path,
    layout: str | None = None,
    device: Device = "cpu",
    dtype: Dtype = torch.float32,
    **sizes: Any,
) -> nn.Module:
    """The model in files that no config.json goes with, in eval mode.

    Args:
        path: a file of safetensors; a folder with model.safetensors, its shards, or consolidated.*.safetensors; or a
            flat file (.bin) of float32 numbers behind seven integers.
        layout: a name in `zoo.foreign.LAYOUTS`; by default the one that the tensors' names show.
        device: as `load` has it.
        dtype: as `load` has it.
        sizes: what no shape shows, such as heads=12. They go before what a JSON file beside the tensors says
            (params.json in a folder, the file's own name with .json beside a file).

    Raises:
        ValueError: no such file; a layout or a size that is unknown or not given; a tensor that is missing, left over
            or misshapen.
    """
    path, device, dtype = Path(path), device_of(device), dtype_of(dtype)
    if layout is not None and layout not in LAYOUTS:
        raise ValueError(f"layout: {layout!r} is none we know; {nearest(layout, LAYOUTS)}")
    name = layout or recognised(path)
    if name is None:
        raise ValueError(f"{path}: no tensors named as in a layout we know ({', '.join(LAYOUTS)}); give layout=...")
    known = LAYOUTS[name]
    for size in sizes:
        if size not in known.sizes:
            raise ValueError(f"{path}: {size} is no size of layout {name!r}; {nearest(size, known.sizes)}")
    files, shapes, said = _opened(path, known)
    spec, rows = _understood(known, shapes, said | sizes, path)
    model = empty(spec)
    if ABSENT in rows.values():
        files = files.beside({f"{ABSENT}.weight": torch.zeros(1, getattr(spec, "encoder", spec).dim)}, path)
    family = Family(known.read, {}, "", {}, {}, rows, {name: Kind()}, known.ignored, _spellings(known))
    fill(model, named(files, model, family, name, dtype, path), path)
    return model.to(device).eval()


def recognised(path: Path) -> str | None:
    """The layout that the names of the tensors show, or None."""
    if packed(path):
        return FLAT
    if not path.is_dir() and path.suffix != ".safetensors":
        return None
    try:
        names = [name for file in _files(path) for name in header(file)]
    except ValueError:
        return None
    for name, layout in LAYOUTS.items():
        if any(re.fullmatch(layout.mark, today(key, _spellings(layout))) for key in names):
            return name
    return None


def _opened(path: Path, layout: Layout) -> tuple[Pieces, Shapes, dict[str, Any]]:
    """(the tensors, their shapes by today's names, what is said beside them)."""
    if packed(path):
        held, said = unpacked(path)
        return Pieces({}).beside(held, path), {name: tuple(x.shape) for name, x in held.items()}, _asked(said, layout)
    files: dict[str, list[Path]] = {}
    parts: dict[str, tuple[int, ...]] = {}
    for file in _files(path):
        for key, entry in header(file).items():
            if key in files and layout.axis is None:
                raise ValueError(f"{file}: {key} is also in {files[key][0].name}")
            files.setdefault(key, []).append(file)
            parts[key] = tuple(entry["shape"])
    dim = next((shape[0] for key, shape in parts.items() if key.endswith("norm.weight")), 0)
    shapes: dict[str, tuple[int, ...]] = {}
    cut: dict[str, tuple[int | None, Sequence[Path]]] = {}
    for key, shape in parts.items():
        axis = layout.axis(key, shape, dim) if layout.axis and len(files[key]) > 1 else None
        cut[key] = axis, files[key]
        times = [len(files[key]) if at == axis else 1 for at in range(len(shape))]
        shapes[today(key, _spellings(layout))] = tuple(n * t for n, t in zip(shape, times, strict=True))
    return Pieces({key: listed[0] for key, listed in files.items()}, cut), shapes, _beside(path, layout)


def _files(path: Path) -> list[Path]:
    """The safetensors files that a path stands for."""
    if not path.exists():
        raise ValueError(f"{path}: expected a file or a folder of tensors, found nothing there")
    if not path.is_dir():
        return [path]
    if (path / WEIGHTS).is_file() or (path / INDEX).is_file():
        return shards(path)
    return sorted(path.glob(CUT)) or shards(path)


def _beside(path: Path, layout: Layout) -> dict[str, Any]:
    """The sizes in the JSON file beside the tensors, if there is one, in our words."""
    file = path / SIZES if path.is_dir() else path.with_suffix(".json")
    if not file.is_file():
        return {}
    said = read_json(file)
    if not isinstance(said, dict):
        raise ValueError(f"{file}: expected an object of sizes, got {type(said).__name__}")
    known = (*layout.sizes, *layout.words, *layout.shown)
    for word in said:
        if word not in known:
            raise ValueError(
                f"{file}: {word}: not understood, so what the model computes is not known; {nearest(word, known)}"
            )
    return _asked(said, layout)


def _asked(said: Mapping[str, Any], layout: Layout) -> dict[str, Any]:
    """What a layout asks for, of what is said."""
    spelt = {layout.words.get(word, word): value for word, value in said.items() if word not in layout.shown}
    return {word: value for word, value in spelt.items() if word in layout.sizes}


def _understood(layout: Layout, shapes: Shapes, sizes: Mapping[str, Any], path: Path) -> tuple[Spec, Rows]:
    """(the spec, the rows) of tensors with these shapes."""
    try:
        spec, rows = layout.read(shapes, **sizes)
        validate(spec)
    except KeyError as error:
        raise ValueError(f"{path}: {error.args[0]} is missing; {nearest(error.args[0], shapes)}") from None
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise ValueError(f"{path}: {error}") from None
    return spec, rows


def _spellings(layout: Layout) -> dict[str, str]:
    """Names as found -> as in the rows."""
    return WRAPPED | dict(layout.renamed)


__all__ = ["Pieces", "read_foreign", "recognised"]
