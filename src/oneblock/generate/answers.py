"""What a pipeline gives back: an answer to a prompt, a text with its likelihood, a gap with what may stand in it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Answer", "Gap", "Scored"]


@dataclass(frozen=True)
class Answer:
    """What a model wrote behind a prompt: `text` and `tokens`, how it was ranked, and whether it came to its end."""

    prompt: str
    text: str
    tokens: tuple[int, ...]
    score: float
    logprob: float
    finished: bool


@dataclass(frozen=True)
class Scored:
    """How likely a text is: its tokens with their log-probabilities, the sum, and exp of the mean surprise."""

    text: str
    tokens: tuple[tuple[str, float], ...]
    logprob: float
    perplexity: float


@dataclass(frozen=True)
class Gap:
    """What may stand in a gap of a text: words and their probabilities, the likeliest first."""

    candidates: tuple[tuple[str, float], ...]
