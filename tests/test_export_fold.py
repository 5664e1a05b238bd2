"""Folding: branches that no use takes vanish, values take their places, and what differs becomes a parameter."""

from __future__ import annotations

from typing import Any

import pytest

from oneblock.export.constants import Constants, defined
from oneblock.export.file import sources
from oneblock.export.fold import Fold
from oneblock.export.text import LONGEST, merged, opened
from oneblock.export.values import Code, hint, literal

BRICK = '''class Brick(nn.Module):
    """What it is."""

    def __init__(self, spec: Any) -> None:
        super().__init__()
        self.up = nn.Linear(spec.dim, spec.hidden, bias=spec.bias)
        self.norm = spec.norm

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x: any."""
        h = self.up(x)  # (batch, hidden)
        if self.spec.gated:  # why
            # the gate
            h = h * self.gate(x)
        else:
            h = 2 * h
        if self.spec.norm is not None:
            h = self.norm(h)
        return h
'''
ONE: dict[str, Any] = {"dim": 4, "hidden": 8, "bias": True, "gated": False, "norm": None}


def folded(*uses: dict[str, Any], **how: Any) -> Fold:
    return Fold(BRICK, uses, Constants().named({"dim": "DIM", "hidden": "HIDDEN"}), **how)


def body(text: str) -> str:
    """The lines of `forward` below its docstring."""
    return text[text.index('any."""\n') + 8 :].replace("        ", "")


def test_what_all_uses_share_is_text() -> None:
    text = folded(ONE).text()
    assert "def __init__(self) -> None:" in text
    assert "nn.Linear(DIM, HIDDEN)\n" in text, "bias=True needs no word"
    assert "self.norm" not in text
    assert body(text) == "h = self.up(x)  # (batch, hidden)\nreturn 2 * h\n"


def test_a_branch_that_is_taken_keeps_its_comments() -> None:
    text = folded(ONE | {"gated": True, "norm": Code("RMSNorm(DIM)")}).text()
    assert "self.norm = RMSNorm(DIM)" in text
    assert body(text) == "h = self.up(x)  # (batch, hidden)\n# the gate\nh = h * self.gate(x)\nreturn self.norm(h)\n"


def test_what_differs_is_a_parameter() -> None:
    uses = [ONE, ONE | {"gated": True, "hidden": 16, "bias": False}]
    fold = folded(*uses)
    text = fold.text()
    assert "def __init__(self, hidden: int, bias: bool, gated: bool) -> None:" in text
    assert "nn.Linear(DIM, hidden, bias=bias)" in text
    assert "        super().__init__()\n        self.gated = gated\n" in text
    assert "if self.gated:  # why" in text
    assert [fold.call(use) for use in uses] == [
        "Brick(hidden=8, bias=True, gated=False)",
        "Brick(hidden=16, bias=False, gated=True)",
    ]


def test_a_test_that_is_settled_by_an_outer_one_is_folded() -> None:
    source = "def f(spec: Any) -> int:\n    if spec.a:\n        if spec.b:\n            return 1\n    return spec.b\n"
    uses = [{"a": True, "b": 1}, {"a": False, "b": 0}]
    assert Fold(source, uses, Constants().named({})).text() == (
        "def f(a: bool, b: int) -> int:\n    if a:\n        return 1\n    return b\n"
    )


def test_of_many_parameters_the_usual_values_are_defaults() -> None:
    source = (
        "class Many:\n    def __init__(self, spec: Any) -> None:\n        self.all = (spec.a, spec.b, spec.c, spec.d)\n"
    )
    uses = [{"a": 1, "b": 1, "c": Code("F()"), "d": 1}] * 2 + [{"a": 2, "b": 3, "c": Code("G()"), "d": None}]
    fold = Fold(source, uses, Constants().named({}))
    assert "def __init__(self, c: F | G, a: int = 1, b: int = 1, d: int | None = 1) -> None:" in fold.text()
    assert fold.call(uses[0]) == "Many(c=F())"
    assert fold.call(uses[2]) == "Many(c=G(), a=2, b=3, d=None)"


def test_names_signatures_and_docstrings_may_be_others() -> None:
    text = folded(
        ONE,
        title="Wide",
        renamed={"h": "y"},
        signatures={"forward": "x: Tensor"},
        docs={"Brick": "Wide.", "forward": "x."},
    ).text()
    assert text.startswith('class Wide(nn.Module):\n    """Wide."""\n')
    assert "def forward(self, x: Tensor) -> Tensor:\n" in text
    assert text.endswith('"""x."""\n        y = self.up(x)  # (batch, hidden)\n        return 2 * y\n')


def test_a_name_means_one_number() -> None:
    constants = Constants()
    assert [constants.use("EPS", value) for value in (1e-5, 1e-6, 1e-5)] == ["EPS", "1e-6", "EPS"]
    assert constants.use("SKIP", 1.0) == "SKIP"
    assert constants.use("SKIP", 1) == "1"
    assert constants.lines("x * SKIP") == ["SKIP = 1.0  # factor on the stream"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(3, "3"), (1_000_000, "1_000_000"), (5e5, "500_000.0"), (True, "True"), ((1, None), "(1, None)"), ((2,), "(2,)"),
     ('a"b', '"a\\"b"'), (float("inf"), 'float("inf")'), (-0.5, "-0.5"), (1e22, "1e+22")],
)  # fmt: skip
def test_values_as_python_writes_them(value: Any, text: str) -> None:
    assert literal(value) == text
    assert eval(text) == value


def test_types_of_parameters() -> None:
    assert hint([1, 2]) == "int"
    assert hint([None, Code("Rotary(theta=1.0)")]) == "Rotary | None"
    assert hint([Code("nn.LayerNorm(4)"), Code("RMSNorm(4)")]) == "nn.LayerNorm | RMSNorm"
    assert hint([Code("F.relu")]) == "Callable[[Tensor], Tensor]"


def test_long_lines_are_opened_as_the_formatter_does_it() -> None:
    assert opened("x = f(1)") == ["x = f(1)"]
    long = "    x = call(" + ", ".join(f"argument{i}" for i in range(10)) + ")  # why"
    assert len(long) > LONGEST
    assert opened(long)[0] == "    x = call(  # why"
    assert all(len(line) <= LONGEST for line in opened(long))
    assert opened("x = (" + ", ".join(["one"] * 40) + ")")[1:3] == ["    one,", "    one,"]
    assert len("".join(defined("SHORT", tuple(i / 7 for i in range(48)), "many"))) > 400
    assert (
        merged("    x = 1\n    if y:\n        x = 2\n    return x")
        == "    x = 1\n    if y:\n        x = 2\n    return x"
    )


def test_every_source_is_a_class_or_function_of_its_own() -> None:
    assert {"Attention", "FeedForward", "MoE", "Rotary", "Embedding", "Head", "Stack", "Pair", "load"} <= set(sources())
    for name, text in sources().items():
        assert text.startswith((f"class {name}(", f"def {name}(")), name
