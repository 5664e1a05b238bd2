"""A whole run: what it leaves behind, when it stops, what it refuses."""

from __future__ import annotations

import json
import math
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from oneblock import weights
from oneblock.generate import Translator
from oneblock.train import Result, Run, evaluate, finish, loop, read_split, train
from oneblock.train.config import ModelPart
from oneblock.train.judge import Verdict
from oneblock.train.log import read_rows
from tiny_run import lay


def go(folder: Path, out: str = "out", *, resume: bool = False, **changes: Any) -> Result:
    overrides = [(key.replace("__", "."), str(value)) for key, value in changes.items()]
    return train(Run.load(lay(folder), overrides), folder / out, resume=resume, progress=False, dtype="float32")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return go(tmp_path_factory.mktemp("run"))


def rows(out: Path, kind: str) -> list[dict[str, Any]]:
    return [row for row in read_rows(out / "metrics.jsonl") if row["kind"] == kind]


def test_a_run_folder_holds_everything(finished: Result) -> None:
    out = finished.out
    names = {"spec.json", "run.toml", "tokenizer.json", "model.safetensors", "metrics.jsonl", "env.json", "curve.svg"}
    assert set(os.listdir(out)) == names | {"checkpoints"}
    assert json.loads((out / "env.json").read_text())["versions"]["torch"] == torch.__version__
    assert Run.load(out / "run.toml").training.steps == 24
    kept = sorted(os.listdir(out / "checkpoints"))
    best = max(rows(out, "valid"), key=lambda row: (sum(score["bleu"] for score in row["scores"]), -row["loss"]))
    assert kept == sorted({"step-00000018", "step-00000024", f"step-{best['step']:08d}"})


def test_metrics_are_complete_and_the_loss_falls(finished: Result) -> None:
    trained = rows(finished.out, "train")
    assert [row["step"] for row in trained] == [5, 10, 15, 20, 24]
    assert trained[-1]["loss"] < trained[0]["loss"] - 0.5
    assert trained[0]["lr"] == pytest.approx(0.01)
    assert trained[-1]["lr"] == 0.0
    assert all(row["tokens_per_second"] > 0 and row["norm"] > 0 for row in trained)
    judged = rows(finished.out, "valid")
    assert [row["step"] for row in judged] == [8, 16, 24]
    assert {score["direction"] for score in judged[0]["scores"]} == {"en-zh", "zh-en"}
    assert "tok:zh" in judged[0]["scores"][0]["bleu_signature"]
    assert 0 < judged[-1]["loss"] < judged[0]["loss"]


def test_the_kept_weights_are_the_best_of_three(finished: Result) -> None:
    final = rows(finished.out, "final")
    assert len(final) == 1
    assert final[0]["kept"] == finished.kept in ("last", "best", "averaged")
    judged = [row["loss"] for row in rows(finished.out, "valid")]
    translator = Translator.load(finished.out)
    run = Run.load(finished.out / "run.toml")
    found = evaluate(translator.model, translator.tokenizer, read_split(run.data).valid[:4])
    assert [score.to_dict() for score in found] == finished.scores["scores"]
    assert finished.scores["loss"] <= judged[-1] + 1e-6 or finished.kept != "last"


def test_a_folder_in_use_is_refused(finished: Result) -> None:
    with pytest.raises(ValueError, match=r"out: not empty; give another --out, or --resume"):
        go(finished.out.parent)
    (finished.out.parent / "file").touch()
    with pytest.raises(ValueError, match="expected a folder for the run, got a file"):
        go(finished.out.parent, "file")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 4}, "made with another seed; expected 4, got 3"),
        ({"model__dim": 32}, "made with another spec"),
        ({"data__valid": 13}, "made with another corpus"),
        ({"batch__tokens": 260}, "made with another batch"),
    ],
)
def test_resuming_another_run_is_refused(finished: Result, change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        go(finished.out.parent, resume=True, **change)
    assert "\n" not in str(caught.value)


def test_resuming_a_finished_run_changes_nothing(finished: Result) -> None:
    before = {path: path.read_bytes() for path in finished.out.rglob("*.safetensors")}
    lines = len(read_rows(finished.out / "metrics.jsonl"))
    assert go(finished.out.parent, resume=True).step == 24
    assert {path: path.read_bytes() for path in finished.out.rglob("*.safetensors")} == before
    assert len(read_rows(finished.out / "metrics.jsonl")) == lines


def test_early_stopping_counts_evaluations_without_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = iter([1.0, 3.0, 2.0, 3.0, *[0.0] * 9])

    def judge(*_: object) -> Verdict:
        return Verdict((next(scores), 0.0), {"loss": 1.0, "scores": [], "seconds": 0.0}, "")

    monkeypatch.setattr(loop, "judge", judge)
    monkeypatch.setattr(finish, "judge", judge)
    done = go(tmp_path, training__evaluate_every=2, training__patience=2)
    assert done.step == 8
    assert [row["step"] for row in rows(done.out, "valid")] == [2, 4, 6, 8]
    assert "step-00000004" in os.listdir(done.out / "checkpoints")
    assert go(tmp_path, resume=True, training__evaluate_every=2, training__patience=2).step == 8


def test_a_loss_that_is_not_finite_stops_with_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "rate", lambda step, *_: math.inf if step == 3 else 0.01)
    with pytest.raises(ValueError, match=r"step 4: loss nan .* not finite; lower optimizer.lr"):
        go(tmp_path)


def test_no_validation_pairs_keep_the_average_of_the_last(tmp_path: Path) -> None:
    done = go(tmp_path, data__valid=0, training__steps=6, training__save_every=2)
    assert (done.kept, done.scores) == ("averaged", {})
    assert (done.out / "model.safetensors").is_file()


def test_examples_longer_than_the_model_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run.load(lay(tmp_path), [("model.length", "11"), ("training.steps", "2")])
    train(run, tmp_path / "out", threads=1)
    said = capsys.readouterr().err
    assert "examples longer than 11 tokens left out" in said
    assert "step 2/2  loss" in said


def test_choosing_by_loss_and_one_direction(tmp_path: Path) -> None:
    changes = {"training__choose": "loss", "data__directions": "forward", "training__steps": 16, "batch__accumulate": 2}
    done = go(tmp_path, **changes)
    assert [score["direction"] for score in done.scores["scores"]] == ["en-zh"]
    assert done.kept in ("last", "averaged")
    assert weights.load(done.out).spec.decoder.embedding.vocab == 330


def test_control_c_saves_and_the_resumed_run_ends_the_same(
    finished: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = loop.update

    def update(*arguments: Any, **named: Any) -> Any:
        if len(calls := seen) == 9:
            os.kill(os.getpid(), signal.SIGINT)
        calls.append(1)
        return real(*arguments, **named)

    seen: list[int] = []
    monkeypatch.setattr(loop, "update", update)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match="step 10"):
        go(tmp_path)
    assert signal.getsignal(signal.SIGINT) is handler
    assert "step-00000010" in os.listdir(tmp_path / "out" / "checkpoints")
    monkeypatch.undo()
    done = go(tmp_path, resume=True)
    assert done.kept == finished.kept
    assert (done.out / "model.safetensors").read_bytes() == (finished.out / "model.safetensors").read_bytes()


def test_the_model_must_fit_the_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"model.vocab: 300 is less than the tokenizer's 330"):
        go(tmp_path, "a", model__vocab=300)
    with pytest.raises(ValueError, match=r"model: vaswani: no argument 'dimm'; did you mean dim"):
        go(tmp_path, "b", model__dimm=300)
    run = Run.load(lay(tmp_path))
    with pytest.raises(ValueError, match=r"model.name: missing; name one of "):
        train(replace(run, model=ModelPart()), tmp_path / "d", progress=False)
    with pytest.raises(ValueError, match=r"model.spec: cannot read"):
        train(replace(run, model=ModelPart(spec="none.json")), tmp_path / "c", progress=False)
