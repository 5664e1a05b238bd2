"""Text in, token ids out: tokenizer, parallel corpora, a leak-free split, and batches of examples."""

from oneblock.text.batches import Batches
from oneblock.text.corpus import Pair, read_pairs
from oneblock.text.language import script
from oneblock.text.split import Report, Split, split_pairs
from oneblock.text.tokenizer import Tokenizer

__all__ = ["Batches", "Pair", "Report", "Split", "Tokenizer", "read_pairs", "script", "split_pairs"]
