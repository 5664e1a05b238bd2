"""The verb `export`: a file, the weights of a folder beside it, ONNX; what cannot be done is said in one line."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import oneblock
from exported import HEADS
from exported import run as module_of
from oneblock.cli.export import EXAMPLE
from oneblock.export import onnx
from oneblock.spec import put, to_dict
from test_cli_bad_input import refused, run
from test_families_cached import model_of

SMALL = {"dim": 16, "depth": 2, "heads": 4, "kv_heads": 2, "hidden": 24, "vocab": 17}
WITH_ONNX = pytest.mark.skipif(not all(map(find_spec, onnx.NEEDED)), reason="onnx and onnxscript are not installed")
Said = pytest.CaptureFixture[str]


@pytest.fixture
def model() -> nn.Module:
    return oneblock.build(oneblock.named("llama", **SMALL)).eval()


def logits(file: Path) -> torch.Tensor:
    """What the file's own `load` makes of a text."""
    return module_of(file.read_text(encoding="utf-8"), file.parent).load()(torch.tensor([[3, 4, 5]]))


def test_a_name_gives_a_file(tmp_path: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *EXAMPLE.split()[1:])
    assert (code, out) == (0, "model.py\n")
    assert err.startswith("model.py: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.py"]


def test_arguments_of_a_named_model_may_be_changed(tmp_path: Path, capsys: Said) -> None:
    file = tmp_path / "model.py"
    assert run(capsys, "export", "gpt2", "--size", "dim=24", "--size", "heads=2", "--standalone", file)[0] == 0
    assert "DIM = 24  # " in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["oneblock", "hf"])
def test_a_folder_gives_its_weights_too(model: nn.Module, form: str, tmp_path: Path, capsys: Said) -> None:
    oneblock.save(model, tmp_path / "trained", format=form)
    (tmp_path / "out").mkdir()
    file = tmp_path / "out" / "model.py"
    code, out, _ = run(capsys, "export", tmp_path / "trained", "--standalone", file)
    assert (code, out.split()) == (0, [str(tmp_path / "out" / "model.safetensors"), str(file)])
    torch.testing.assert_close(logits(file), model(torch.tensor([[3, 4, 5]])).logits, rtol=0, atol=1e-5)
    assert file.read_text(encoding="utf-8").startswith('"""trained: ')


def test_a_file_in_our_own_folder_reads_the_weights_that_are_there(
    model: nn.Module, tmp_path: Path, capsys: Said
) -> None:
    oneblock.save(model, tmp_path)
    before = (tmp_path / "model.safetensors").stat()
    code, out, _ = run(capsys, "export", tmp_path, "--standalone", tmp_path / "model.py")
    assert (code, out) == (0, f"{tmp_path / 'model.py'}\n")
    assert (tmp_path / "model.safetensors").stat() == before
    torch.testing.assert_close(logits(tmp_path / "model.py"), model(torch.tensor([[3, 4, 5]])).logits)


def test_a_spec_or_config_file_gives_a_file_without_weights(model: nn.Module, tmp_path: Path, capsys: Said) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(to_dict(model.spec)), encoding="utf-8")
    assert run(capsys, "export", tmp_path / "spec.json", "--standalone", tmp_path / "model.py")[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.py", "spec.json"]


def test_nothing_is_replaced_unless_that_is_wanted(model: nn.Module, tmp_path: Path, capsys: Said) -> None:
    oneblock.save(model, tmp_path / "trained")
    for name in ("model.py", "model.safetensors"):
        (tmp_path / name).write_text("mine", encoding="utf-8")
        assert "--force" in refused(capsys, "export", tmp_path / "trained", "--standalone", tmp_path / "model.py")
        assert [path.read_text(encoding="utf-8") for path in tmp_path.glob("model.*")] == ["mine"]
        (tmp_path / name).unlink()
    (tmp_path / "model.py").write_text("mine", encoding="utf-8")
    assert run(capsys, "export", tmp_path / "trained", "--standalone", tmp_path / "model.py", "--force")[0] == 0
    assert "mine" not in (tmp_path / "model.py").read_text(encoding="utf-8")


def test_weights_under_other_names_are_never_replaced(model: nn.Module, tmp_path: Path, capsys: Said) -> None:
    oneblock.save(model, tmp_path, format="hf")
    line = refused(capsys, "export", tmp_path, "--standalone", tmp_path / "model.py", "--force")
    assert "another folder" in line
    assert not (tmp_path / "model.py").exists()
    oneblock.load(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["gpt2"], "--standalone FILE or --onnx FILE"),
        (["gpt22", "--standalone", "{}/a.py"], "did you mean gpt2"),
        (["gpt2", "--size", "dmi=8", "--standalone", "{}/a.py"], "did you mean dim"),
        (["gpt2", "--standalone", "{}/none/a.py"], "none at"),
        (["gpt2", "--standalone", "{}"], "expected a file to write"),
        (["gpt2", "--standalone", "{}/a.py", "--lines", "99"], "at most 99 lines, this model takes "),
        (["{}", "--standalone", "{}/a.py"], "config.json"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], says: str, tmp_path: Path, capsys: Said) -> None:
    assert says in refused(capsys, "export", *(one.format(tmp_path) for one in arguments))
    assert list(tmp_path.iterdir()) == []


def test_damaged_weights_leave_nothing_behind(model: nn.Module, tmp_path: Path, capsys: Said) -> None:
    oneblock.save(model, tmp_path / "trained")
    path = tmp_path / "trained" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-9])
    assert "cut short" in refused(capsys, "export", tmp_path / "trained", "--standalone", tmp_path / "model.py")
    assert [one.name for one in tmp_path.iterdir()] == ["trained"]


def test_onnx_without_its_packages_is_one_line(tmp_path: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx, "find_spec", lambda _: None)
    line = refused(capsys, "export", "gpt2", "--onnx", tmp_path / "model.onnx", "--standalone", tmp_path / "model.py")
    assert "pip install onnx onnxscript onnxruntime" in line
    assert list(tmp_path.iterdir()) == []


@WITH_ONNX
@pytest.mark.parametrize("name", ["llama", "vaswani", "bert", "t5", "mixtral", "gemma2"])
def test_onnx_gives_the_same_logits(name: str, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = model_of(name).float()
    path = tmp_path / "model.onnx"
    apart = onnx.write_onnx(model.spec, path, model.state_dict())
    assert apart is not None
    assert apart < 1e-5
    assert [one.name for one in tmp_path.iterdir()] == ["model.onnx"]
    answers(runtime, path, model)


@WITH_ONNX
@pytest.mark.parametrize("head", ["pool", "labels of the last", "mean"])
def test_onnx_of_one_answer_per_text_takes_any_number_of_texts(head: str, tmp_path: Path) -> None:
    """torch fixes the batch, without a word, where Python asks a tensor for its `len`."""
    runtime = pytest.importorskip("onnxruntime")
    model = oneblock.build(put(model_of("llama").spec, "head", HEADS[head])).eval()
    onnx.write_onnx(model.spec, tmp_path / "model.onnx", model.state_dict())
    answers(runtime, tmp_path / "model.onnx", model)


def answers(runtime: Any, path: Path, model: nn.Module) -> None:
    """Fail unless the runtime agrees with the written file for other batches and lengths than those of the trace."""
    session = runtime.InferenceSession(path)
    for texts, tokens in ((1, 3), (3, 9)):
        inputs = {name: x.repeat(2, 2)[:texts, :tokens] for name, x in onnx.examples(model.spec).items()}
        (found,) = session.run(None, {name: x.numpy() for name, x in inputs.items()})
        with torch.no_grad():
            ours = onnx.written(model.spec, model.state_dict())(**inputs)
        torch.testing.assert_close(torch.from_numpy(found), ours, rtol=0, atol=1e-5)


def test_onnx_of_a_fixed_size_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Session:
        def __init__(self, *_: object, **__: object) -> None: ...

        def get_inputs(self) -> list[SimpleNamespace]:
            return [
                SimpleNamespace(name="ids", shape=["batch", "length"]),
                SimpleNamespace(name="mask", shape=[2, "n"]),
            ]

    monkeypatch.setattr(onnx, "import_module", lambda _: SimpleNamespace(InferenceSession=Session))
    with pytest.raises(ValueError, match=r"fixed a size that must be free \(mask \[2, 'n'\]\)"):
        onnx.compared(nn.Identity(), {}, tmp_path / "model.onnx")
