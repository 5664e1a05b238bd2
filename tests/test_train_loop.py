"""A whole run: what it leaves behind, when it stops, what it refuses."""

from __future__ import annotations

import json
import math
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from oneblock import weights
from oneblock.generate import Translator
from oneblock.text import Tokenizer
from oneblock.train import Result, Run, evaluate, finish, loop, read_split, train
from oneblock.train.interrupt import Interrupt
from oneblock.train.judge import Verdict
from oneblock.train.log import read_rows
from tiny_run import go, lay


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
        ({"seed": 4}, "made with another seed: seed was 3, is 4; resume with"),
        ({"model__dim": 32}, r"made with another model: encoder\.dim was 16, is 32; decoder\.dim was 16, is 32;"),
        (
            {"model__heads": 4, "model__hidden": 8},
            r"encoder\.layers\.\*\.attention\.heads was 2, is 4; .*; and 2 more;",
        ),
        (
            {"data__valid": 13},
            r"another corpus: training pairs \(.*pairs\.tsv\) and validation pairs \(.*\) changed; resume",
        ),
        ({"batch__tokens": 260}, r"made with another batch: \[batch\] was 250 tokens, .*, is 260 tokens, "),
        ({"tokenizer__dropout": 0.0}, r"made with another bpe dropout: tokenizer\.dropout was 0\.1, is 0\.0; "),
    ],
)
def test_resuming_another_run_is_refused(finished: Result, change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        go(finished.out.parent, resume=True, **change)
    assert "\n" not in str(caught.value)
    assert not re.search("[0-9a-f]{32}", str(caught.value)), "a hash tells nobody anything"


def test_resuming_with_another_tokenizer_in_the_folder_is_refused(tmp_path: Path) -> None:
    done = go(tmp_path, training__steps=2)
    tokenizer = Tokenizer.train(["The cat sees the dog.", "猫看见狗。"], 330, languages=("en", "zh"))
    tokenizer.save(done.out)
    with pytest.raises(ValueError, match=r"made with another corpus: tokenizer\.json changed; resume with"):
        go(tmp_path, resume=True, training__steps=2, model__vocab=330)


def test_a_checkpoint_of_a_version_that_knew_fewer_fields_is_resumed(tmp_path: Path) -> None:
    done = go(tmp_path, training__steps=2)
    folder = done.out / "checkpoints" / "step-00000002"
    state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    state["identity"]["spec"] = "the hash of the same spec with fewer fields"
    (folder / "state.json").write_text(json.dumps(state), encoding="utf-8")
    assert go(tmp_path, resume=True, training__steps=2).step == 2


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


def test_control_c_in_the_final_scoring_stops_it_and_resuming_finishes(
    finished: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def judge(*_: object) -> Verdict:
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("went on")

    run = Run.load(lay(tmp_path))
    monkeypatch.setattr(finish, "judge", judge)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in a shell's background: still ours to obey
    try:
        with pytest.raises(KeyboardInterrupt):
            train(run, tmp_path / "out", dtype="float32")
    finally:
        signal.signal(signal.SIGINT, before)
    assert "interrupted in the final scoring; every checkpoint is kept, --resume finishes" in capsys.readouterr().err
    assert not rows(tmp_path / "out", "final")
    assert (tmp_path / "out" / "checkpoints" / "step-00000024" / "state.json").is_file()
    monkeypatch.undo()
    done = go(tmp_path, resume=True)
    assert (done.kept, done.step) == (finished.kept, 24)
    assert (done.out / "model.safetensors").read_bytes() == (finished.out / "model.safetensors").read_bytes()


def test_a_signal_between_the_last_step_and_the_final_scoring_is_not_lost() -> None:
    with Interrupt() as interrupt:
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupt.at_once()


def test_a_run_folder_is_of_use_from_its_first_save_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = loop._step

    def step(*arguments: Any) -> None:
        real(*arguments)
        if arguments[0].state.step == 1:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(loop, "_step", step)
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path)
    translator = Translator.load(tmp_path / "out")
    saved = load_file(tmp_path / "out" / "checkpoints" / "step-00000001" / "model.safetensors")
    name = "encoder.embedding.token.weight"
    assert torch.equal(translator.model.state_dict()[name], saved[name])


def test_damage_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = loop._step

    def step(*arguments: Any) -> None:
        real(*arguments)
        if arguments[0].state.step == 10:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(loop, "_step", step)
    changes = {"training__steps": 12, "training__evaluate_every": 12}
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, **changes)
    monkeypatch.undo()
    damaged = tmp_path / "out" / "checkpoints" / "step-00000010"
    (damaged / "model.safetensors").write_bytes(b"")
    capsys.readouterr()
    go(tmp_path, resume=True, **changes)
    assert capsys.readouterr().err == f"{damaged}: model.safetensors is damaged (its sha256 differs); skipped\n"
