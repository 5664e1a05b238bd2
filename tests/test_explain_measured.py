"""Predicted, counted and measured, brick by brick: the same FLOPs, the same bytes; and the order of times."""

from __future__ import annotations

import pytest

from oneblock.cost import cost, machine
from oneblock.explain.measured import Measured, measured, ordered
from oneblock.zoo import FAMILIES, named
from test_families_cached import SMALL, TINY, WRITERS

CPU = machine("cpu-2-cores")


@pytest.mark.parametrize("name", FAMILIES)
def test_every_brick_is_counted_as_it_was_predicted(name: str) -> None:
    found = cost(named(name, **(SMALL | TINY.get(name, {}))), 2, 9, "prefill", "float32")
    rows = measured(found, CPU, rounds=1)
    assert [row.path for row in rows if row.flops[0] != row.flops[1]] == []
    assert sum(row.flops[1] for row in rows) == found.forward > 0
    assert all(row.seconds[1] > 0 for row in rows if row.flops[0])


@pytest.mark.parametrize("name", WRITERS)
def test_every_brick_of_a_step_with_a_cache_is_counted_as_predicted(name: str) -> None:
    found = cost(named(name, **(SMALL | TINY.get(name, {}))), 2, 9, "decode", "float32")
    rows = measured(found, CPU, rounds=1)
    assert [row.path for row in rows if row.flops[0] != row.flops[1]] == []


@pytest.mark.parametrize("name", ["gpt2", "llama", "vaswani", "mixtral"])
def test_every_brick_keeps_what_was_predicted(name: str) -> None:
    """Save what is shared, which the first who uses it keeps: an encoder's output, angles, a table's ids."""
    found = cost(named(name, **(SMALL | TINY.get(name, {}))), 2, 9, "train", "float32")
    rows = measured(found, CPU, rounds=1)
    assert sum(row.kept[0] for row in rows) == pytest.approx(sum(row.kept[1] for row in rows), rel=0.02)
    shared = ("", "encoder", "layers.0.attention", "decoder.layers.0.cross", "encoder.embedding", "decoder.embedding")
    off = [row.path for row in rows if row.kept[0] != row.kept[1] and row.path not in shared]
    assert off == []


def test_a_model_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"--measure: expected at most [\d,]+ bytes to be held, got 9[\d,]+"):
        measured(cost(named("mixtral")), CPU)


def test_the_order_of_times_asks_only_pairs_that_are_apart() -> None:
    rows = tuple(
        Measured(str(index), None, 1, (0, 0), (0, 0), seconds)
        for index, seconds in enumerate([(1.0, 2.0), (1.4, 1.0), (2.0, 3.0), (9.0, 0.5), (5.0, 0.0)])
    )
    assert ordered(rows) == (1, 4)
