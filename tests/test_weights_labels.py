"""What a classifier calls its labels survives every conversion, and the one who classifies reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import oneblock
from oneblock.spec import Classify, put
from oneblock.text import Tokenizer
from oneblock.weights.convert import convert
from oneblock.weights.labels import read_labels
from oneblock.zoo import FAMILIES, named
from oneblock.zoo.config import read_config, write_config

NAMES = ["NEG", "POS", "中"]
SMALL = {"dim": 8, "depth": 1, "heads": 2, "hidden": 16, "vocab": 300, "length": 8}


def said_in(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "config.json").read_text())
    return found


@pytest.fixture(params=["gpt2", "bart"])
def classifier(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A classifier as the hub has it, its labels named."""
    torch.manual_seed(0)
    if request.param == "bart":
        config = write_config(named("bart", **SMALL, decoder_heads=2, decoder_hidden=16), FAMILIES)[2]
        spec = read_config(config | {"architectures": ["BartForSequenceClassification"]}, FAMILIES)[2]
    else:
        spec = put(named("gpt2", **SMALL), "head", Classify(3, "last", bias=False))
    oneblock.save_pretrained(oneblock.build(spec), tmp_path / "a")
    assert read_labels(tmp_path / "a") == ["LABEL_0", "LABEL_1", "LABEL_2"]
    ids = {"id2label": dict(enumerate(NAMES)), "label2id": {name: i for i, name in enumerate(NAMES)}}
    (tmp_path / "a" / "config.json").write_text(json.dumps(said_in(tmp_path / "a") | ids))
    return tmp_path / "a"


def test_names_come_along_both_ways(classifier: Path) -> None:
    there = classifier.parent
    for source, target, form in (
        ("a", "hub", "hf"),
        ("a", "ours", "oneblock"),
        ("ours", "again", "oneblock"),
        ("again", "back", "hf"),
    ):
        convert(there / source, there / target, form)
        assert read_labels(there / target) == NAMES
    assert json.loads((there / "ours" / "labels.json").read_text()) == NAMES
    Tokenizer.train(["low lower"], 270).save(there / "ours")
    assert oneblock.Pipeline.load(there / "ours").labels == tuple(NAMES)
    for folder in ("hub", "back"):
        assert said_in(there / folder) == said_in(classifier)
        assert not (there / folder / "labels.json").exists()


def test_names_without_a_classifier_stay_behind(tmp_path: Path) -> None:
    oneblock.save_pretrained(oneblock.build(named("gpt2", **SMALL)), tmp_path / "a")
    said = said_in(tmp_path / "a")
    (tmp_path / "a" / "config.json").write_text(json.dumps(said | {"id2label": {"0": "A", "1": "B"}}))
    convert(tmp_path / "a", tmp_path / "b", "hf")
    assert said_in(tmp_path / "b") == said
    convert(tmp_path / "a", tmp_path / "c")
    assert not (tmp_path / "c" / "labels.json").exists()


def test_names_of_the_model_before_do_not_stay(classifier: Path) -> None:
    convert(classifier, classifier.parent / "ours")
    oneblock.save_pretrained(oneblock.build(named("gpt2", **SMALL)), classifier.parent / "ours")
    assert read_labels(classifier.parent / "ours") == []


@pytest.mark.parametrize("text", ["{}", "3", '["a", 1]', "[", "null"])
def test_a_file_that_is_no_list_of_names_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "labels.json").write_text(text)
    with pytest.raises(ValueError, match=r"labels\.json:?.* expected [^\n]*$"):
        read_labels(tmp_path)


def test_names_are_only_those_that_every_label_has(tmp_path: Path) -> None:
    for said in ({"id2label": {"0": "a", "2": "b"}}, {"id2label": ["a"]}, {}, [1]):
        (tmp_path / "config.json").write_text(json.dumps(said))
        assert read_labels(tmp_path) == []
