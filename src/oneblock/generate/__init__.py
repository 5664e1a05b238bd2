"""Turn a trained model's scores into sentences: greedy and beam search, forced scoring, translation."""

from oneblock.generate.decode import Seq2SeqStepper, score
from oneblock.generate.hypothesis import Hypothesis
from oneblock.generate.search import EarlyStopping, Stepper, beam_search, greedy_search
from oneblock.generate.translator import Alternative, Translation, Translator, translate

__all__ = [
    "Alternative",
    "EarlyStopping",
    "Hypothesis",
    "Seq2SeqStepper",
    "Stepper",
    "Translation",
    "Translator",
    "beam_search",
    "greedy_search",
    "score",
    "translate",
]
