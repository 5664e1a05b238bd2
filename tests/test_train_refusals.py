"""What cannot be trained is refused in one line that names the key of the run file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from oneblock import weights
from oneblock.spec import Learned
from oneblock.text import Tokenizer
from oneblock.train import Run, train
from oneblock.train.config import ModelPart
from tiny_run import go, lay


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model__heads": 3}, r"^model\.heads: layers\.0\.attention\.heads: expected a divisor of dim=16, got 3"),
        ({"model__position": "learned"}, r"^model\.position: Embedding\.position: expected Learned or Sinusoidal "),
        ({"model__tokens": 3}, r"^model\.tokens: Model\.tokens: expected Tokens, got 3"),
        ({"model__length": "long"}, r"^model\.length: Model\.length: expected int or None, got 'long'"),
        ({"model__bias": 3}, r"^model\.bias: spec\.encoder\.layers\.0\.attention\.bias: expected bool, got 3"),
        ({"model__depth": "deep"}, r"^model: vaswani cannot be made of .*'depth': 'deep'"),
        ({"model__position": "{type = 'Learnt'}"}, r"^model\.position\.type: 'Learnt' is no .*did you mean Learned\?"),
        ({"batch__tokens": 3}, r"^batch\.tokens: expected a budget that holds example "),
        ({"data__valid": 500}, r"^data\.valid and data\.test: expected .* fewer than the 120 pairs; got .*valid 500"),
        ({"data__columns": ["a", "b"]}, r"^data\.columns: expected numbers from 0 for a tab-separated file; got 'a'"),
    ],
)
def test_what_cannot_be_trained_is_named_by_its_key(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        go(tmp_path, **change)
    assert "\n" not in str(caught.value)


def test_an_argument_may_be_a_spec(tmp_path: Path) -> None:
    done = go(tmp_path, model__position='{type = "Learned", length = 40}', training__steps=1)
    assert weights.load(done.out).spec.decoder.embedding.position == Learned(length=40)


def test_a_tokenizer_must_know_the_languages(tmp_path: Path) -> None:
    Tokenizer.train(["a b", "b a"], 300, languages=("en", "de")).save(tmp_path)
    with pytest.raises(ValueError, match=r"^data\.languages: .*tokenizer\.json knows \['en', 'de'\], got 'zh'; "):
        go(tmp_path, tokenizer__path="tokenizer.json")
    with pytest.raises(ValueError, match=r"^tokenizer\.path: .*none\.json: expected a tokenizer; got no such file"):
        go(tmp_path, "b", tokenizer__path="none.json")


def test_the_model_must_fit_the_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"model.vocab: 300 is less than the tokenizer's 330"):
        go(tmp_path, "a", model__vocab=300)
    with pytest.raises(ValueError, match=r"model: vaswani: no argument 'dimm'; did you mean dim"):
        go(tmp_path, "b", model__dimm=300)
    run = Run.load(lay(tmp_path))
    with pytest.raises(ValueError, match=r"model.name: missing; name one of `oneblock models`"):
        train(replace(run, model=ModelPart()), tmp_path / "d", progress=False)
    with pytest.raises(ValueError, match=r"model.spec: .*none\.json: cannot be read: No such file"):
        train(replace(run, model=ModelPart(spec="none.json")), tmp_path / "c", progress=False)
