"""Text that appears token by token: each piece is whole characters, and all pieces together are the text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

LATEST = 6
"""Tokens of the prompt that are read again with the first new ones: a space may depend on what stands before."""


class Pieces:
    """Feed it token ids; it gives the text that has become certain.

    `decode` turns ids into text; `before` are ids that stand in front and are not given again.

    >>> letters = ["h", "i", " ", "é".encode()[:1], "é".encode()[1:]]
    >>> def decode(ids):
    ...     parts = (x if isinstance(x, bytes) else x.encode() for x in (letters[i] for i in ids))
    ...     return b"".join(parts).decode("utf-8", "replace")
    >>> pieces = Pieces(decode)
    >>> [pieces.add(token) for token in (0, 1, 3, 4)], pieces.end()
    (['h', 'i', '', 'é'], '')
    """

    def __init__(self, decode: Callable[[list[int]], str], before: Sequence[int] = ()) -> None:
        self._decode, self._ids = decode, list(before)[-LATEST:]
        self._from, self._given = 0, len(self._ids)

    def add(self, token: int) -> str:
        """The text that this token makes certain, often empty in the middle of a character."""
        self._ids.append(token)
        old, text = self._read()
        return "" if text.endswith("\ufffd") else self._give(old, text)

    def end(self) -> str:
        """What is left when no more tokens come; half a character becomes U+FFFD."""
        return self._give(*self._read()) if self._given < len(self._ids) else ""

    def _read(self) -> tuple[str, str]:
        """(the text given before, the same with what is new), both from a few tokens before on."""
        return self._decode(self._ids[self._from : self._given]), self._decode(self._ids[self._from :])

    def _give(self, old: str, text: str) -> str:
        self._from, self._given = self._given, len(self._ids)
        if not text.startswith(old):  # the prompt ended in half a character, which is whole now
            old = old.rstrip("\ufffd")
        return text[len(old) :]
