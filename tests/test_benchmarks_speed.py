"""The benchmarks that compare speed compare the same function, count the same work, and report what they measured."""

from __future__ import annotations

import doctest
import json
import sys
import time
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
pytest.importorskip("transformers", reason="transformers, one of the contenders, is not installed")

from benchmarks import contest, peers, train_speed, translate_speed

from oneblock.train.data import collate

VOCAB = 50
SMALL = peers.SIZES["small"]
TRAIN = [
    "--size",
    "small",
    "--rounds",
    "1",
    "--tokens",
    "120",
    "--vocab",
    str(VOCAB),
    "--pairs",
    "absent",
    "--no-memory",
]
TRANSLATE = [
    "--size",
    "small",
    "--rounds",
    "1",
    "--sentences",
    "6",
    "--alone",
    "2",
    "--length",
    "7",
    "--vocab",
    str(VOCAB),
]


def test_the_examples_run() -> None:
    assert doctest.testmod(contest).failed == 0


def test_contenders_take_turns_and_the_warm_round_does_not_count() -> None:
    seen: list[tuple[str, int]] = []

    def turn(name: str, seconds: float) -> contest.Contender:
        return contest.Contender(name, lambda number: (seen.append((name, number)), time.sleep(seconds), 10)[2])

    found = contest.contest([turn("a", 0.002), turn("b", 0.02)], rounds=4)
    assert [name for name, _ in seen] == ["a", "b", "b", "a"] * 2 + ["a", "b"]
    assert [number for _, number in seen] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert [len(speeds) for speeds in found.values()] == [4, 4]
    assert contest.ratios(found, "b")["a"]["median"] > 1


def test_memory_of_a_new_process_is_not_that_of_the_one_that_started_it() -> None:
    held = torch.ones(300, 1024, 1024 // 4)  # 300 MiB
    before, peak = contest.resident()
    assert peak >= before > held.nbytes / contest.MIB
    code = "import json; from benchmarks.contest import resident as r; print(json.dumps(r()))"
    found = contest.subprocess.run(
        [sys.executable, "-c", code], cwd=contest.ROOT, capture_output=True, text=True, check=True
    )
    if sys.platform == "linux":
        assert json.loads(found.stdout)[1] < peak - 100


@pytest.fixture(scope="module")
def models() -> dict[str, torch.nn.Module]:
    theirs = peers.marian(SMALL, VOCAB)
    return {
        train_speed.OURS: peers.as_ours(theirs, SMALL),
        train_speed.TORCH: peers.as_torch(theirs, SMALL),
        train_speed.MARIAN: theirs,
    }


@pytest.fixture(scope="module")
def batch() -> train_speed.Batch:
    rows = [([5, 9, 2], [7, 8, 30, 2]), ([6, 2], [9, 2]), ([40, 41, 42, 43, 2], [11, 2])]
    return collate(rows, peers.TOKENS)


def test_three_implementations_compute_the_same_logits_and_loss(models, batch) -> None:
    assert max(train_speed.check(models, batch).values()) < 1e-5


@torch.no_grad()
def test_a_contender_with_another_weight_is_refused(models, batch) -> None:
    bias = models[train_speed.TORCH].transformer.decoder.layers[1].multihead_attn.out_proj.bias
    bias[0] += 0.01
    try:
        with pytest.raises(RuntimeError, match="do not compute the same"):
            train_speed.check(models, batch)
    finally:
        bias[0] -= 0.01


def test_one_step_of_training_moves_all_three_alike_when_nothing_is_dropped(models, batch) -> None:
    padded = peers.Padded.of(batch)
    for module in models[train_speed.MARIAN].modules():
        if isinstance(module, torch.nn.Embedding):
            module.padding_idx = None  # Marian does not train the row of padding, which is also what it starts from
    for name, model in models.items():
        step = train_speed.stepping(name, model.eval())
        assert step(batch if name == train_speed.OURS else padded) == batch.tokens == 8
    moved = train_speed.check(models, batch)  # AdamW divides by the gradient's size, which carries rounding far
    assert max(moved.values()) < 1e-3


def test_train_speed_reports_every_contender(capsys) -> None:
    train_speed.main([*TRAIN, "--json", "-"])
    found = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in found["contenders"]] == ["oneblock", "oneblock bfloat16", "nn.Transformer", "Marian"]
    assert found["batches"]["from"] == "random tokens"
    assert found["ceilings"]["before"]["copy_gb_per_second"] > 0


def test_translate_speed_writes_the_same_translations(tmp_path, capsys) -> None:
    translate_speed.main([*TRANSLATE, "--json", str(tmp_path / "found.json")])
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["check"]["same translations"] == "6 of 6"
    assert "Marian, one call per line" in capsys.readouterr().out


def test_no_translation_ends_early_and_they_are_not_all_the_same() -> None:
    marian = peers.marian(SMALL, VOCAB).eval()
    search = translate_speed.our_search(peers.as_ours(marian, SMALL, no_end=True).eval(), 4, 7)
    sentences = translate_speed.sources(6, VOCAB)
    together, alone = search(sentences), translate_speed.one_by_one(search)(sentences)
    assert [len(row) for row in together] == [7] * 6
    assert together == alone
    assert len(set(together)) > 3
