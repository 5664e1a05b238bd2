"""How good are the translations? BLEU and chrF by sacrebleu, each with the signature that makes it comparable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sacrebleu.metrics import BLEU, CHRF
from torch import nn

from oneblock.generate import Translator
from oneblock.text import Pair, Tokenizer

__all__ = ["Score", "evaluate", "score"]

TOKENIZE = {"zh": "zh", "ja": "char", "ko": "char", "th": "char"}
"""How sacrebleu cuts a target language into words; anything else by "13a", the mteval rules."""


@dataclass(frozen=True)
class Score:
    """The quality of one direction on one set of sentences; BLEU and chrF from 0 to 100."""

    direction: str
    sentences: int
    beam: int
    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str

    def to_dict(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


def score(hypotheses: Sequence[str], references: Sequence[str], to: str) -> tuple[float, float, str, str]:
    """(BLEU, chrF, BLEU's signature, chrF's signature) of translations into the language `to`.

    Papineni et al. 2002; Popović 2015; signatures after Post 2018 (arXiv:1804.08771).

    >>> bleu, chrf, signature, _ = score(["我爱你们。"], ["我爱你们。"], "zh")
    >>> round(bleu), round(chrf), "tok:zh" in signature
    (100, 100, True)
    """
    if len(hypotheses) != len(references) or not references:
        got = f"{len(hypotheses)} and {len(references)}"
        raise ValueError(f"score: expected as many translations as references, and at least one, got {got}")
    bleu, chrf = BLEU(tokenize=TOKENIZE.get(to, "13a")), CHRF()
    results = [metric.corpus_score(list(hypotheses), [list(references)]).score for metric in (bleu, chrf)]
    return results[0], results[1], str(bleu.get_signature()), str(chrf.get_signature())


def evaluate(
    model: nn.Module,
    tokenizer: Tokenizer,
    pairs: Sequence[Pair],
    directions: Sequence[tuple[str, str]] = (("en", "zh"), ("zh", "en")),
    *,
    beam: int = 1,
    forward: tuple[str, str] | None = None,
) -> list[Score]:
    """Translate one side of `pairs` and compare with the other, for each (from, to) of `directions`.

    `forward` names the languages of the pairs' two sides; by default the first direction does. `beam` 1 is greedy.
    Raises ValueError for no pairs, or a direction the pairs do not have.
    """
    if not pairs:
        raise ValueError("evaluate: no sentence pairs")
    ends = forward or tuple(directions[0])
    translator = Translator(model, tokenizer)
    scores = []
    for way in directions:
        if set(way) != set(ends):
            raise ValueError(f"evaluate: the pairs are {ends[0]} and {ends[1]}, got the direction {'-'.join(way)}")
        sides = [(pair.source, pair.target) if way[0] == ends[0] else (pair.target, pair.source) for pair in pairs]
        found = translator([source for source, _ in sides], to=way[1], beam=beam)
        values = score([item.text for item in found], [reference for _, reference in sides], way[1])
        scores.append(Score("-".join(way), len(sides), beam, *values))
    return scores
