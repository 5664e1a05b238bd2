"""What a check says of a fault, and what to do about it, in both languages; `{name}` is filled with the evidence."""

from __future__ import annotations

from collections.abc import Mapping

from oneblock.hint import nearest
from oneblock.words.entry import LANGUAGES
from oneblock.words.faults_attention import ATTENTION
from oneblock.words.faults_caches import CACHES
from oneblock.words.faults_joined import JOINED
from oneblock.words.faults_leaks import LEAKS
from oneblock.words.faults_loss import LOSS
from oneblock.words.faults_numerics import NUMERICS
from oneblock.words.faults_padding import PADDING
from oneblock.words.faults_positions import POSITIONS
from oneblock.words.faults_state import STATE
from oneblock.words.faults_stored import STORED

FAULTS: dict[str, tuple[tuple[str, str], tuple[str, str]]] = (
    LEAKS | CACHES | ATTENTION | NUMERICS | PADDING | LOSS | POSITIONS | STATE | JOINED | STORED
)
"""Fault -> ((message, remedy) in English, (message, remedy) in Chinese)."""


def fault_said(name: str, lang: str, evidence: Mapping[str, object]) -> str:
    """What is wrong, in one sentence. ValueError: a fault or language that has no words."""
    return spoken(name, lang)[0].format(**evidence)


def remedy_said(name: str, lang: str, evidence: Mapping[str, object]) -> str:
    """What to do about it."""
    return spoken(name, lang)[1].format(**evidence)


def spoken(name: str, lang: str) -> tuple[str, str]:
    """(message, remedy) before they are filled."""
    if name not in FAULTS:
        raise ValueError(f"fault: no words for {name!r}; {nearest(name, FAULTS)}")
    if lang not in LANGUAGES:
        raise ValueError(f"language: expected en or zh, got {lang!r}")
    return FAULTS[name][LANGUAGES.index(lang)]
