"""What a trained model is for: writing on, translating, scoring, embedding, filling gaps, classifying."""

from oneblock.generate.answers import Answer, Gap, Scored
from oneblock.generate.config import GenerationConfig
from oneblock.generate.decode import CausalStepper, Seq2SeqStepper
from oneblock.generate.hypothesis import Hypothesis
from oneblock.generate.pipeline import Pipeline
from oneblock.generate.prepack import prepack
from oneblock.generate.reading import Filled, classify, embed, fill
from oneblock.generate.scoring import perplexity, score
from oneblock.generate.search import EarlyStopping, Stepper, beam_search, greedy_search
from oneblock.generate.translator import Alternative, Translation, Translator, translate
from oneblock.generate.writing import Generated, generate, stream

__all__ = [
    "Alternative",
    "Answer",
    "CausalStepper",
    "EarlyStopping",
    "Filled",
    "Gap",
    "Generated",
    "GenerationConfig",
    "Hypothesis",
    "Pipeline",
    "Scored",
    "Seq2SeqStepper",
    "Stepper",
    "Translation",
    "Translator",
    "beam_search",
    "classify",
    "embed",
    "fill",
    "generate",
    "greedy_search",
    "perplexity",
    "prepack",
    "score",
    "stream",
    "translate",
]
