"""Pages whose code runs as it stands: every number on them is computed, in both languages alike."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from oneblock.check import CHECKS
from oneblock.words.checks import explained

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ("by-hand.md", "notes.md")
LABS = ("N16", "N21", "E12")
"""Facts that no page shows yet."""


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_N11_E06_every_number_of_a_page_is_computed(lang: str, page: str) -> None:
    found = doctest.testfile(str(DOCS / lang / page), module_relative=False, encoding="utf-8")
    assert found.attempted > 15
    assert found.failed == 0


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_of_checks_runs_and_lists_every_check(lang: str) -> None:
    page = DOCS / lang / "check.md"
    found = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert found.attempted > 10
    assert found.failed == 0
    rows = re.findall(r"^\| (OB\d+) \| `([a-z-]+)` \| (.+) \|$", page.read_text("utf-8"), re.M)
    assert rows == [(code, CHECKS[code].name, explained(code, lang).title) for code in sorted(CHECKS)]


@pytest.mark.parametrize("page", PAGES)
def test_both_languages_show_the_same_code_and_numbers(page: str) -> None:
    english, chinese = ((DOCS / lang / page).read_text("utf-8") for lang in ("en", "zh"))
    blocks = re.compile(r"```python\n(.*?)```", re.DOTALL)
    assert blocks.findall(english) == blocks.findall(chinese)
    assert re.findall(r"^## ([NE]\d+)\.", english, re.M) == re.findall(r"^## ([NE]\d+)\.", chinese, re.M)


def test_every_fact_of_the_notes_has_its_section() -> None:
    text = (DOCS / "en" / "notes.md").read_text("utf-8")
    facts = [f"N{number}" for number in range(1, 25)] + [f"E{number}" for number in range(1, 16)]
    assert re.findall(r"^## ([NE]\d+)\.", text, re.M) == [fact for fact in facts if fact not in LABS]
