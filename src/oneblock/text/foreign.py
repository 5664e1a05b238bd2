"""The tokenizer that comes with a model of any family: tokenizer.json, or the older vocab.json and merges.txt.

How text is cut is the file's affair. What is ours: special tokens are put around a text exactly once, also around a
text that brings them along, as a rendered chat template does.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from oneblock.files import read_json
from oneblock.text.tokenizer import Tokenizer

FILE, VOCAB, MERGES = "tokenizer.json", "vocab.json", "merges.txt"
ROLES = ("bos", "eos", "pad", "unk", "mask", "cls", "sep")
USUAL = {
    "bos": ("<s>", "<|begin_of_text|>", "<bos>", "<|endoftext|>"),
    "eos": ("</s>", "<|end_of_text|>", "<eos>", "<|endoftext|>"),
    "pad": ("<pad>", "[PAD]"),
    "unk": ("<unk>", "[UNK]"),
    "mask": ("[MASK]", "<mask>"),
    "cls": ("[CLS]",),
    "sep": ("[SEP]",),
}
"""How special tokens are usually spelt, where no file says it."""


class ForeignTokenizer:
    """Wraps a `tokenizers.Tokenizer`; `roles` are the ids of bos, eos, pad, unk, mask, cls, sep, of those there are.

    >>> words = models.WordLevel({"[CLS]": 0, "[SEP]": 1, "[UNK]": 2, "hi": 3}, unk_token="[UNK]")
    >>> rust = tokenizers.Tokenizer(words)
    >>> rust.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    >>> _ = rust.add_special_tokens(["[CLS]", "[SEP]"])
    >>> rust.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 1), ("[CLS]", 0))
    >>> tokenizer = ForeignTokenizer(rust)
    >>> tokenizer.encode("hi"), tokenizer.encode("[CLS] hi"), tokenizer.encode("hi", end=False), tokenizer.roles["sep"]
    ([0, 3, 1], [0, 3, 1], [0, 3], 1)
    """

    def __init__(self, rust: tokenizers.Tokenizer, named: dict[str, str] | None = None) -> None:
        self._rust = rust
        rust.no_truncation()
        rust.no_padding()
        # Asked for once: the whole vocabulary is copied to tell its size.
        self._size = max(rust.get_vocab(with_added_tokens=True).values(), default=-1) + 1
        self.roles = {role: at for role in ROLES if (at := self._role(role, named or {})) is not None}
        # A letter that the vocabulary has; without any, nothing can be said about what stands around it.
        letters = (letter for letter in "a1的." if rust.encode(letter, add_special_tokens=False).ids)
        letter = next(letters, "")
        plain, whole = rust.encode(letter, add_special_tokens=False).ids, rust.encode(letter).ids
        at = next((i for i in range(len(whole) - len(plain) + 1) if whole[i : i + len(plain)] == plain), 0)
        self.before, self.after = whole[:at], whole[at + len(plain) :]
        """The special tokens that stand before and after every text."""

    def encode(self, text: str, end: bool = True) -> list[int]:
        """Ids of `text` with its special tokens; those that the text spells itself at its ends are not put again.

        Without `end` none follow the text: something is to be written on. ValueError: half a surrogate pair.
        """
        try:
            ids = list(self._rust.encode(text, add_special_tokens=False).ids)
        except (TypeError, UnicodeEncodeError):
            raise ValueError("text: expected Unicode text, got half a surrogate pair; decode it anew") from None
        if ids[: len(self.before)] != self.before:
            ids = self.before + ids
        if self.after and ids[-len(self.after) :] == self.after:
            ids = ids[: -len(self.after)]
        return ids + self.after if end else ids

    def decode(self, ids: Iterable[int], special: bool = False) -> str:
        """Text of `ids`; special tokens are dropped unless `special`, ids beyond the vocabulary always."""
        size = len(self)
        return str(self._rust.decode([at for at in ids if 0 <= at < size], skip_special_tokens=not special))

    def token(self, at: int) -> str:
        """The spelling of one id, as the vocabulary has it."""
        return str(self._rust.id_to_token(at) or "")

    def __len__(self) -> int:
        """Number of ids: one more than the largest."""
        return self._size

    def _role(self, role: str, named: dict[str, str]) -> int | None:
        spellings: Sequence[str] = (named[role],) if role in named else USUAL[role]
        found = (self._rust.token_to_id(spelling) for spelling in spellings)
        return next((at for at in found if at is not None), None)


def read_tokenizer(folder: str | os.PathLike[str]) -> Tokenizer | ForeignTokenizer:
    """The tokenizer in a model's folder: ours, or that of any family. ValueError: there is none, or it is damaged.

    >>> read_tokenizer("no/such/folder")
    Traceback (most recent call last):
    ValueError: no/such/folder: expected a tokenizer (tokenizer.json, or vocab.json and merges.txt), found none there
    """
    folder = Path(folder)
    if (folder / FILE).is_file():
        try:
            return Tokenizer.load(folder)
        except ValueError as error:
            if "another kind" not in str(error):
                raise
        return ForeignTokenizer(tokenizers.Tokenizer.from_file(str(folder / FILE)), _named(folder))
    if (folder / VOCAB).is_file() and (folder / MERGES).is_file():
        return ForeignTokenizer(_byte_level(folder), _named(folder))
    raise ValueError(f"{folder}: expected a tokenizer ({FILE}, or {VOCAB} and {MERGES}), found none there")


def _byte_level(folder: Path) -> tokenizers.Tokenizer:
    """Byte-pair encoding over bytes (Radford et al. 2019), from a vocabulary and a list of merges."""
    try:
        rust = tokenizers.Tokenizer(models.BPE.from_file(str(folder / VOCAB), str(folder / MERGES)))
    except Exception as error:  # the library raises bare Exception for a bad file
        raise ValueError(f"{folder / VOCAB}: expected a vocabulary that fits {MERGES}; got {error}") from None
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.decoder = decoders.ByteLevel()
    known = rust.get_vocab()
    rust.add_special_tokens([name for names in USUAL.values() for name in names if name in known])
    return rust


def _named(folder: Path) -> dict[str, str]:
    """Role -> spelling, as the files beside the tokenizer say."""
    found: dict[str, str] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            said = read_json(folder / name)
            for role in ROLES:
                spelling = said.get(f"{role}_token") if isinstance(said, dict) else None
                spelling = spelling.get("content") if isinstance(spelling, dict) else spelling
                if isinstance(spelling, str):
                    found[role] = spelling
    return found
