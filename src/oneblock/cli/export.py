"""`oneblock export`: a model as one readable PyTorch file with its weights beside it, or as ONNX."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from oneblock.cli.convert import sizes
from oneblock.cli.show import find
from oneblock.export import LINES, standalone
from oneblock.files import write_file
from oneblock.zoo import named, names

EXAMPLE = "oneblock export gpt2 --standalone model.py"
WEIGHTS = "model.safetensors"


def run(
    spec: Annotated[
        str,
        typer.Argument(metavar="SPEC", help="A model's name, a spec.json, or a model folder, ours or Hugging Face's."),
    ],
    file: Annotated[
        Path | None,
        typer.Option("--standalone", metavar="FILE", help="Write a Python file that needs nothing of ours."),
    ] = None,
    onnx: Annotated[
        Path | None, typer.Option("--onnx", metavar="FILE", help="Write ONNX; needs the packages onnx and onnxscript.")
    ] = None,
    lines: Annotated[int, typer.Option(metavar="N", min=1, help="How many lines FILE may have.")] = LINES,
    size: Annotated[
        list[str] | None, typer.Option(metavar="dim=64", help="Change an argument of a named model; repeatable.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Write a model as one PyTorch file of at most 300 lines that holds exactly this model, or as ONNX.

    Of a folder the weights are written, too: as model.safetensors beside FILE, where its `load` reads them.
    """
    if file is None and onnx is None:
        raise ValueError("export: expected --standalone FILE or --onnx FILE, got neither")
    model = named(spec, **sizes(size)) if size else find(spec)
    folder = Path(spec) if Path(spec).is_dir() and spec not in names() else None
    weights = file.parent / WEIGHTS if file is not None and folder is not None else None
    free([file, onnx, None if weights is not None and mine(weights, folder) else weights], force)
    if onnx is not None:
        import_module("oneblock.export.onnx").refuse()
    if file is not None:
        text = standalone(model, called(spec), lines)
        if weights is not None and not mine(weights, folder):
            import_module("oneblock.export.beside").write_weights(folder, weights)
            done(weights, "the weights, under the names that the file has for them")
        write_file(file, text.encode())
        done(file, f"{len(text.splitlines())} lines; load() reads {WEIGHTS} beside it")
    if onnx is not None:
        state = None if folder is None else import_module("oneblock.export.beside").state(folder)
        apart = import_module("oneblock.export.onnx").write_onnx(model, onnx, state)
        checked = "not run: onnxruntime is not installed" if apart is None else f"onnxruntime agrees to {apart:.0e}"
        done(onnx, checked + ("" if folder else "; weights drawn at random, a name has none"))


def free(paths: list[Path | None], force: bool) -> None:
    """Refuse to replace a file unless that is wanted."""
    for path in paths:
        if path is not None and not path.parent.is_dir():
            raise ValueError(f"{path}: expected a folder to write into, there is none at {path.parent}")
        if path is not None and path.is_dir():
            raise ValueError(f"{path}: expected a file to write, got a folder")
        if path is not None and path.exists() and not force:
            raise ValueError(f"{path}: there already; --force replaces it")


def mine(weights: Path, folder: Path | None) -> bool:
    """Whether the file's weights lie in the folder itself, under our names. ValueError: under those of others."""
    if folder is None or weights.parent.resolve() != folder.resolve():
        return False
    if not (folder / "spec.json").is_file():
        raise ValueError(f"{weights}: would replace the weights that are read; write the file into another folder")
    return True


def called(spec: str) -> str:
    """What a written file calls its model: its name, or that of its folder or file."""
    path = Path(spec)
    if spec in names():
        return spec
    if path.name in ("spec.json", "config.json"):
        path = path.resolve().parent
    return path.resolve().name if path.is_dir() else path.stem


def done(path: Path, what: str) -> None:
    """The path on stdout, what it is on stderr."""
    print(path)
    print(f"{path}: {what}", file=sys.stderr)
