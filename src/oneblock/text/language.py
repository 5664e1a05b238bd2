"""Guess the language of a line from its writing system, so that nobody has to name it."""

import re

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_WORD = re.compile(r"[^\W\d_\u2e80-\uffff\U00020000-\U000323af]+")


def script(text: str) -> str:
    """Language of `text` by its script: "zh" where Han characters prevail, otherwise "en".

    A Han character is about a word, so it is counted against one word in an alphabet; a tie is "zh",
    because Chinese sentences quote Latin words more often than the other way round.

    >>> script("我用 iPhone。"), script("The character 好 means good."), script("42")
    ('zh', 'en', 'en')
    """
    han = len(_HAN.findall(text))
    return "zh" if han and han >= len(_WORD.findall(text)) else "en"
