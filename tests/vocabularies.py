"""Small tokenizers that tests share."""

from __future__ import annotations

import tokenizers
from tokenizers import models, pre_tokenizers, processors

LINES = ["low lower lowest 🐈", "the cat sat", "猫坐在垫子上"]
"""What a tokenizer of ours is trained on."""


def words() -> tokenizers.Tokenizer:
    """A tokenizer of another kind: whole words, [MASK] among them, special tokens on both sides."""
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "paris", "is", "the", "capital", "of", "france", "."]
    rust = tokenizers.Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocab)}, unk_token="[UNK]"))
    rust.pre_tokenizer = pre_tokenizers.Whitespace()
    rust.add_special_tokens(vocab[:5])
    rust.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return rust
