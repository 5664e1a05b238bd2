"""What a translator must beat: look up the most similar sentence that was seen in training and give its translation.

Similarity is the cosine of TF-IDF vectors of character n-grams, n from 1 to 4, over the casefolded sentence with a
space at either end: counts times ln((1 + sentences) / (1 + sentences with the n-gram)) + 1, scaled to length 1. Among
equally similar sentences the first in training order wins.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from oneblock.text.split import key

LONGEST = 4


class Nearest:
    """Finds the sentence most similar to a query.

    >>> Nearest(["I love you.", "It rains.", "He loves tea."])("It is raining.")
    1
    """

    def __init__(self, sentences: Sequence[str], longest: int = LONGEST) -> None:
        self.size, self.longest = len(sentences), longest
        ids: dict[str, int] = {}
        grams, counts, lengths = [], [], []
        for sentence in sentences:
            found = Counter(ngrams(sentence, longest))
            grams += [ids.setdefault(gram, len(ids)) for gram in found]
            counts += found.values()
            lengths.append(len(found))
        gram = np.array(grams)
        held = np.bincount(gram)  # sentences that hold an n-gram
        self.ids, self.rarity = ids, np.log((1 + self.size) / (1 + held)) + 1
        sentence = np.repeat(np.arange(self.size), lengths)
        weight = np.array(counts) * self.rarity[gram]
        weight /= np.sqrt(np.bincount(sentence, weight**2, self.size))[sentence]
        order = np.argsort(gram, kind="stable")
        self.ends = np.concatenate([[0], np.cumsum(held)])  # postings of n-gram g lie from ends[g] to ends[g + 1]
        self.sentence, self.weight = sentence[order], weight[order]

    def __call__(self, query: str) -> int:
        """Index of the most similar sentence; 0 when nothing is alike."""
        counts = Counter(ngrams(query, self.longest))
        found = [(self.ids[gram], count) for gram, count in counts.items() if gram in self.ids]
        if not found:
            return 0
        places = [slice(self.ends[gram], self.ends[gram + 1]) for gram, _ in found]
        shares = [self.weight[p] * (n * self.rarity[gram]) for p, (gram, n) in zip(places, found, strict=True)]
        sentences = np.concatenate([self.sentence[p] for p in places])
        return int(np.bincount(sentences, np.concatenate(shares), self.size).round(12).argmax())


def ngrams(text: str, longest: int) -> Iterator[str]:
    """All runs of 1 to `longest` characters, a space standing at either end.

    >>> list(ngrams("Ab", 2))
    [' ', 'a', 'b', ' ', ' a', 'ab', 'b ']
    """
    framed = f" {unicodedata.normalize('NFKC', text).casefold()} "
    return (framed[at : at + n] for n in range(1, longest + 1) for at in range(len(framed) - n + 1))


class OneEdit:
    """The sentences that are equal to one of `sentences`, or become so when one word is put in, left out or changed.

    Without spaces between words (`spaced` False) a character counts as a word. Words are compared as the split compares
    sentences: NFKC, case folded, without punctuation.

    >>> near = OneEdit(["I saw him."], spaced=True)
    >>> [text in near for text in ("I saw HIM", "I saw her!", "I saw", "I saw him run", "He saw her", "See him run")]
    [True, True, True, True, False, False]
    """

    def __init__(self, sentences: Iterable[str], spaced: bool) -> None:
        self.spaced = spaced
        self.whole = {words(sentence, spaced) for sentence in sentences}
        self.holed = {holed for text in self.whole for holed in _holes(text)}

    def __contains__(self, sentence: str) -> bool:
        text = words(sentence, self.spaced)
        if text in self.whole or any(holed in self.holed for holed in _holes(text)):
            return True
        if any(text[:at] + text[at + 1 :] in self.whole for at in range(len(text))):
            return True
        return any((*text[:at], HOLE, *text[at:]) in self.holed for at in range(len(text) + 1))


HOLE = ""


def _holes(text: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return ((*text[:at], HOLE, *text[at + 1 :]) for at in range(len(text)))


def words(text: str, spaced: bool) -> tuple[str, ...]:
    """Words, or characters where no spaces part words, without case and punctuation.

    >>> words("It's 5 o'clock - yes!", spaced=True), words("现在５点。", spaced=False)
    (('its', '5', 'oclock', 'yes'), ('现', '在', '5', '点'))
    """
    found = [key(word) for word in text.split()] if spaced else key(text)
    return tuple(word for word in found if any(map(str.isalnum, word)))
