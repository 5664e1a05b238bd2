"""Stop strings: does the text of the tokens so far hold one of them?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = ["Decodes", "StopStrings"]

EDGE = 8
"""Tokens read before a stop string could begin: a character may be spread over several."""


class Decodes(Protocol):
    """What is asked of a tokenizer: text from ids."""

    def decode(self, ids: Sequence[int], /) -> str:
        """The text of `ids`."""
        ...


class StopStrings:
    """Says of the ids of an answer whether a stop string stands at their end; only the last few are read.

    >>> class Letters:
    ...     def decode(self, ids):
    ...         return "".join("abc"[i] for i in ids)
    >>> stops = StopStrings(Letters(), ["ab", "cc"])
    >>> stops([2, 0, 1]), stops([2, 0, 2])
    (True, False)
    """

    def __init__(self, tokenizer: Decodes, stops: Sequence[str]) -> None:
        self.tokenizer, self.stops = tokenizer, tuple(stops)
        self.reach = max(len(stop.encode()) for stop in stops) + EDGE  # a token is at least a byte

    def __call__(self, ids: Sequence[int]) -> bool:
        """Whether the text ends in a stop string or in a token that begins, holds or ends one."""
        text = self.tokenizer.decode(list(ids[-self.reach :]))
        return any(stop in text for stop in self.stops)
