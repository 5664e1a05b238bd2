"""The picture of a run."""

from __future__ import annotations

import math
from xml.etree import ElementTree

from oneblock.train.curve import curve

ROWS = [
    {"kind": "train", "step": 10, "loss": 8.0},
    {"kind": "train", "step": 20, "loss": 5.0},
    {"kind": "valid", "step": 20, "loss": 4.5, "scores": [{"direction": "en-zh", "bleu": 3.0}]},
    {"kind": "train", "step": 30, "loss": math.nan},
    {"kind": "valid", "step": 40, "loss": 4.0, "scores": [{"direction": "en-zh", "bleu": 9.0}]},
    {"kind": "final", "step": 40, "kept": "last"},
]


def test_it_is_well_formed_and_falls_as_the_loss_falls() -> None:
    root = ElementTree.fromstring(curve(ROWS, 'a <b> & "c"'))
    lines = [node.attrib["points"] for node in root.iter() if node.tag.endswith("polyline")]
    assert len(lines) == 3
    heights = [[float(point.split(",")[1]) for point in line.split()] for line in lines]
    assert heights[0][0] < heights[0][1], "a smaller loss is lower, and y grows downwards"
    assert heights[2][0] > heights[2][1], "a better BLEU is higher"
    assert "nan" not in "".join(lines)


def test_nothing_to_draw_is_still_a_picture() -> None:
    assert ElementTree.fromstring(curve([], "empty")).tag.endswith("svg")
    one = ElementTree.fromstring(curve([{"kind": "train", "step": 1, "loss": 0.0}]))
    assert sum(node.tag.endswith("polyline") for node in one.iter()) == 1
