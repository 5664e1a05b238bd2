"""What the README shows is what the program prints and draws."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import oneblock
from oneblock.draw import svg, table, text
from oneblock.zoo import named

ROOT = Path(__file__).resolve().parent.parent
READMES = {"en": ROOT / "README.md", "zh": ROOT / "README.zh.md"}


@pytest.mark.parametrize("lang", READMES)
def test_the_spec_in_the_readme_is_the_one_it_names(lang: str) -> None:
    code = re.search(r"```python\n(import oneblock\nfrom oneblock\.spec.*?)```", READMES[lang].read_text("utf-8"), re.S)
    assert code
    names: dict[str, object] = {}
    exec(code[1].split("model =")[0], names)  # our own page
    assert oneblock.parameters(names["spec"]) == 63_082_496
    assert oneblock.diff(names["spec"], named("vaswani", tokens=oneblock.spec.Tokens())) == ()


@pytest.mark.parametrize("lang", READMES)
def test_the_table_in_the_readme_is_printed(lang: str) -> None:
    printed = {" ".join(line.split()) for line in text(table(named("vaswani"), lang), lang).splitlines()}
    block = re.search(r"```\n((?:brick|部件) .*?)```", READMES[lang].read_text("utf-8"), re.S)
    assert block
    lines = [" ".join(line.split()) for line in block[1].splitlines()]
    assert lines[-1] == "…"
    assert set(lines[:-1]) <= printed


@pytest.mark.parametrize(("lang", "name"), [("en", "vaswani.svg"), ("zh", "vaswani.zh.svg")])
def test_the_figure_in_the_readme_is_drawn_from_the_spec(lang: str, name: str) -> None:
    assert (ROOT / "docs" / name).read_text("utf-8") == svg(named("vaswani"), lang, title="vaswani")
