"""How to write on: all choices of `generate`, under the names and with the meanings that Hugging Face gave them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from oneblock.generate.checks import checked
from oneblock.generate.rule import EarlyStopping
from oneblock.hint import nearest

__all__ = ["GenerationConfig", "chosen"]

COLD = 1e-4
"""A temperature up to here means greedy: divided by less, a logit of half precision is no number."""


@dataclass(frozen=True, kw_only=True)
class GenerationConfig:
    """The choices of `generate`. What is not said here: every default changes nothing, and None stands for it.

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

    ValueError: a value of another kind or out of its range, with the range (the table is in `checks`).

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
        for field in fields(self):
            value = getattr(self, field.name)
            value = field.default if value is None else checked(field.name, value)
            object.__setattr__(self, field.name, value)
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
    if not isinstance(config, GenerationConfig | None):
        raise ValueError(f"generation_config: expected a GenerationConfig, got {type(config).__name__}; make one")
    return replace(config or GenerationConfig(), **options)
