"""The notebooks run as they stand, cell after cell, and both languages ask the same questions."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from oneblock.explain import Table

ROOT = Path(__file__).resolve().parent.parent
BOOKS = {lang: ROOT / "docs" / lang / "understand.ipynb" for lang in ("en", "zh")}
CHINESE = re.compile(r"[一-鿿]")


def cells(lang: str, kind: str) -> list[str]:
    """The sources of the cells of a kind."""
    book = json.loads(BOOKS[lang].read_text("utf-8"))
    return ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == kind]


def ran(source: str, names: dict[str, Any]) -> Any:
    """The value of a cell's last line, as a notebook shows it; None where that is no expression."""
    *body, last = ast.parse(source).body
    shown = isinstance(last, ast.Expr)
    exec(compile(ast.Module(body if shown else [*body, last], []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None


@pytest.mark.parametrize("lang", BOOKS)
def test_every_cell_runs_and_most_show_a_table(lang: str) -> None:
    names: dict[str, Any] = {}
    values = [ran(source, names) for source in cells(lang, "code")]
    tables = [value for value in values if isinstance(value, Table)]
    assert len(tables) >= 12
    for table in tables:
        assert "<table>" in table._repr_html_()
        assert bool(CHINESE.search(table.title)) == (lang == "zh")
    compared = tables[-1]
    assert "decoder.layers.1.attention.out" in str(compared)
    assert "Wᵀ" in str(compared)


def test_later_layers_of_the_encoder_look_further_as_the_page_says() -> None:
    names: dict[str, Any] = {}
    ran(cells("en", "code")[0], names)
    table = names["explain"].attention(names["t"])
    means = [float(note.split("distance ")[1].split(",")[0]) for note in table.notes if note.startswith("encoder")]
    assert means == sorted(means)
    assert len(means) == 3


def test_both_languages_ask_the_same_questions() -> None:
    en, zh = (cells(lang, "code") for lang in BOOKS)
    assert [source.replace('LANG = "zh"', 'LANG = "en"') for source in zh] == en
    assert len(cells("en", "markdown")) == len(cells("zh", "markdown"))
    assert all(CHINESE.search(text) for text in cells("zh", "markdown"))
    assert not any(CHINESE.search(text.replace("我爱你", "")) for text in cells("en", "markdown"))


@pytest.mark.parametrize("lang", BOOKS)
def test_no_output_is_committed(lang: str) -> None:
    book = json.loads(BOOKS[lang].read_text("utf-8"))
    assert book["nbformat"] == 4
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in book["cells"] if "outputs" in cell)
