"""Checkpoints survive whatever happens while they are written."""

from __future__ import annotations

import errno
import json
import os
import warnings
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from oneblock.files import durable
from oneblock.train import checkpoint
from oneblock.train.config import OptimizerPart
from oneblock.train.optimizer import make_optimizer


def trained(seed: int = 0) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))
    optimizer = make_optimizer(model, OptimizerPart())
    for _ in range(3):
        model(torch.randn(5, 4)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer


def save(folder: Path, step: int, seed: int = 0) -> Path:
    return checkpoint.save_checkpoint(folder, step, *trained(seed), {"note": "ü"}, {"spec.json": b"{}"})


def test_B80_weights_moments_and_step_counts_come_back_bit_for_bit(tmp_path: Path) -> None:
    path = save(tmp_path, 7)
    model, optimizer = trained()
    fresh, other = trained(seed=1)
    checkpoint.restore(fresh, other, path)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), fresh.parameters(), strict=True))
    for mine, theirs in zip(optimizer.state.values(), other.state.values(), strict=True):
        assert mine.keys() == theirs.keys() == {"step", "exp_avg", "exp_avg_sq"}
        assert all(torch.equal(mine[key], theirs[key]) for key in mine)
    assert checkpoint.newest(tmp_path) == (path, json.loads((path / "state.json").read_bytes()))
    assert sorted(os.listdir(tmp_path)) == ["step-00000007"]


def test_B31_wrapped_and_compiled_models_save_plain_names(tmp_path: Path) -> None:
    model, optimizer = trained()
    wrapped = nn.Module()
    wrapped.module = torch.compile(model, backend="eager")
    path = checkpoint.save_checkpoint(tmp_path, 1, wrapped, optimizer, {}, {})
    assert set(load_file(path / "model.safetensors")) == set(model.state_dict())
    fresh, other = trained(seed=1)
    checkpoint.restore(fresh, other, path)
    assert torch.equal(fresh[0].weight, model[0].weight)


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json", "spec.json"])
def test_B83_a_damaged_checkpoint_is_skipped_with_a_line(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = save(tmp_path, 1), save(tmp_path, 2)
    data = (bad / name).read_bytes()
    (bad / name).write_bytes(data[:-1])
    said: list[str] = []
    path, _ = checkpoint.newest(tmp_path, said.append)
    assert path == good
    (bad / name).unlink()
    assert checkpoint.newest(tmp_path)[0] == good
    for line in (*said, capsys.readouterr().err.rstrip("\n")):
        assert line.startswith(f"{bad}: ")
        assert line.endswith("; skipped")
        assert "\n" not in line


def test_one_flipped_byte_is_damage(tmp_path: Path) -> None:
    path = save(tmp_path, 1)
    data = bytearray((path / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (path / "model.safetensors").write_bytes(bytes(data))
    said: list[str] = []
    assert checkpoint.newest(tmp_path, said.append) is None
    assert [line.partition(": ")[2] for line in said] == ["model.safetensors is damaged (its sha256 differs); skipped"]


def test_B82_killed_inside_a_save_leaves_the_previous_one_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """Not an OSError: nothing gets the chance to clean up."""

    left, real = 0, durable.os.fsync

    def dying(handle: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Killed
        real(handle)

    save(tmp_path, 1)
    for moment in range(1, 20):
        left = moment
        monkeypatch.setattr(durable.os, "fsync", dying)
        try:
            save(tmp_path, 2, seed=1)
            break
        except Killed:
            monkeypatch.setattr(durable.os, "fsync", real)
            path, state = checkpoint.newest(tmp_path)
            assert path.name in ("step-00000001", "step-00000002")
            assert checkpoint.read_state(path) == state
            assert not list(tmp_path.glob(".tmp-*"))
    assert 5 < moment < 19, "every fsync of a save was the moment of a kill"


def test_a_full_disk_is_one_line_and_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = save(tmp_path, 1)
    monkeypatch.setattr(Path, "write_bytes", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left")))
    with pytest.raises(OSError, match="No space left") as caught:
        save(tmp_path, 2)
    assert "\n" not in str(caught.value)
    assert "step-00000002" in str(caught.value)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == [good.name]
    assert checkpoint.newest(tmp_path)[0] == good


def test_a_damaged_folder_of_the_same_step_is_replaced(tmp_path: Path) -> None:
    path = save(tmp_path, 3)
    (path / "state.json").write_text("{", encoding="utf-8")
    save(tmp_path, 3)
    assert checkpoint.newest(tmp_path)[0] == path


def test_B83_pruning_keeps_the_newest_and_the_best(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4):
        save(tmp_path, step)
    checkpoint.prune(tmp_path, 4, 2, 1, None)
    assert sorted(os.listdir(tmp_path)) == ["step-00000001", "step-00000003", "step-00000004"]
    checkpoint.prune(tmp_path, 3, 1)
    assert os.listdir(tmp_path) == ["step-00000003"], "a later step is one that the run fell back from"


def test_only_checkpoints_saved_by_the_clock_are_averaged() -> None:
    assert checkpoint.regular([3, 6, 8, 9], every=3, count=2) == [6, 9]
    assert checkpoint.regular([3, 6, 8], every=3, count=2) == [6, 8], "the last step of all counts"
    assert checkpoint.regular([3, 6], every=3, count=0) == checkpoint.regular([], every=3, count=2) == []


def test_the_average_is_the_mean_in_float64(tmp_path: Path) -> None:
    paths = [save(tmp_path, step, seed=step) for step in (1, 2, 3)]
    mean = checkpoint.average(paths)
    files = [load_file(path / "model.safetensors") for path in paths]
    expected = torch.stack([tensors["0.weight"].double() for tensors in files]).mean(0)
    assert torch.allclose(mean["0.weight"], expected, atol=1e-15)
    model, _ = trained()
    checkpoint.write_weights(model, mean)
    assert torch.equal(model[0].weight, expected.float())
    with pytest.raises(ValueError, match=r"1 tensor names differ.*'2.bias'"):
        checkpoint.write_weights(model, mean | {"2.bias": torch.zeros(1)})


def test_no_checkpoints_at_all_is_no_warning(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert checkpoint.newest(tmp_path / "absent") is None
