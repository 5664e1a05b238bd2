"""The examples worked by hand are what a trace gives, in both languages."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_N11_E06_every_number_of_the_page_is_computed(lang: str) -> None:
    found = doctest.testfile(str(DOCS / lang / "by-hand.md"), module_relative=False, encoding="utf-8")
    assert found.attempted > 15
    assert found.failed == 0


def test_both_languages_show_the_same_code_and_numbers() -> None:
    code = [
        re.findall(r"```python\n(.*?)```", (DOCS / lang / "by-hand.md").read_text("utf-8"), re.S)
        for lang in ("en", "zh")
    ]
    assert code[0] == code[1]
