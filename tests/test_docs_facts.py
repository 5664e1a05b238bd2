"""The page of facts names tests that exist, and says every fact in both languages."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"en": ROOT / "docs" / "facts.md", "zh": ROOT / "docs" / "facts.zh.md"}
ENTRY = re.compile(r"^- \*\*([NEB]\d+)\*\* (.+?)  \n  (.+)$", re.M)


def entries(lang: str) -> dict[str, tuple[str, list[str]]]:
    """Id -> (what is said, the tests that show it)."""
    text = PAGES[lang].read_text("utf-8")
    return {id: (said, re.findall(r"`([^`]+)`", shown)) for id, said, shown in ENTRY.findall(text)}


def names_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_line_of_the_pages_is_understood() -> None:
    for lang, page in PAGES.items():
        assert len(entries(lang)) == page.read_text("utf-8").count("- **") > 60


def test_both_languages_say_the_same_facts_by_the_same_tests() -> None:
    en, zh = entries("en"), entries("zh")
    assert list(en) == list(zh)
    for id in en:
        assert en[id][1] == zh[id][1]
        assert not re.search(r"[一-鿿]", en[id][0].replace("我 爱 你", ""))
        assert re.search(r"[一-鿿]", zh[id][0])


@pytest.mark.parametrize("id", entries("en"))
def test_named_tests_exist_and_one_carries_the_id(id: str) -> None:
    shown = entries("en")[id][1]
    assert shown
    for name in shown:
        file, _, test = name.partition("::")
        assert (ROOT / "tests" / file).is_file(), name
        assert test in names_in(file), name
    carried = {f"{letter}{int(number)}" for name in shown for letter, number in re.findall(r"_([NEB])(\d+)", name)}
    assert id in carried
