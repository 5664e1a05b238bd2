"""The rows of Table 3 of 2017 are specs; the modules built from them have the published sizes."""

from __future__ import annotations

import pytest
import torch

from oneblock.bricks import build_model
from oneblock.spec import validate
from oneblock.zoo import named, names

PUBLISHED = {
    "base": (65, 63.05),
    "A-1-head": (65, 63.05),
    "A-4-heads": (65, 63.05),
    "A-16-heads": (65, 63.05),
    "A-32-heads": (65, 63.05),
    "B-key-16": (58, 55.97),
    "B-key-32": (60, 58.33),
    "C-2-layers": (36, 33.64),
    "C-4-layers": (50, 48.35),
    "C-8-layers": (80, 77.75),
    "C-dim-256": (28, 26.82),
    "C-dim-1024": (168, 163.82),
    "C-hidden-1024": (53, 50.45),
    "C-hidden-4096": (90, 88.24),
    "big": (213, 214.17),
}
"""Row -> millions published, millions at a vocabulary of 37,000."""


def count(row: str) -> int:
    with torch.device("meta"):
        model = build_model(named(f"vaswani-{row}", bias=False))
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("row", PUBLISHED)
def test_N12_modules_of_table_3_have_the_published_sizes(row: str) -> None:
    published, ours = PUBLISHED[row]
    millions = count(row) / 1e6
    assert millions == pytest.approx(ours, abs=0.0051)
    assert abs(millions - published) <= 0.07 * published


def test_N12_differences_between_rows_cancel_the_vocabulary() -> None:
    for fewer, more, published in (
        ("C-2-layers", "C-4-layers", 14),
        ("C-4-layers", "C-8-layers", 30),
        ("C-hidden-1024", "base", 12),
        ("B-key-16", "base", 7),
    ):
        assert abs((count(more) - count(fewer)) / 1e6 - published) <= 1.5


def test_every_name_is_a_spec_whose_parts_fit() -> None:
    for name in names():
        validate(named(name))


def test_unknown_names_and_arguments_come_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="'vaswani-bigg' is no model we know; did you mean vaswani-big"):
        named("vaswani-bigg")
    with pytest.raises(ValueError, match="vaswani: no argument 'hiden'; did you mean hidden"):
        named("vaswani", hiden=3)
