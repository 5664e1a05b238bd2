"""A model as a folder: spec.json says what it is, model.safetensors holds its tensors, each once. No pickle, ever."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from oneblock.bricks import build_model
from oneblock.files import replacing
from oneblock.spec import Spec, from_dict, nearest, to_dict

SPEC, WEIGHTS = "spec.json", "model.safetensors"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
WRAPPERS = ("_orig_mod", "module")
"""What torch.compile and DistributedDataParallel put into keys."""


def save(model: nn.Module, folder: str | Path, dtype: torch.dtype | None = None) -> None:
    """Write a model into a folder: spec.json and model.safetensors, each by one rename.

    Args:
        model: made by `oneblock.build`, wrapped or not.
        folder: made if needed; files of those names in it are replaced.
        dtype: store floating tensors in this dtype; by default as they are.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    spec = json.dumps(to_dict(spec_of(model)), indent=1) + "\n"
    tensors = unique(model)
    if dtype is not None:
        tensors = {name: x.to(dtype) if x.is_floating_point() else x for name, x in tensors.items()}
    # Both are written before either takes its name: a full disk leaves the old model, whatever the new spec is.
    with replacing(folder / SPEC) as spec_path, replacing(folder / WEIGHTS) as weights_path:
        spec_path.write_text(spec, encoding="utf-8")
        save_file(tensors, weights_path, metadata={"format": "pt"})


def load(
    folder: str | Path, device: str | torch.device = "cpu", dtype: torch.dtype | None = torch.float32
) -> nn.Module:
    """The model in a folder, in eval mode.

    Args:
        folder: holds spec.json and model.safetensors.
        device: where the tensors go.
        dtype: of floating tensors; None keeps what is stored.

    Raises:
        ValueError: the folder or a file in it is missing, cut short, no safetensors, or does not fit the spec.
    """
    folder = Path(folder)
    model = _empty(read_spec(folder))
    tensors = read_tensors(folder / WEIGHTS)
    if dtype is not None:
        tensors = {name: x.to(dtype) if x.is_floating_point() else x for name, x in tensors.items()}
    fill(model, tensors, folder / WEIGHTS)
    return model.to(device).eval()


def read_spec(folder: Path) -> Spec:
    """The spec that a model folder holds."""
    if not folder.is_dir():
        raise ValueError(f"{folder}: expected a model folder, found {'a file' if folder.exists() else 'nothing'} there")
    path = folder / SPEC
    if not path.is_file():
        raise ValueError(f"{path}: not there; a model folder holds {SPEC} and {WEIGHTS}")
    try:
        spec = from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: expected JSON, got something else ({error})") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(spec, Spec):
        raise ValueError(f"{path}: expected a Model or a Seq2Seq, got {type(spec).__name__}")
    return spec


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, memory-mapped."""
    if path.suffix in PICKLES:
        raise ValueError(f"{path}: pickles can run code and are never read; convert it to safetensors elsewhere")
    if not path.is_file():
        raise ValueError(f"{path}: not there; a model folder holds {SPEC} and {WEIGHTS}")
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path}: no whole safetensors file ({error}); it may be cut short, fetch it again") from None


def fill(model: nn.Module, tensors: dict[str, Tensor], source: object = "tensors") -> None:
    """Give a model its tensors by name: every one read, every parameter written, shapes equal; ties stay ties."""
    tensors = {unwrapped(name): x for name, x in tensors.items()}
    own = unique(model)
    for name in sorted(own.keys() - tensors.keys()):
        raise ValueError(f"{source}: {name} is missing; {nearest(name, tensors)}")
    ties = _ties(model)
    for name in sorted(tensors.keys() - {unwrapped(name) for name in ties}):
        raise ValueError(f"{source}: {name} belongs to no parameter of this spec; {nearest(name, own)}")
    for name, parameter in own.items():
        if tensors[name].shape != parameter.shape:
            raise ValueError(
                f"{source}: {name}: expected shape {tuple(parameter.shape)}, got {tuple(tensors[name].shape)}"
            )
    model.load_state_dict({name: tensors[unwrapped(same)] for name, same in ties.items()}, assign=True)
    for name, same in ties.items():
        if name != same:
            _retie(model, name, same)


def unique(model: nn.Module) -> dict[str, Tensor]:
    """Name -> tensor of a model, each tensor once, without the prefixes of wrappers."""
    state = model.state_dict()
    return {unwrapped(name): state[name].detach().contiguous() for name, same in _ties(model).items() if name == same}


def unwrapped(name: str) -> str:
    """A key without what wrappers put into it.

    >>> unwrapped("module._orig_mod.norm.weight")
    'norm.weight'
    """
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)


def spec_of(model: nn.Module) -> Spec:
    """The spec of a model, wrapped or not."""
    for module in model.modules():
        if hasattr(module, "spec"):
            return module.spec
    raise ValueError(f"save: {type(model).__name__} has no spec; expected a model made by oneblock.build")


def _empty(spec: Spec) -> nn.Module:
    with torch.device("meta"):
        return build_model(spec)


def _ties(model: nn.Module) -> dict[str, str]:
    """Every key of the state dict -> the first key that holds the same parameter."""
    first: dict[int, str] = {}
    named = model.named_parameters(remove_duplicate=False)
    ties = {name: first.setdefault(id(parameter), name) for name, parameter in named}
    return {name: ties.get(name, name) for name in model.state_dict(keep_vars=True)}


def _retie(model: nn.Module, name: str, same: str) -> None:
    owner, _, leaf = name.rpartition(".")
    setattr(model.get_submodule(owner), leaf, model.get_parameter(same))
