"""The difference of two models, priced line by line: the prices add up to the whole difference."""

from __future__ import annotations

import json
from itertools import product

import pytest
from hypothesis import given, settings

from oneblock.cost import cost, machine, parameters
from oneblock.draw.compare import compare
from oneblock.draw.priced import price, priced, text
from oneblock.spec import Spec, put
from oneblock.zoo import FAMILIES, named
from specs import specs

H100 = machine("nvidia-h100")
SMALL = {"length": 100, "dtype": "float32"}


def whole(before: Spec, after: Spec, **job: object) -> None:
    """Fail where prices do not add up to the difference, or a line is not that of the comparison."""
    lines = priced(before, after, H100, **job)  # type: ignore[arg-type]
    first, last = (price(cost(spec, **job), H100) for spec in (before, after))  # type: ignore[arg-type]
    for key in first:
        added = sum(line.price[key] for line in lines[:-1] if line.price is not None)
        assert added == pytest.approx(last[key] - first[key], rel=1e-9, abs=1e-12)
        assert lines[-1].price[key] == last[key] - first[key]  # type: ignore[index]
    assert [line.topic for line in lines[:-1]] == [line.topic for line in compare(before, after)]
    assert lines[-2].price is not None or len(lines) == 1


@pytest.mark.parametrize(("before", "after"), [*product(["vaswani", "gpt2", "bert"], FAMILIES)])
def test_prices_add_up_between_families(before: str, after: str) -> None:
    if before != after:
        whole(named(before), named(after), **SMALL)
        whole(named(before), named(after), phase="train", **SMALL)


@settings(max_examples=25, deadline=None)
@given(specs, specs)
def test_prices_add_up_between_any_two(before: Spec, after: Spec) -> None:
    if before != after:
        whole(before, after, length=10, phase="train")


def test_N19_one_brick_changed_is_one_line_with_its_price() -> None:
    spec = named("llama3-8b")
    each = put(spec, "layers.*.attention.kv_heads", None)
    (line, _) = priced(spec, each, H100, length=1000)
    assert line.topic == "attention"
    assert line.price is not None
    assert line.price["cache"] == 3 * cost(spec, length=1000).totals["cache"]
    assert line.price["parameters"] == parameters(each) - parameters(spec) == 32 * 2 * 4096 * (4096 - 1024)


def test_changes_that_fit_only_together_are_priced_together() -> None:
    spec = named("gpt2")
    heads = put(put(spec, "layers.*.attention.heads", 16), "layers.*.attention.scale", None)
    after = put(put(heads, "layers.*.attention.kv_heads", 8), "dim", 1024)
    lines = priced(spec, after, H100, length=10)
    whole(spec, after, length=10)
    assert [line.price is None for line in lines] == [line.topic == "attention" for line in lines]
    assert "together with the next line" in text(lines, "en")
    assert "与下一行合并计价" in text(priced(spec, after, H100, "zh", length=10), "zh")


def test_words_do_not_change_numbers() -> None:
    one, other = (priced(named("vaswani"), named("mixtral"), H100, lang, **SMALL) for lang in ("en", "zh"))
    assert json.dumps([line.plain for line in one]) == json.dumps([line.plain for line in other])
