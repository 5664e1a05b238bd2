"""Text in, token ids out: tokenizers, parallel corpora, a leak-free split, and batches of examples."""

from oneblock.text.batches import Batches
from oneblock.text.corpus import Pair, read_pairs
from oneblock.text.foreign import ForeignTokenizer, read_tokenizer
from oneblock.text.language import script
from oneblock.text.pieces import Pieces
from oneblock.text.split import Report, Split, split_pairs
from oneblock.text.tokenizer import Tokenizer

__all__ = [
    "Batches",
    "ForeignTokenizer",
    "Pair",
    "Pieces",
    "Report",
    "Split",
    "Tokenizer",
    "read_pairs",
    "read_tokenizer",
    "script",
    "split_pairs",
]
