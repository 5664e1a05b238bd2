"""How to write on: all choices of `generate`, under the names and with the meanings that Hugging Face gave them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from oneblock.generate.rule import EarlyStopping
from oneblock.hint import nearest

__all__ = ["GenerationConfig", "chosen"]

MOST = 1_000_000
"""New tokens at the most: a larger number is a slip of the keyboard."""
MANY = 1_024
"""Beams and answers at the most."""
COLD = 1e-4
"""A temperature up to here means greedy: divided by less, a logit of half precision is no number."""


@dataclass(frozen=True, kw_only=True)
class GenerationConfig:
    """The choices of `generate`. What is not said here: every default changes nothing.

    Length: `max_new_tokens`, and `min_new_tokens` before which no end token counts. `eos_token_id` one id or several,
    by default the model's; `pad_token_id` fills rows up, by default the model's, else the end token. `stop_strings` end
    a row too when its new text holds one (they need a tokenizer).

    Sampling: `do_sample`, from logits / `temperature` (up to 0.0001: greedy), of the `top_k` likeliest tokens (None or
    0: all), the fewest that make up `top_p` (Holtzman et al. 2020, arXiv:1904.09751), those at least `min_p` times as
    likely as the likeliest (Nguyen et al. 2024, arXiv:2407.01082), the most typical that make up `typical_p` (Meister
    et al. 2023, arXiv:2202.00666); each in float32 and in this order, and each keeps a token. `seed` makes it the same
    again. Without `do_sample` these are not looked at.

    Bans: `repetition_penalty` divides positive and multiplies negative logits of tokens in the prompt or the answer,
    not of padding (Keskar et al. 2019, arXiv:1909.05858); `no_repeat_ngram_size` n lets no n tokens come twice;
    `bad_words_ids` are sequences of ids and `suppress_tokens` ids that never come; `vocab` bans all ids from there on:
    rows of a head that no token of the tokenizer has.

    Beams: `num_beams`, of which `num_return_sequences` are returned, best first, by log-probability / length **
    `length_penalty`, the length being that of the answer alone; `early_stopping` True, False or "never" as in
    `beam_search`. One beam with `num_return_sequences` draws so many samples.

    ValueError: a number out of its range, with the range.

    >>> GenerationConfig(temperature=-1.0)
    Traceback (most recent call last):
    ValueError: temperature: expected a finite number of at least 0, got -1.0
    """

    max_new_tokens: int = 20
    min_new_tokens: int = 0
    do_sample: bool = False
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float | None = None
    typical_p: float = 1.0
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    bad_words_ids: Sequence[Sequence[int]] | None = None
    suppress_tokens: Sequence[int] | None = None
    vocab: int | None = None
    num_beams: int = 1
    num_return_sequences: int = 1
    length_penalty: float = 1.0
    early_stopping: EarlyStopping = False
    eos_token_id: int | Sequence[int] | None = None
    pad_token_id: int | None = None
    stop_strings: str | Sequence[str] | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        _whole(1, MOST, max_new_tokens=self.max_new_tokens)
        _whole(0, MOST, min_new_tokens=self.min_new_tokens)
        _whole(0, 2**31, top_k=self.top_k or 0, no_repeat_ngram_size=self.no_repeat_ngram_size)
        _whole(1, 2**31, vocab=1 if self.vocab is None else self.vocab)
        _whole(1, MANY, num_beams=self.num_beams, num_return_sequences=self.num_return_sequences)
        _number(self.temperature >= 0, "of at least 0", temperature=self.temperature)
        _number(self.repetition_penalty > 0, "above 0", repetition_penalty=self.repetition_penalty)
        _number(0 < self.top_p <= 1, "above 0 and at most 1", top_p=self.top_p)
        _number(0 < self.typical_p <= 1, "above 0 and at most 1", typical_p=self.typical_p)
        _number(self.min_p is None or 0 <= self.min_p <= 1, "from 0 to 1", min_p=self.min_p or 0.0)
        _number(True, "such as 1.0", length_penalty=self.length_penalty)
        if not isinstance(self.early_stopping, bool) and self.early_stopping != "never":
            raise ValueError(f'early_stopping: expected True, False or "never", got {self.early_stopping!r}')
        self._agree()

    def _agree(self) -> None:
        """Choices that must fit each other."""
        answers, beams = self.num_return_sequences, self.num_beams
        if beams > 1 and answers > beams:
            raise ValueError(f"num_return_sequences: expected at most num_beams={beams}, got {answers}")
        if beams == 1 and answers > 1 and not self.sampled:
            raise ValueError(
                f"num_return_sequences: greedy search has one answer, got {answers}; set do_sample=True or num_beams"
            )
        if self.min_new_tokens > self.max_new_tokens:
            raise ValueError(
                f"min_new_tokens: expected at most max_new_tokens={self.max_new_tokens}, got {self.min_new_tokens}"
            )
        stops = self.stops
        if len(stops) > MANY or not all(isinstance(stop, str) and stop for stop in stops):
            raise ValueError(f"stop_strings: expected up to {MANY:,} strings that are not empty, got {len(stops):,}")
        if any(not list(word) for word in self.bad_words_ids or ()):
            raise ValueError("bad_words_ids: expected lists of token ids, got an empty one")

    @property
    def sampled(self) -> bool:
        """Whether tokens are drawn: a temperature of almost 0 leaves nothing to chance."""
        return self.do_sample and self.temperature > COLD

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop strings, as a tuple."""
        return (self.stop_strings,) if isinstance(self.stop_strings, str) else tuple(self.stop_strings or ())


def chosen(config: GenerationConfig | None, options: dict[str, Any]) -> GenerationConfig:
    """`config`, by default a new one, with some choices changed. ValueError: an unknown choice, with the nearest.

    >>> chosen(None, {"num_beam": 4})
    Traceback (most recent call last):
    ValueError: generate: num_beam is no choice of it; did you mean num_beams?
    """
    known = [field.name for field in fields(GenerationConfig)]
    for name in options:
        if name not in known:
            raise ValueError(f"generate: {name} is no choice of it; {nearest(name, known)}")
    return replace(config or GenerationConfig(), **options)


def _whole(least: int, most: int, **values: object) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"{name}: expected a whole number from {least} to {most:,}, got {value!r}")


def _number(right: bool, where: str, **values: float) -> None:
    for name, value in values.items():
        if not (right and math.isfinite(value)):
            raise ValueError(f"{name}: expected a finite number {where}, got {value!r}")
