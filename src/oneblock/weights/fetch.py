"""A model by its hub id: fetched into the hub's own cache, or said in one line why not."""

from __future__ import annotations

import re
from pathlib import Path

from oneblock.hint import first_line

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
WANTED = ["*.json", "*.safetensors", "tokenizer.model", "*.txt"]


def fetched(name: str | Path) -> Path:
    """The folder that a path or a hub id stands for.

    Raises:
        ValueError: neither a folder nor an id that the hub has, or no network.
    """
    folder = Path(name)
    if folder.exists() or not HUB_ID.fullmatch(str(name)) or "/" not in str(name):
        return folder
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(str(name), allow_patterns=WANTED))
    except Exception as error:
        why = first_line(error)[:160]
        raise ValueError(
            f"{name}: no such folder here, and the hub could not give it ({type(error).__name__}: {why}); without a "
            "network, give the path of a folder with config.json and model.safetensors"
        ) from None
