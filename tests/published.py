"""What is published of a model, against ours: its config.json, its size; and the reference library's count."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import oneblock
from oneblock.spec import Seq2Seq, Spec
from oneblock.weights import empty
from oneblock.zoo import FAMILIES, SIZES, named
from oneblock.zoo.config import read_config, write_config


def numbers(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def reads_as(config: dict[str, Any], size: str, **more: Any) -> None:
    """A published config.json is the named spec, and what we write of that spec says the same."""
    spec = named(size, **more)
    assert read_config(config, FAMILIES)[2] == spec
    _, _, written = write_config(spec, FAMILIES, SIZES[size][0].name)
    assert read_config(written, FAMILIES)[2] == spec


def counts(size: str, published: int) -> None:
    """The closed form is the published number; the modules of its first layers have what it says of them."""
    spec = named(size)
    assert oneblock.parameters(spec) == published
    short = shortened(spec)
    assert numbers(empty(short)) == oneblock.parameters(short)


def shortened(spec: Any) -> Spec:
    """A spec with the first two layers of each stack."""
    if isinstance(spec, Seq2Seq):
        return replace(spec, encoder=shortened(spec.encoder), decoder=shortened(spec.decoder))
    return replace(spec, layers=spec.layers[:2])


def same_in_the_reference(size: str) -> None:
    """The reference library's class, built from our config.json of a published size, has as many parameters."""
    same_in_the_reference_as(named(size), SIZES[size][0].name)


def same_in_the_reference_as(spec: Spec, family: str) -> None:
    """The reference library's class, built from our config.json of a spec, has as many parameters."""
    transformers = pytest.importorskip("transformers", reason="the reference library is not installed")
    _, name, config = write_config(spec, FAMILIES, family)
    made = getattr(transformers, name)
    with torch.device("meta"):
        assert numbers(made(made.config_class.from_dict(config))) == oneblock.parameters(spec)


def rewritten(folder: Path, change: Callable[[dict[str, Tensor]], dict[str, Tensor]], **keys: Any) -> Path:
    """A model folder with its tensors changed, and keys of its config."""
    path = folder / "model.safetensors"
    tensors = {name: x.clone() for name, x in load_file(path).items()}
    save_file(change(tensors), path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | keys))
    return folder
