"""What `oneblock check` is pointed at: a name in a file or a package, a folder, a class of a library, a named model."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

import oneblock
from oneblock.cli.tiny import tiny
from oneblock.hint import first_line, nearest
from oneblock.zoo import names

SMALL = {
    "vocab_size": 97, "hidden_size": 32, "d_model": 32, "n_embd": 32, "embedding_size": 32, "d_kv": 8, "head_dim": 8,
    "num_hidden_layers": 2, "num_layers": 2, "n_layer": 2, "encoder_layers": 2, "decoder_layers": 2,
    "num_decoder_layers": 2, "n_layers": 2, "num_attention_heads": 4, "num_heads": 4, "n_head": 4, "n_heads": 4,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48,
    "d_ff": 48, "n_inner": 48, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "ffn_dim": 48, "ffn_hidden_size": 48,
    "dim": 32, "hidden_dim": 48, "max_position_embeddings": 64, "n_positions": 64, "n_ctx": 64, "rotary_dim": 4,
    "num_local_experts": 4, "num_experts": 4, "moe_intermediate_size": 24, "word_embed_proj_dim": 32,
}  # fmt: skip
"""Numbers of a public configuration that are made small; each only where the configuration has it."""
SPECIAL = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "forced_eos_token_id")


@dataclass(frozen=True)
class Target:
    """A module, what it is called, and how to make another of it (None: it cannot be made anew)."""

    module: nn.Module
    name: str
    again: Any = None


def resolved(target: str, kwargs: Mapping[str, Any]) -> Target:
    """The module that a target stands for. ValueError in one line: what is not there, or cannot be made."""
    torch.manual_seed(0)
    head, colon, name = target.rpartition(":")
    if colon and head == "transformers":
        return of_library(name, kwargs)
    if colon and (head.endswith(".py") or os.sep in head):
        return named_in(loaded(Path(head)), name, target, kwargs)
    if colon and all(part.isidentifier() for part in head.split(".")):
        return named_in(imported(head), name, target, kwargs)
    if target in names():
        return Target(oneblock.build(tiny(target, 97)), target, lambda: oneblock.build(tiny(target, 97)))
    if Path(target).is_dir():
        return Target(folder(target), Path(target).resolve().name)
    hint = nearest(target, names())
    raise ValueError(
        f"{target}: expected file.py:Name, package.module:Name, a folder, transformers:ClassName, or a model by "
        f"name{'; ' + hint if hint.startswith('did you mean') else ''}"
    )


def loaded(path: Path) -> Any:
    """A file as a module. ValueError: no such file, a syntax error, or an error while it ran."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(f"checked_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path}: expected a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise ValueError(f"{error.filename}:{error.lineno}: not Python: {error.msg}") from error
    except Exception as error:
        raise ValueError(f"{path}: could not be run: {said(error)}") from error
    return module


def imported(name: str) -> Any:
    """A package's module. ValueError: it is not there, or fails when imported."""
    sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ValueError(f"{name}: no module named {error.name!r}; is it installed, or run from its folder?") from error
    except Exception as error:
        raise ValueError(f"{name}: could not be imported: {said(error)}") from error


def named_in(module: Any, name: str, target: str, kwargs: Mapping[str, Any]) -> Target:
    """What a name in a module stands for: a class, a factory, or an instance."""
    if not hasattr(module, name):
        known = [key for key, value in vars(module).items() if isinstance(value, nn.Module) or callable(value)]
        raise ValueError(f"{target}: no {name!r} there; {nearest(name, known)}")
    found = getattr(module, name)
    if isinstance(found, nn.Module):
        return Target(found, name)
    if not callable(found):
        raise ValueError(f"{target}: expected a torch.nn.Module, its class, or a factory; got {type(found).__name__}")
    return made(found, name, target, kwargs)


def made(factory: Any, name: str, target: str, kwargs: Mapping[str, Any]) -> Target:
    """What a class or factory makes. ValueError: arguments it needs, or what it says."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        parameters = ()  # type: ignore[assignment]
    open_kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [one.name for one in parameters if one.default is one.empty and one.kind not in open_kinds]
    missing = [one for one in needed if one not in kwargs]
    if missing:
        example = ", ".join(f'"{one}": …' for one in missing)
        raise ValueError(f"{target}: needs {', '.join(missing)}; give --kwargs '{{{example}}}'")

    def again() -> nn.Module:
        found = factory(**kwargs)
        if not isinstance(found, nn.Module):
            raise ValueError(f"{target}: expected it to make a torch.nn.Module, got {type(found).__name__}")
        return found

    try:
        return Target(again(), name, again)
    except ValueError as error:
        if str(error).startswith(target):
            raise
        raise ValueError(f"{target}: could not be made: {said(error)}") from error
    except Exception as error:
        raise ValueError(f"{target}: could not be made: {said(error)}") from error


def of_library(name: str, kwargs: Mapping[str, Any]) -> Target:
    """A class of transformers, tiny and random. ValueError: no such class, or the library is not installed."""
    library = imported("transformers")
    found = getattr(library, name, None)
    if found is None or getattr(found, "config_class", None) is None:
        known = [one for one in dir(library) if (one[:1].isupper() and "Model" in one) or "For" in one]
        raise ValueError(f"transformers:{name}: no model of that name; {nearest(name, known)}")

    def again() -> nn.Module:
        usual = found.config_class()
        sizes = {key: value for key, value in SMALL.items() if getattr(usual, key, None) is not None}
        ends = {key: min(n, 3) for n, key in enumerate(SPECIAL) if getattr(usual, key, None) is not None}
        return found(found.config_class(**{**sizes, **ends, **kwargs}))  # type: ignore[no-any-return]

    try:
        return Target(again(), name, again)
    except Exception as error:
        raise ValueError(f"transformers:{name}: could not be made small: {said(error)}; give --kwargs") from error


def folder(path: str) -> nn.Module:
    """A saved model: ours, or one of the hub's by the reference library where that is installed."""
    if not (Path(path) / "spec.json").is_file() and importlib.util.find_spec("transformers"):
        library = importlib.import_module("transformers")
        try:
            config = library.AutoConfig.from_pretrained(path, local_files_only=True)
        except ValueError:  # a folder that only we can read
            return oneblock.load(path)  # type: ignore[no-any-return]
        kind = getattr(library, (getattr(config, "architectures", None) or ["AutoModel"])[0], library.AutoModel)
        return kind.from_pretrained(path, local_files_only=True)  # type: ignore[no-any-return]
    return oneblock.load(path)  # type: ignore[no-any-return]


def said(error: Exception) -> str:
    """An error's kind and its first line."""
    return f"{type(error).__name__}: {first_line(error)}"
