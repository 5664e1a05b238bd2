"""Answers are tables: aligned as text, escaped as HTML, plain as JSON."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from oneblock import explain
from oneblock.explain import Table
from oneblock.explain.causes_of_difference import KINDS
from oneblock.words import say
from oneblock.words.labels import LABELS as SHORT
from oneblock.words.understand import UNDERSTAND


def test_columns_are_aligned_also_where_letters_are_wide() -> None:
    table = Table("标题", ("词元", "n"), (("我爱", 1.23456), ("you", None)), ("below",))
    assert str(table).splitlines() == ["标题", "词元      n", "我爱  1.235", "you       –", "below"]


def test_html_is_escaped() -> None:
    table = Table("<b>", ("<script>",), (("a & b",),), ("<i>",))
    shown = table._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "&lt;script&gt;" in shown
    assert "a &amp; b" in shown
    assert "&lt;i&gt;" in shown
    assert "<script>" not in shown


def test_json_holds_no_infinity() -> None:
    table = Table("t", ("a", "b"), ((math.inf, "x"), (math.nan, "y")))
    said = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert said["rows"] == [[None, "x"], [None, "y"]]


def test_a_column_is_found_by_its_name() -> None:
    table = Table("t", ("head", "distance"), ((0, 1.5), (1, 2.5)))
    assert table.column("distance") == (1.5, 2.5)
    assert len(table) == 2
    assert list(table) == [(0, 1.5), (1, 2.5)]
    with pytest.raises(ValueError, match=r"no column 'distanc'; did you mean distance\?"):
        table.column("distanc")
    with pytest.raises(ValueError, match="expected 2 cells in row 1, got 1"):
        Table("t", ("a", "b"), ((1,),))


def test_words_of_tables_take_no_other_words_place() -> None:
    assert not set(UNDERSTAND) & set(SHORT)
    for english, chinese in UNDERSTAND.values():
        assert english.count("{}") == chinese.count("{}")


def test_every_cause_that_a_guess_can_name_has_words() -> None:
    folder = Path(explain.__file__).parent
    named = {
        kind for path in folder.glob("causes_*.py") for kind in re.findall(r'Guess\(\s*"([^"]+)"', path.read_text())
    }
    named |= set(KINDS.values()) | {"spec", "rotary layout", "sinusoid layout", "embedding scale"}
    assert len(named) > 20
    for kind in named:
        assert say(f"cause.{kind}", "zh").purpose
