"""Killed at any moment and resumed, a run ends bit for bit like one that was never killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tiny_run
from oneblock.train import Run, loop, train
from oneblock.train.log import read_rows

TIMES = ("seconds", "tokens_per_second")


class Crash(BaseException):
    """The process is gone: no handler of ours runs on it."""


def outcome(out: Path) -> tuple[dict[str, bytes], list[dict[str, Any]]]:
    """What must be equal: all weights and moments, and the metrics but for clocks."""
    tensors = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*.safetensors")}
    rows = [{key: row[key] for key in row if key not in TIMES} for row in read_rows(out / "metrics.jsonl")]
    return tensors, rows


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[dict[str, bytes], list[dict[str, Any]]]]:
    folder = tmp_path_factory.mktemp("unbroken")
    tiny_run.lay(folder)
    command(folder, "out")()
    return folder, outcome(folder / "out")


def command(folder: Path, *arguments: str) -> Callable[[], None]:
    """Trains in a process of its own, to the end."""
    line = [sys.executable, tiny_run.__file__, str(folder), str(folder / arguments[0]), *arguments[1:]]
    return lambda: subprocess.run(line, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def killed(folder: Path, moment: Callable[[Path], bool], *arguments: str) -> None:
    """Trains in a process of its own until the moment comes; then SIGKILL."""
    out = folder / arguments[0]
    line = [sys.executable, tiny_run.__file__, str(folder), str(out), *arguments[1:]]
    process = subprocess.Popen(line, env={**os.environ, "OMP_NUM_THREADS": "1"})
    while process.poll() is None and not moment(out):
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_B82_kill_9_loses_nothing_but_the_steps_since_the_last_save(unbroken: Any) -> None:
    folder, expected = unbroken
    saved = folder / "killed" / "checkpoints"
    killed(folder, lambda _: (saved / "step-00000006").is_dir(), "killed")
    killed(folder, lambda _: any(saved.glob(".tmp-step-*")) or (saved / "step-00000012").is_dir(), "killed", "resume")
    assert any(saved.glob("step-*")), "what was saved is still there"
    command(folder, "killed", "resume")()
    assert outcome(folder / "killed") == expected
    assert not list((folder / "killed").rglob(".tmp-*"))


@pytest.mark.parametrize("step", [1, 6, 7, 16, 24])
def test_B80_a_crash_inside_any_step_is_made_good(
    unbroken: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    run, real = Run.load(tiny_run.lay(tmp_path)), loop.reseed

    def reseed(seed: int, number: int) -> None:
        if number == step:
            raise Crash
        real(seed, number)

    monkeypatch.setattr(loop, "reseed", reseed)
    with pytest.raises(Crash):
        train(run, tmp_path / "out", progress=False)
    monkeypatch.undo()
    train(run, tmp_path / "out", progress=False, resume=True)
    assert outcome(tmp_path / "out") == unbroken[1]


def test_B83_a_damaged_newest_checkpoint_costs_only_its_steps(
    unbroken: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run.load(tiny_run.lay(tmp_path))
    train(run, tmp_path / "out", progress=False)
    newest = tmp_path / "out" / "checkpoints" / "step-00000024" / "optimizer.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1])
    train(run, tmp_path / "out", progress=False, resume=True)
    said = capsys.readouterr().err.splitlines()
    assert said == [f"{newest.parent}: optimizer.safetensors is damaged (its sha256 differs); skipped"]
    assert outcome(tmp_path / "out") == unbroken[1]


def test_a_full_disk_at_a_save_leaves_a_run_that_resumes(
    unbroken: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, real = Run.load(tiny_run.lay(tmp_path)), loop.save_checkpoint

    def full(folder: Path, step: int, *arguments: Any) -> Path:
        if step == 12:
            monkeypatch.setattr(Path, "write_bytes", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
        return real(folder, step, *arguments)

    monkeypatch.setattr(loop, "save_checkpoint", full)
    with pytest.raises(OSError, match=r"cannot save .*step-00000012.*No space left"):
        train(run, tmp_path / "out", progress=False)
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(run, tmp_path / "out", progress=False, resume=True)
    assert outcome(tmp_path / "out") == unbroken[1]


def test_resume_without_a_checkpoint_is_a_new_start(unbroken: Any, tmp_path: Path) -> None:
    train(Run.load(tiny_run.lay(tmp_path)), tmp_path / "out", progress=False, resume=True)
    assert outcome(tmp_path / "out") == unbroken[1]
