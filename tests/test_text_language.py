"""The language of a line is read off its script."""

import pytest

from oneblock.text import script


@pytest.mark.parametrize("text", ["我爱你", "我用 iPhone。", "他说「OK」", "买 iPhone", "㐀", "\U00020000", "3月5日"])
def test_lines_in_han_are_chinese(text: str) -> None:
    assert script(text) == "zh"


@pytest.mark.parametrize(
    "text", ["I love you.", "", "42", "?!", "The character 好 means good.", "😀", "Él dijo que sí"]
)
def test_all_others_are_english(text: str) -> None:
    assert script(text) == "en"
