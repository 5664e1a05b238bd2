"""Reading JSON that others may have written or damaged: whatever is wrong is said in one line that names the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DEEPEST = 100
"""Levels of lists and objects in each other that a file may have; ours have ten."""


def read_json(path: Path) -> Any:
    """The value in a JSON file in UTF-8, with or without a byte order mark.

    ValueError: no such file, not UTF-8, not JSON, nested too deeply, a key that stands twice in one object.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "spec.json"
    >>> _ = path.write_text('{"dim": 8}', encoding="utf-8-sig")
    >>> read_json(path)
    {'dim': 8}
    """
    try:
        value = json.loads(path.read_bytes().decode("utf-8-sig"), object_pairs_hook=_once)
        _shallow(value, DEEPEST)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected JSON in UTF-8, got a file that is not (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: expected JSON, got something else ({error.msg})") from None
    except RecursionError:
        raise ValueError(f"{path}: expected JSON, got one nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{path}: expected JSON, got one that cannot be meant ({error})") from None
    return value


def _shallow(value: Any, levels: int) -> None:
    """RecursionError for more levels than that, long before whoever walks through the value gets one."""
    if not levels:
        raise RecursionError
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _shallow(part, levels - 1)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {next(key for key in keys if keys.count(key) > 1)!r} stands twice in one object")
    return found
