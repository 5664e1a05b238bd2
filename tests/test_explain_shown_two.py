"""Two texts side by side: where a model treats them differently, place by place and token by token."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest

from oneblock.explain import trace
from oneblock.explain.worked import exercise
from oneblock.explain.worked.two import beside
from oneblock.explain.worked.two_text import text as text_of_two
from oneblock.spec import Causal, Full, put
from specs import exact, language_model


@lru_cache
def two(left: tuple[int, ...], right: tuple[int, ...], hides: bool, positions: bool) -> Any:
    spec = put(language_model(), "layers.*.attention.mask", Causal() if hides else Full())
    model = exact(put(spec, "layers.*.attention.position", None) if not positions else spec)
    found = [trace(model, list(ids)) for ids in (left, right)]
    return beside((found[0], found[1]), (exercise(found[0]), exercise(found[1])))


def test_N23_without_positions_and_mask_two_orders_are_one_bag() -> None:
    found = two((4, 5, 6), (6, 5, 4), False, False)
    (stack,) = found.stacks
    assert stack.bag
    assert stack.first_place == 1
    assert stack.first_token is None
    assert "order is not seen" in text_of_two(found)
    assert all(step.token is None or step.token < 1e-9 for step in found.steps)


@pytest.mark.parametrize(("hides", "positions"), [(True, False), (False, True)])
def test_N23_a_causal_mask_or_positions_tell_the_order(hides: bool, positions: bool) -> None:
    found = two((4, 5, 6), (6, 5, 4), hides, positions)
    first = found.step(found.stacks[0].first_token)
    spec = found.left.spec
    rotated = getattr(spec.layers[0].attention, "position", None) is not None
    expected = ("query", "key") if rotated and positions else ("masked",) if hides else ("position",)
    assert first.path.rpartition(".")[2] in expected


def test_texts_of_other_tokens_are_compared_by_those_they_share() -> None:
    found = two((4, 5), (5, 7, 8), False, False)
    assert found.stacks[0].shared == ("5",)
    assert not found.stacks[0].bag
    assert found.steps[0].place is None
    assert found.steps[0].token == 0
