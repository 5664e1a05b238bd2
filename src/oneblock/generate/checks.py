"""What each choice of `generate` may be: a table of checks, and the one line that refuses anything else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from reprlib import repr as brief
from typing import Any

__all__ = ["CHECKS", "MANY", "Check", "checked", "shown", "whole"]

MOST = 1_000_000
"""New tokens at the most: a larger number is a slip of the keyboard."""
MANY = 1_024
"""Beams, answers and stop strings at the most."""
LARGE = 2**31


@dataclass(frozen=True)
class Check:
    """Which values are `right`, in words what is `expected`, and what is `made` of a right one."""

    right: Callable[[Any], bool]
    expected: str
    made: Callable[[Any], Any] = lambda value: value

    def __call__(self, name: str, value: Any) -> Any:
        """The value; numbers and tensors of numpy and torch become Python's. ValueError: it is not right.

        >>> whole(1, 9)("top_k", 2.0)
        Traceback (most recent call last):
        ValueError: top_k: expected a whole number from 1 to 9, got 2.0
        """
        value = value.tolist() if hasattr(value, "tolist") else value
        if not self.right(value):
            raise ValueError(f"{name}: expected {self.expected}, got {shown(value)}")
        return self.made(value)


def whole(least: int, most: int) -> Check:
    """A whole number in a range, both ends in it; True is none."""
    return Check(lambda x: _whole(x) and least <= x <= most, f"a whole number from {least:,} to {most:,}")


def number(where: str, right: Callable[[float], bool]) -> Check:
    """A number that float can hold."""
    largest = sys.float_info.max

    def finite(x: Any) -> bool:
        return isinstance(x, int | float) and not isinstance(x, bool) and -largest <= x <= largest

    return Check(lambda x: finite(x) and right(x), f"a finite number {where}", float)


def shown(value: object) -> str:
    """A value in a few words on one line.

    >>> shown(list(range(100)))
    '[0, 1, 2, 3, 4, 5, ...]'
    """
    return " ".join(brief(value).split())


def _whole(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool)


def _several(x: Any) -> bool:
    return isinstance(x, Collection) and not isinstance(x, str | bytes | Mapping)


def _ids(x: Any) -> bool:
    return _several(x) and all(map(_whole, x))


def _stops(x: Any) -> bool:
    several = [x] if isinstance(x, str) else x
    return _several(several) and len(several) <= MANY and all(isinstance(stop, str) and stop for stop in several)


SHARE = number("above 0 and at most 1", lambda p: 0 < p <= 1)

CHECKS = {
    "max_new_tokens": whole(1, MOST),
    "min_new_tokens": whole(0, MOST),
    "do_sample": Check(lambda x: isinstance(x, bool), "True or False"),
    "temperature": number("of at least 0", lambda x: x >= 0),
    "top_k": whole(0, LARGE),
    "top_p": SHARE,
    "min_p": number("from 0 to 1", lambda p: 0 <= p <= 1),
    "typical_p": SHARE,
    "repetition_penalty": number("above 0", lambda x: x > 0),
    "no_repeat_ngram_size": whole(0, LARGE),
    "bad_words_ids": Check(
        lambda x: _several(x) and all(_ids(word) and len(word) for word in x),
        "a list of lists of token ids, none of them empty",
    ),
    "suppress_tokens": Check(_ids, "a list of token ids"),
    "vocab": whole(1, LARGE),
    "num_beams": whole(1, MANY),
    "num_return_sequences": whole(1, MANY),
    "length_penalty": number("such as 1.0", lambda x: True),  # noqa: ARG005
    "early_stopping": Check(lambda x: isinstance(x, bool) or x == "never", 'True, False or "never"'),
    "eos_token_id": Check(lambda x: _whole(x) or _ids(x), "a token id or a list of them"),
    "pad_token_id": whole(-LARGE, LARGE),
    "stop_strings": Check(_stops, f"up to {MANY:,} strings that are not empty"),
    "seed": whole(0, 2**64 - 1),
    "prefill_chunk": whole(1, LARGE),
}
"""Name of a choice -> its check."""


def checked(name: str, value: Any) -> Any:
    """A value for a choice of that name. ValueError: it is none, in one line.

    >>> checked("eos_token_id", "a")
    Traceback (most recent call last):
    ValueError: eos_token_id: expected a token id or a list of them, got 'a'
    """
    return CHECKS[name](name, value)
