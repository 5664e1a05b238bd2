"""A training process that is killed, also while it writes a checkpoint, goes on as if nothing had been."""

from __future__ import annotations

import json
import shutil
import signal
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from oneblock.train.checkpoint import save_checkpoint

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.resume import differences, trial, whole


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """What a run folder holds, without the training."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(3)).sum().backward()
    optimizer.step()
    folder = tmp_path / "one" / "run"
    save_checkpoint(folder / "checkpoints", 5, model, optimizer, {"metrics_bytes": 70}, {})
    row = {"kind": "train", "step": 5, "loss": 1.5, "seconds": 2.0}
    (folder / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    return folder


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="this system cannot stop and kill a process")
def test_B82_killed_five_times_and_twice_inside_a_save_a_run_ends_bit_for_bit_like_an_unbroken_one(
    tmp_path: Path,
) -> None:
    done, found = trial(tmp_path, kills=5, inside=2)
    assert found == []
    assert len(done) == 5
    assert sum(kill.inside for kill in done) == 2
    assert any(kill.goes_on for kill in done), "no kill came after the first checkpoint"
    assert not list((tmp_path / "broken").rglob("*tmp*")), "a killed save left something behind"


def test_the_comparison_sees_one_bit_one_row_and_one_file_but_no_times(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "two" / "run"
    shutil.copytree(run, other)
    rows = [json.loads((run / "metrics.jsonl").read_text())]
    rows[0]["seconds"] = 3.0
    (other / "metrics.jsonl").write_text(json.dumps(rows[0]) + "\n")
    assert differences(run, other) == []
    rows[0]["loss"] += 1e-15
    (other / "metrics.jsonl").write_text(json.dumps(rows[0]) + "\n")
    moments = other / "checkpoints" / "step-00000005" / "optimizer.safetensors"
    data = bytearray(moments.read_bytes())
    data[-1] ^= 1
    moments.write_bytes(data)
    (other / "left.tmp").touch()
    found = differences(run, other)
    assert [line.split(": ")[0] for line in found] == [
        "left.tmp",
        "checkpoints/step-00000005/optimizer.safetensors",
        "metrics.jsonl",
    ]
    assert "in 1 of 6 tensors" in found[1]


def test_a_checkpoint_that_lost_its_last_byte_is_not_whole(run: Path) -> None:
    assert whole(run) == 5
    weights = run / "checkpoints" / "step-00000005" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(ValueError, match="damaged"):
        whole(run)
