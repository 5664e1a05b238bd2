"""The other side of a comparison: transformers, and a model folder as it opens it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn

from oneblock.hint import first_line
from oneblock.weights.fetch import fetched
from oneblock.weights.hub import CONFIG, write_hub


@contextmanager
def opened(model: nn.Module, folder: Path, other: str | Path | None) -> Iterator[Path]:
    """A folder that transformers may open."""
    there = folder if other is None else fetched(other)
    if (there / CONFIG).is_file() and (other is not None or not (there / "spec.json").is_file()):
        yield there
        return
    if other is not None:
        raise ValueError(f"{there}: no {CONFIG} there, so transformers cannot open it")
    with TemporaryDirectory() as fresh:
        write_hub(model, Path(fresh))
        yield Path(fresh)


def library() -> Any:
    """The package; ValueError where it is not installed."""
    try:
        import transformers
    except ImportError:
        raise ValueError(
            "verify: transformers is not installed, and it is what we compare with; pip install transformers"
        ) from None
    return transformers


def opened_by(known: Any, name: str, folder: Path) -> nn.Module:
    """Their model of a folder, in eval mode, in float32."""
    kind: Any = getattr(known, name, None)
    if kind is None:
        raise ValueError(f"verify: transformers {known.__version__} has no {name}; install another version")
    how: dict[str, Any] = {"local_files_only": True, "use_safetensors": True, "dtype": torch.float32}
    loud, bars = known.logging.get_verbosity(), known.utils.logging.is_progress_bar_enabled()
    known.logging.set_verbosity_error()
    known.logging.disable_progress_bar()
    try:
        model, info = kind.from_pretrained(folder, attn_implementation="eager", output_loading_info=True, **how)
    except Exception as error:
        why = first_line(error)[:160]
        raise ValueError(f"{folder}: transformers cannot open it ({type(error).__name__}: {why})") from None
    finally:
        known.logging.set_verbosity(loud)
        if bars:
            known.logging.enable_progress_bar()
    if missing := sorted(info["missing_keys"]):
        raise ValueError(f"{folder}: transformers finds no {missing[0]} there and would draw it at random")
    found: nn.Module = model.eval()
    return found


__all__ = ["library", "opened", "opened_by"]
