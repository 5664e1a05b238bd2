"""A hint for a word that is not known: the known one that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: object, known: Iterable[object]) -> str:
    """What to say after a word that is not known: the closest known one, else all of them.

    >>> nearest("layernorm", ["LayerNorm", "RMSNorm"])
    'did you mean LayerNorm?'
    >>> nearest("colour", ["heads", "dim"])
    'known: dim, heads'
    """
    by_lower = {str(name).lower(): str(name) for name in known}
    close = get_close_matches(str(word).lower(), list(by_lower), n=1, cutoff=0.5)
    return f"did you mean {by_lower[close[0]]}?" if close else f"known: {', '.join(sorted(by_lower.values()))}"
