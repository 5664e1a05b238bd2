"""The learning rate against its closed form."""

from __future__ import annotations

import math

import pytest

from oneblock.train.config import OptimizerPart
from oneblock.train.schedule import rate


def part(schedule: str, warmup: int = 4000) -> OptimizerPart:
    return OptimizerPart(lr=7e-4, schedule=schedule, warmup=warmup)


@pytest.mark.parametrize("step", [1, 17, 3999, 4000, 4001, 100_000])
def test_E15_inverse_sqrt_is_the_formula_of_2017(step: int) -> None:
    paper = min(step**-0.5, step * 4000**-1.5)  # times dim ** -0.5; the peak is given instead
    assert rate(step, part("inverse-sqrt"), 10**6) == pytest.approx(7e-4 * paper / 4000**-0.5, rel=1e-12)


def test_cosine_and_linear() -> None:
    for schedule, half in (("linear", 0.5), ("cosine", 0.5)):
        given = part(schedule, warmup=100)
        assert rate(50, given, 1100) == pytest.approx(7e-4 * 0.5)
        assert rate(100, given, 1100) == pytest.approx(7e-4)
        assert rate(600, given, 1100) == pytest.approx(7e-4 * half)
        assert rate(1100, given, 1100) == pytest.approx(0.0, abs=1e-18)
    assert rate(350, part("linear", 100), 1100) == pytest.approx(7e-4 * 0.75)
    assert rate(350, part("cosine", 100), 1100) == pytest.approx(7e-4 * (1 + math.sqrt(0.5)) / 2)


def test_no_warm_up_and_no_step_zero() -> None:
    assert rate(1, part("inverse-sqrt", 0), 10) == pytest.approx(7e-4)
    assert rate(9, part("inverse-sqrt", 0), 10) == pytest.approx(7e-4 / 3)
    with pytest.raises(ValueError, match="first update is step 1"):
        rate(0, part("linear"), 10)


def test_the_warm_up_longer_than_the_run_never_decays() -> None:
    assert [rate(step, part("linear", 10), 5) for step in (1, 5)] == pytest.approx([7e-5, 35e-5])
