"""What each check asks, who fell for it, how it is judged, what stays legal: what `--explain` prints."""

from __future__ import annotations

from dataclasses import dataclass

from oneblock.hint import nearest
from oneblock.words.checks_attention import CHECKS_OF_ATTENTION
from oneblock.words.checks_caches import CHECKS_OF_CACHES
from oneblock.words.checks_joined import CHECKS_OF_JOINED
from oneblock.words.checks_leaks import CHECKS_OF_LEAKS
from oneblock.words.checks_loss import CHECKS_OF_LOSS
from oneblock.words.checks_numerics import CHECKS_OF_NUMERICS
from oneblock.words.checks_padding import CHECKS_OF_PADDING
from oneblock.words.checks_positions import CHECKS_OF_POSITIONS
from oneblock.words.checks_state import CHECKS_OF_STATE
from oneblock.words.checks_stored import CHECKS_OF_STORED
from oneblock.words.entry import LANGUAGES


@dataclass(frozen=True)
class Asked:
    """Words about one check, in one language."""

    title: str
    catches: str
    victims: str
    judged: str
    legal: str
    remedy: str


CHECKS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = (
    CHECKS_OF_LEAKS
    | CHECKS_OF_CACHES
    | CHECKS_OF_ATTENTION
    | CHECKS_OF_NUMERICS
    | CHECKS_OF_PADDING
    | CHECKS_OF_LOSS
    | CHECKS_OF_POSITIONS
    | CHECKS_OF_STATE
    | CHECKS_OF_JOINED
    | CHECKS_OF_STORED
)
"""Code -> (title, catches, famous victims, how it is judged, what stays legal, remedy), English then Chinese."""


def explained(code: str, lang: str = "en") -> Asked:
    """The words about a check. ValueError: a code or language that has no words."""
    if code not in CHECKS:
        raise ValueError(f"check: no check is called {code!r}; {nearest(code, CHECKS)}")
    if lang not in LANGUAGES:
        raise ValueError(f"language: expected en or zh, got {lang!r}")
    return Asked(*CHECKS[code][LANGUAGES.index(lang)])
