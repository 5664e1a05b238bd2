"""The translator in the package: it is there, it is small, it translates, and its card tells the truth about it."""

from __future__ import annotations

from pathlib import Path

import pytest

import oneblock
from oneblock.generate import translator
from oneblock.train import evaluate, held_out

FOLDER = Path(translator.__file__).parent / "tatoeba"
ROOT = Path(__file__).resolve().parent.parent


def test_it_translates_both_ways_without_being_told_which() -> None:
    assert oneblock.translate("我爱你") == "I love you."
    assert oneblock.translate("I love you.") == "我爱你。"
    assert oneblock.translate("") == ""


def test_a_batch_is_translated_like_its_lines() -> None:
    texts = ["今天天气很好。", "Where is the station?", "", "我不知道他什么时候来。", "Good morning!"]
    together = [t.text for t in oneblock.Translator.default()(texts)]
    assert together == [oneblock.translate(text) if text else "" for text in texts]


def test_its_files_are_small_and_its_card_names_its_size() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir() if path.suffix != ".md") < 12.2e6
    model = oneblock.load(FOLDER)
    card = (FOLDER / "README.md").read_text("utf-8")
    assert f"{oneblock.parameters(model.spec):,}" in card
    assert "CC-BY 2.0 FR" in card
    assert "{" not in card.replace("{…}", "")


def test_its_score_on_held_out_pairs_is_what_the_card_says(shared_data: Path) -> None:
    assert shared_data
    pairs = held_out(ROOT / "recipes" / "tatoeba.toml")
    assert len(pairs) == 1000
    ready = oneblock.Translator.default()
    scores = evaluate(ready.model, ready.tokenizer, pairs, beam=1)
    card = (FOLDER / "README.md").read_text("utf-8")
    rows = [line.split("|") for line in card.splitlines() if line.startswith("| all |")]
    for score, row in zip(scores, rows, strict=True):
        assert score.bleu == pytest.approx(float(row[5]), abs=0.15)
        assert score.chrf == pytest.approx(float(row[6]), abs=0.15)
