"""Every family and head type against the reference library: one random config each; more by benchmarks.agreement."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="the reference library is not installed")

from benchmarks.agreement import FAMILIES_FILES  # noqa: F401 - they register their cases
from benchmarks.agreement.cases import CASES, passed
from benchmarks.agreement.measure import measure

EVERY = [(family, name) for family, case in CASES.items() for name in case.classes]

ROTATIONS = [("llama", "LlamaForCausalLM", index) for index in range(1, 6)]
"""With the first, every way to stretch rotary positions comes up once."""


@pytest.mark.parametrize(("family", "name", "index"), [*((*one, 0) for one in EVERY), *ROTATIONS])
def test_equal_to_the_reference(family: str, name: str, index: int, tmp_path: Path) -> None:
    found = measure(CASES[family], name, index, tmp_path)
    assert found
    assert passed(found) == {}
