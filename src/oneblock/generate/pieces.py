"""How long a text a model takes; a longer one is split where a reader would pause, and what had to be cut is said.

No tensors here. What "too long" means is the caller's function, since only a tokenizer can tell.
"""

import re
from collections.abc import Callable

from oneblock.spec import Model

__all__ = ["capacity", "pieces"]

SENTENCE = re.compile("(?<=[。！？!?])(?![。！？!?”’」』）\"')])|(?<=[。！？!?.][”’」』）\"')])|(?<=[.])(?=\\s)")
CLAUSE = re.compile(r"(?<=[，、；：])|(?<=[,;:])(?=\s)")


def pieces(text: str, fits: Callable[[str], bool]) -> tuple[list[str], str]:
    """`text` as pieces that fit, in order, and what was cut because nothing could split it, usually nothing.

    A text that fits stays whole. Otherwise each sentence is a piece; a sentence that does not fit is split after
    commas into as few pieces as possible; a clause that does not fit is cut, after a whole word where there are spaces.

    >>> pieces("你好。他来了，我走了！", lambda piece: len(piece) <= 5)
    (['你好。', '他来了，', '我走了！'], '')
    >>> pieces("one two three", lambda piece: len(piece) <= 9)
    (['one two'], 'three')
    """
    if fits(text):
        return [text], ""
    found: list[str] = []
    lost: list[str] = []
    for sentence in _parts(SENTENCE, text):
        if fits(sentence):
            found.append(sentence)
            continue
        for clause in _packed(_parts(CLAUSE, sentence), fits):
            size = _longest(clause, fits)
            if size:
                found.append(clause[:size].strip())
            if size < len(clause):
                lost.append(clause[size:].strip())
    return found, "\n".join(lost)


def capacity(*streams: Model) -> int | None:
    """How many tokens all of these streams take: what they were trained for, and what their tables of positions have.

    None where nothing sets a limit.
    """
    limits = (limit for spec in streams for limit in (spec.length, getattr(spec.embedding.position, "length", None)))
    return min((limit for limit in limits if limit is not None), default=None)


def _parts(pause: re.Pattern[str], text: str) -> list[str]:
    return [part for part in pause.split(text) if part.strip()]


def _packed(parts: list[str], fits: Callable[[str], bool]) -> list[str]:
    """Neighbours joined as long as they fit."""
    packed: list[str] = []
    for part in parts:
        if packed and fits(packed[-1] + part):
            packed[-1] += part
        else:
            packed.append(part)
    return packed


def _longest(text: str, fits: Callable[[str], bool]) -> int:
    """How many characters from the start fit, by halving; at the end of a word if the text has spaces."""
    if fits(text):
        return len(text)
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(text[:middle]) else (low, middle)
    space = max((match.start() for match in re.finditer(r"\s", text[: low + 1])), default=0)
    return space or low
