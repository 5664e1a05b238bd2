"""What a model's folder says about tokens: which end an answer and which never come, from generation_config.json.

Only that is read. Habits of sampling and searching that stand in the same file (temperature, top_p, do_sample,
num_beams, max_length, ...) are not: what a command prints must not depend on a number that nobody sees.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oneblock.files import read_json
from oneblock.generate.checks import checked

__all__ = ["read_defaults"]

FILE = "generation_config.json"
TOKENS = ("eos_token_id", "pad_token_id", "bad_words_ids", "suppress_tokens", "stop_strings")
"""The keys that mean the same as choices of ours. Tokens that are forced to come are no choice of ours."""


def read_defaults(folder: Path, vocab: int) -> dict[str, Any]:
    """Choices of `generate` that hold where nothing else is said, {} without such a file.

    Ids that a model of `vocab` tokens does not have are left out: they cannot come. ValueError: a damaged file.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / FILE).write_text('{"eos_token_id": [2, 7, 99], "temperature": 0.6}')
    >>> read_defaults(folder, 10)
    {'eos_token_id': [2, 7]}
    """
    path = folder / FILE
    said = read_json(path) if path.is_file() else {}
    if not isinstance(said, dict):
        raise ValueError(f"{path}: expected an object of choices, got {type(said).__name__}")
    try:
        found = {name: checked(name, said[name]) for name in TOKENS if said.get(name) is not None}
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    known = {name: value if name == "stop_strings" else _known(value, vocab) for name, value in found.items()}
    return {name: value for name, value in known.items() if value not in (None, [])}


def _known(value: Any, vocab: int) -> Any:
    """An id, a list of ids or of lists of ids, without what the vocabulary lacks; -1, no token at all, stays."""
    if isinstance(value, int):
        return value if value < vocab else None
    if all(isinstance(item, int) for item in value):
        return [token for token in value if 0 <= token < vocab]
    return [word for word in value if all(0 <= token < vocab for token in word)]
