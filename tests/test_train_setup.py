"""The spec that a run trains: what this trainer cannot do is refused before anything begins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oneblock.spec import Spec, put, to_dict
from oneblock.text import Tokenizer
from oneblock.train.config import ModelPart
from oneblock.train.setup import make_spec
from specs import translator


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("decoder.balance", 0.01, "model.balance: this trainer's loss knows none, got 0.01"),
        ("decoder.head", None, "model: expected a decoder that ends in a head for tokens"),
    ],
)
def test_what_would_be_ignored_or_fail_later_is_refused(tmp_path: Path, path: str, value: object, said: str) -> None:
    tokenizer = Tokenizer.train(["low lower lowest"], vocab=270)
    spec: Spec = translator(vocab=len(tokenizer))
    for tokens in ("encoder.tokens", "decoder.tokens"):
        spec = put(put(spec, f"{tokens}.pad", tokenizer.pad), f"{tokens}.eos", tokenizer.eos)
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(to_dict(spec)), encoding="utf-8")
    assert make_spec(ModelPart(spec=str(file)), tokenizer) == spec
    file.write_text(json.dumps(to_dict(put(spec, path, value))), encoding="utf-8")
    with pytest.raises(ValueError, match=said):
        make_spec(ModelPart(spec=str(file)), tokenizer)
