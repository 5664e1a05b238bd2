"""The page that adds a family is run as it stands, in both languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oneblock.zoo import FAMILIES

ROOT = Path(__file__).resolve().parent.parent
PAGES = {lang: (ROOT / "docs" / lang / "new-family.md").read_text("utf-8") for lang in ("en", "zh")}
NAME = "smollm3"


def blocks(lang: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGES[lang], re.M | re.S)


@pytest.fixture
def _forgotten() -> Iterator[None]:
    """What a page registers is gone after the test."""
    yield
    FAMILIES.pop(NAME, None)


@pytest.mark.parametrize("lang", PAGES)
@pytest.mark.usefixtures("_forgotten")
def test_the_page_adds_a_family_that_the_reference_agrees_with(lang: str, tmp_path: Path) -> None:
    *code, proof = blocks(lang)
    names: dict[str, Any] = {}
    for block in code:
        exec(block, names)  # our own page
    assert FAMILIES[NAME] is names["SMOLLM3"]
    pytest.importorskip("transformers", reason="the reference library is not installed")
    from benchmarks.agreement.cases import CASES
    from benchmarks.agreement.measure import measure

    from published import same_in_the_reference_as

    try:
        exec(proof, names)
        found = measure(CASES[NAME], "SmolLM3ForCausalLM", 0, tmp_path)
    finally:
        CASES.pop(NAME, None)
    bounds = {"loss": 1e-4, "gradients": 1e-4, "bfloat16 ratio": 2.0}
    assert {check: far for check, far in found.items() if not far <= bounds.get(check, 1e-5)} == {}
    same_in_the_reference_as(names["spec"], NAME)


def test_the_family_is_said_in_under_30_lines() -> None:
    first = blocks("en")[0]
    said = re.sub(r'"""[^"]*"""', "", first)
    assert len([line for line in said.splitlines() if line.strip() and not line.startswith(("from", "import"))]) < 30


def test_both_pages_have_the_same_code() -> None:
    assert blocks("en") == blocks("zh")
    assert not re.search(r"[一-鿿]", PAGES["en"])
    assert len(re.findall(r"^## ", PAGES["en"], re.M)) == len(re.findall(r"^## ", PAGES["zh"], re.M))
