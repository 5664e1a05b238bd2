"""Turn text into numbers and back without losing a character: one set of word pieces for all languages.

Byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909): start from characters, merge the most frequent neighbours.
A character that training did not keep becomes its UTF-8 bytes. "▁" stands for a space, as in SentencePiece
(Kudo and Richardson 2018, arXiv:1808.06226), with one difference: a line that starts with a Han or kana character
gets no leading "▁", or every Chinese word would exist twice, at the start of a sentence and inside it.
"""

import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from oneblock.files import write_file
from oneblock.hint import nearest
from oneblock.text.dropout import Segmenter

_SPECIAL = ("<pad>", "<s>", "</s>")
_BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}"
_LETTERS = rf"[\p{{L}}\p{{M}}&&[^{_CJK}]]+"
# Words keep an inner apostrophe; digits stand alone; a run of one punctuation mark stays together. No piece holds two
# different marks, so no merge can spell "</s>" or "<0x41>": text that does so stays text.
_WORDS = rf"▁?{_LETTERS}(?:['\x{{2019}}]{_LETTERS})*|[{_CJK}]+|▁?\p{{N}}|▁?([^\s\p{{L}}\p{{M}}\p{{N}}▁])\1*|▁"
_LANGUAGE = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_DIRECTION = re.compile(r"<2([A-Za-z][A-Za-z0-9-]*)>")


class Tokenizer:
    """Joint byte-pair encoding with byte fallback: `decode(encode(text)) == normalise(text)` for every text.

    Ids: <pad> 0, <s> 1, </s> 2, then one direction token per language ("<2zh>"), 256 bytes, characters, pieces.

    >>> t = Tokenizer.train(["the cat sat on the mat", "猫坐在垫子上"] * 2, vocab=320, languages=("en", "zh"))
    >>> t.decode(t.encode("the  cat 🐈", to="zh")), t.encode("", to="zh"), t.languages
    ('the cat 🐈', [4, 2], ('en', 'zh'))
    """

    pad, bos, eos = 0, 1, 2

    def __init__(self, rust: tokenizers.Tokenizer) -> None:
        """Wrap a `tokenizers.Tokenizer` made by `train`; use `train` or `load` instead."""
        described = json.loads(rust.to_str())
        self._rust, self._text = rust, rust.to_str(pretty=True)
        self.languages = _languages(described)
        # Off by default in the library: without it, text that spells "</s>" would end the sentence.
        rust.encode_special_tokens = True
        vocab: dict[str, int] = described["model"]["vocab"]
        self._cut = Segmenter(vocab, [tuple(pair) for pair in described["model"]["merges"]])
        self._spelling = [b""] * len(vocab)
        first = len(_SPECIAL) + len(self.languages)
        for token, at in vocab.items():
            if at >= first:
                is_byte = at < first + len(_BYTES)
                self._spelling[at] = bytes([at - first]) if is_byte else token.replace("▁", " ").encode()

    @classmethod
    def train(
        cls, lines: Iterable[str], vocab: int, languages: Sequence[str] = (), progress: bool = False
    ) -> "Tokenizer":
        """Learn pieces from `lines` (all languages together); the same lines give the same tokenizer.

        `vocab` is the size to reach, reserved tokens included; a small corpus may give fewer. Characters that make up
        the rarest 0.05 % of the text are left to the bytes. `progress` shows a bar. ValueError: languages that repeat
        or are not names, a vocab too small for the reserved tokens, no text.

        >>> len(Tokenizer.train(["low lower lowest"] * 2, vocab=270)), len(Tokenizer.train(["low"], vocab=8_000))
        (270, 263)
        """
        languages = tuple(languages)
        if len(set(languages)) < len(languages) or not all(_LANGUAGE.fullmatch(name) for name in languages):
            raise ValueError(
                f"languages: expected distinct names such as 'en', 'zh'; got {languages}; remove or rename some"
            )
        reserved = (*_SPECIAL, *(f"<2{name}>" for name in languages), *_BYTES)
        if vocab <= len(reserved):
            raise ValueError(f"vocab: expected more than the {len(reserved)} reserved tokens; got {vocab}; raise it")
        rust = _pipeline()
        lines = [_encodable(line) for line in lines]
        trainer = trainers.BpeTrainer(
            vocab_size=vocab,
            min_frequency=2,
            special_tokens=list(reserved),
            initial_alphabet=["▁"],  # never rare, or a space would become bytes that spell "▁"
            limit_alphabet=_alphabet(rust, lines, vocab - len(reserved)),
            show_progress=progress,
        )
        rust.train_from_iterator(lines, trainer)
        described = json.loads(rust.to_str())
        # The trainer takes the byte tokens as special; only as plain vocabulary does the model fall back to them.
        described["model"]["byte_fallback"] = True
        described["added_tokens"] = described["added_tokens"][: len(reserved) - len(_BYTES)]
        return cls(tokenizers.Tokenizer.from_str(json.dumps(described)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Tokenizer":
        """Read what `save` wrote: a file, or a folder with tokenizer.json. ValueError: absent, not one of ours."""
        path = _file(path)
        try:
            rust = tokenizers.Tokenizer.from_str(path.read_text("utf-8"))
        except FileNotFoundError:
            raise ValueError(f"{path}: expected a tokenizer; got no such file; check the path") from None
        except Exception as error:  # the library raises bare Exception for a bad file
            raise ValueError(f"{path}: expected a tokenizer as JSON; got {error}; train it again") from None
        try:
            return cls(rust)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write tokenizer.json, to `path` or into that folder; `tokenizers` and transformers read it too.

        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> Tokenizer.train(["a b"], vocab=300, languages=["en"]).save(folder)
        >>> Tokenizer.load(folder).languages
        ('en',)
        """
        path = _file(path)
        write_file(path, self.to_json().encode())

    def to_json(self) -> str:
        """What `save` writes."""
        return self._text + "\n"

    def encode(
        self, text: str, to: str | None = None, dropout: float = 0.0, rng: random.Random | None = None
    ) -> list[int]:
        """Ids of `text`, </s> last, the direction token of language `to` first when given; never <s>.

        `dropout` (0 to 1, default 0) is the probability of leaving out a merge: training only, drawn from `rng`.
        ValueError: unknown language, dropout without rng or outside 0..1, text with half a surrogate pair.

        >>> t = Tokenizer.train(["low lower lowest"] * 2, vocab=300, languages=["en", "zh"])
        >>> t.encode("lower", to="zh"), t.encode("lower", dropout=0.5, rng=random.Random(1))
        ([4, 274, 2], [268, 262, 263, 267, 261, 264, 2])
        """
        if not 0.0 <= dropout <= 1.0 or (dropout and rng is None):
            raise ValueError(
                f"dropout: expected 0, or up to 1 with rng=random.Random(seed); got {dropout}, rng={rng}; give both"
            )
        head = [] if to is None else [self.direction(to)]
        if not dropout or rng is None:
            return head + list(self._rust.encode(_encodable(text)).ids)
        return [*head, *self._cut(self._words(text), dropout, rng), self.eos]

    def decode(self, ids: Iterable[int]) -> str:
        """Text of `ids`; special tokens are dropped, bytes joined, what is not UTF-8 becomes U+FFFD.

        ValueError: an id that the vocabulary does not have.

        >>> t = Tokenizer.train(["low lower"], vocab=300, languages=["en", "zh"])
        >>> t.decode([1, 4, *t.encode("low"), 0, 0])
        'low'
        """
        spelling, size = self._spelling, len(self._spelling)
        parts = []
        for at in ids:
            if not 0 <= at < size:
                raise ValueError(f"id: expected 0 to {size - 1}; got {at}; is this the tokenizer of that model?")
            parts.append(spelling[at])
        return b"".join(parts).decode("utf-8", "replace").removeprefix(" ")

    def normalise(self, text: str) -> str:
        """What `decode(encode(text))` gives: NFC, every run of white space (or "▁") one space, none at the ends.

        >>> Tokenizer.train(["a b"], vocab=300).normalise("  e\\u0301te \\n ok ")
        'éte ok'
        """
        return self._normalised(text).replace("▁", " ").removeprefix(" ")

    def direction(self, language: str) -> int:
        """Id of the token that asks for `language`. ValueError: unknown, with the known ones and the nearest.

        >>> Tokenizer.train(["low"], vocab=300, languages=["en", "zh"]).direction("zh")
        4
        """
        if language not in self.languages:
            hint = nearest(language, self.languages) if self.languages else "it has none, train it with some"
            raise ValueError(f"language: expected one of the tokenizer's, got {language!r}; {hint}")
        return len(_SPECIAL) + self.languages.index(language)

    def token(self, at: int) -> str:
        """The spelling of one id, as the vocabulary has it; empty where it has none.

        >>> Tokenizer.train(["low"], vocab=300, languages=["en", "zh"]).token(4)
        '<2zh>'
        """
        return str(self._rust.id_to_token(at) or "")

    def __len__(self) -> int:
        """Number of ids."""
        return len(self._spelling)

    def _normalised(self, text: str) -> str:
        return str(self._rust.normalizer.normalize_str(_encodable(text)))

    def _words(self, text: str) -> list[str]:
        return [word for word, _ in self._rust.pre_tokenizer.pre_tokenize_str(self._normalised(text))]


def _pipeline() -> tokenizers.Tokenizer:
    """Everything of a tokenizer but its vocabulary."""
    regex = tokenizers.Regex
    rust = tokenizers.Tokenizer(models.BPE(byte_fallback=True))
    rust.normalizer = normalizers.Sequence([
        normalizers.NFC(),
        normalizers.Replace(regex(r"[\s▁]+"), " "),
        normalizers.Strip(),
        normalizers.Prepend("▁"),
        normalizers.Replace(regex(rf"^▁(?=[{_CJK}])"), ""),
        normalizers.Replace(" ", "▁"),
    ])  # fmt: skip
    rust.pre_tokenizer = pre_tokenizers.Split(regex(_WORDS), "isolated")
    rust.decoder = decoders.Sequence([
        decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)
    ])  # fmt: skip
    rust.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", Tokenizer.eos)])
    return rust


def _alphabet(rust: tokenizers.Tokenizer, lines: Sequence[str], room: int) -> int:
    """How many characters to keep: "▁" and those of the commonest 99.95 % of the text, at most `room`."""
    counts = Counter[str]()
    for line in lines:
        counts.update(rust.normalizer.normalize_str(line))
    if not counts:
        raise ValueError("lines: expected text to learn from; got none; check the corpus")
    kept, rest = 1, (counts.total() - counts.pop("▁", 0)) * 0.9995
    # Equally frequent characters stay or go together: the library would break a tie by hash order, anew in each run.
    for count, characters in sorted(Counter(counts.values()).items(), reverse=True):
        if rest <= 0 or kept + characters > room:
            break
        kept += characters
        rest -= count * characters
    return kept


def _languages(described: dict[str, Any]) -> tuple[str, ...]:
    """Languages of a tokenizer.json, after making sure that it is one of ours."""
    model = described["model"]
    vocab: dict[str, int] = model["vocab"] if model["type"] == "BPE" else {}
    tokens = sorted(vocab, key=vocab.__getitem__)
    found = [_DIRECTION.fullmatch(token) for token in tokens[len(_SPECIAL) :]]
    languages = tuple(_leading(found))
    reserved = (*_SPECIAL, *(f"<2{name}>" for name in languages), *_BYTES)
    same = _frame(described) == _frame(json.loads(_pipeline().to_str()))
    added = tuple(token["content"] for token in described["added_tokens"])
    whole = "▁" in vocab and [vocab[token] for token in tokens] == list(range(len(vocab)))
    if not (same and whole and tuple(tokens[: len(reserved)]) == reserved and added == reserved[: -len(_BYTES)]):
        raise ValueError("expected a tokenizer trained by Tokenizer.train; got another kind; train one from your text")
    return languages


def _frame(described: dict[str, Any]) -> dict[str, Any]:
    return described | {"added_tokens": None, "model": described["model"] | {"vocab": None, "merges": None}}


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"{text[error.start]!r} at character {error.start + 1}"
        raise ValueError(f"text: expected Unicode text; got half a surrogate pair, {half}; decode it anew") from None
    return text


def _leading(found: Iterable["re.Match[str] | None"]) -> Iterator[str]:
    for match in found:
        if match is None:
            return
        yield match[1]


def _file(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    return path / "tokenizer.json" if path.is_dir() else path
