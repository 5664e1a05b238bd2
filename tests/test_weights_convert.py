"""Converting model folders, and saving in several files: the same bits there and back, whole or not at all."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import oneblock
from oneblock.weights import folder as ours_folder
from oneblock.weights import hub, unique, write_hub
from oneblock.weights.convert import convert
from oneblock.weights.folder import save_pretrained
from oneblock.zoo import named
from specs import language_model

SMALL = {"dim": 8, "depth": 2, "heads": 2, "hidden": 12, "vocab": 11, "length": 16}
SIDE = {"tokenizer.json": b'{"version": "1.0"}', "merges.txt": b"#version\r\na b\n", "generation_config.json": b"{}"}
IDS = torch.tensor([[3, 4, 5, 6]])


def model(name: str = "gpt2", seed: int = 0, **more: Any) -> nn.Module:
    torch.manual_seed(seed)
    return oneblock.build(named(name, **SMALL, **more)).eval()


def equal(a: nn.Module, b: nn.Module) -> bool:
    one, two = unique(a), unique(b)
    return one.keys() == two.keys() and all(x.dtype == two[n].dtype and torch.equal(x, two[n]) for n, x in one.items())


def listing(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    save_pretrained(model(), tmp_path / "source")
    for name, data in SIDE.items():
        (tmp_path / "source" / name).write_bytes(data)
    (tmp_path / "source" / "README.md").write_text("stays where it is")
    return tmp_path / "source"


def test_there_and_back_with_the_tokenizers_files(source: Path, tmp_path: Path) -> None:
    first = convert(source, tmp_path / "here")
    second = convert(tmp_path / "here", tmp_path / "back", "hf")
    assert (first.model, second.model) == ("Transformer", "GPT2LMHeadModel")
    assert first.parameters == oneblock.parameters(model().spec)
    assert first.bytes == sum(path.stat().st_size for path in (tmp_path / "here").iterdir())
    assert list(first.files) == listing(tmp_path / "here") == sorted([*SIDE, "spec.json", "model.safetensors"])
    assert listing(tmp_path / "back") == sorted([*SIDE, "config.json", "model.safetensors"])
    for there in ("here", "back"):
        assert equal(oneblock.load(tmp_path / there, dtype=None), model())
        assert all((tmp_path / there / name).read_bytes() == data for name, data in SIDE.items())
    a, b = (load_file(tmp_path / there / "model.safetensors") for there in ("source", "back"))
    assert a.keys() == b.keys()
    assert all(torch.equal(x, b[name]) for name, x in a.items())


@pytest.mark.parametrize("stored", [torch.float32, torch.bfloat16, torch.float16])
def test_the_stored_dtype_is_kept_unless_another_is_asked_for(tmp_path: Path, stored: torch.dtype) -> None:
    oneblock.save(model(), tmp_path / "a", stored)
    assert convert(tmp_path / "a", tmp_path / "b", "hf").dtype == str(stored).removeprefix("torch.")
    assert json.loads((tmp_path / "b" / "config.json").read_text())["dtype"] == str(stored).removeprefix("torch.")
    convert(tmp_path / "b", tmp_path / "c", dtype=torch.bfloat16)
    assert equal(oneblock.load(tmp_path / "c", dtype=None), oneblock.load(tmp_path / "b", dtype=torch.bfloat16))


def test_numbers_that_are_none_come_along(tmp_path: Path) -> None:
    odd = model()
    with torch.no_grad():
        odd.layers[0].attention.q.weight[0] = torch.tensor([torch.nan, torch.inf, -0.0, 1e-45, 1, 2, 3, 4])
    oneblock.save(odd, tmp_path / "a")
    convert(tmp_path / "a", tmp_path / "b", "hf")
    found = oneblock.load(tmp_path / "b").layers[0].attention.q.weight[0]
    assert torch.equal(found.view(torch.int32), odd.layers[0].attention.q.weight[0].view(torch.int32))


def test_files_without_a_config(tmp_path: Path) -> None:
    torch.manual_seed(0)
    stack = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, batch_first=True), 1)
    save_file(stack.state_dict(), tmp_path / "stack.safetensors")
    convert(tmp_path / "stack.safetensors", tmp_path / "b", layout="torch", sizes={"heads": 2})
    x = torch.randn(1, 4, 8)
    found = oneblock.load(tmp_path / "b")(inputs_embeds=x).encoder_outputs.x
    assert torch.allclose(found, stack.eval()(x), atol=1e-5)


@pytest.mark.parametrize("what", ["a file", "a folder"])
def test_what_is_there_stays(source: Path, tmp_path: Path, what: str) -> None:
    target = tmp_path / "there"
    if what == "a file":
        target.write_text("mine")
    else:
        target.mkdir()
        (target / "mine").write_text("mine")
    before = listing(tmp_path)
    with pytest.raises(ValueError, match="is there already and not empty; name a new folder"):
        convert(source, target)
    assert listing(tmp_path) == before


def test_an_empty_folder_is_filled(source: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    convert(source, tmp_path / "empty")
    assert "spec.json" in listing(tmp_path / "empty")


@pytest.mark.parametrize("there", ["new", "a/b"])
def test_the_source_is_only_read(source: Path, tmp_path: Path, there: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = listing(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=f"^{source.name}/{there}: lies in {source.name}, which is only read; name a"):
        convert(source.name, Path(source.name, there))
    assert listing(tmp_path) == before


def full(*_args: object, **_rest: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("where", ["weights", "copy", "verify", "rename"])
def test_a_conversion_that_fails_leaves_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    code = import_module("oneblock.weights.convert")
    if where == "verify":
        monkeypatch.setattr(code, "load", lambda path, **_: model(seed=int(path != source)))
    elif where == "weights":
        monkeypatch.setattr(ours_folder, "save_file", full)
    else:
        monkeypatch.setattr(*((code.shutil, "copyfile") if where == "copy" else (os, "replace")), full)
    with pytest.raises((ValueError, OSError), match=r"did not come back as it was|No space left") as error:
        code.convert(source, tmp_path / "new")
    assert "\n" not in str(error.value)
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == [source.name]
    assert equal(oneblock.load(source), model())


def test_the_command_line(source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    main = import_module("oneblock.cli.main")
    monkeypatch.setitem(main.VERBS, "convert", "")

    def run(*arguments: object) -> tuple[Any, str, str]:
        with pytest.raises(SystemExit) as left:
            main.main(["convert", *map(str, arguments)])
        return (left.value.code, *capsys.readouterr())

    code, out, err = run(source, source.parent / "a", "--format", "hf", "--dtype", "bfloat16", "--json")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert (said["model"], said["dtype"], said["format"]) == ("GPT2LMHeadModel", "bfloat16", "hf")
    code, out, err = run(source, source.parent / "b")
    assert code == 0
    assert "read again: every tensor equal bit for bit" in out
    assert "Transformer" in out
    for wrong, word in (
        (["--dtype", "float33"], "did you mean float32?"),
        (["--format", "onnx"], "--format: expected one of oneblock, hf"),
        (["--format", "hf", "--family", "gtp2"], "did you mean gpt2?"),
        (["--layout", "nanno"], "did you mean nano?"),
        (["--size", "heads"], "--size: expected NAME=VALUE such as heads=12"),
    ):
        code, out, err = run(source, source.parent / "c", *wrong)
        assert (code, out) == (2, "")
        assert word in err
    assert not (source.parent / "c").exists()


def test_several_files_are_opened_by_transformers_and_by_us(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="the reference library is not installed")
    one = model("llama")
    write_hub(one, tmp_path, most=1500)
    shards = sorted(tmp_path.glob("model-*.safetensors"))
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert len(shards) > 2
    assert {path.name for path in shards} == set(index["weight_map"].values())
    assert index["metadata"]["total_size"] == sum(x.nbytes for path in shards for x in load_file(path).values())
    assert not (tmp_path / "model.safetensors").exists()
    assert equal(oneblock.load(tmp_path), one)
    theirs, info = transformers.LlamaForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"] | info["unexpected_keys"]
    assert torch.allclose(theirs(IDS).logits, one(IDS).logits, atol=1e-6)


def test_the_size_in_the_index_is_of_what_is_written(tmp_path: Path) -> None:
    write_hub(model("llama"), tmp_path, torch.bfloat16, most=700)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == 2 * oneblock.parameters(model("llama").spec)


@pytest.mark.parametrize(("before", "after"), [(10**9, 1500), (1500, 10**9), (700, 1500)])
def test_weights_of_the_model_before_are_not_left_beside_the_new(tmp_path: Path, before: int, after: int) -> None:
    write_hub(model("llama"), tmp_path, most=before)
    new = model("llama", seed=1)
    write_hub(new, tmp_path, most=after)
    assert equal(oneblock.load(tmp_path), new)
    assert set(listing(tmp_path)) == {"config.json"} | (
        {"model.safetensors"}
        if after > 10**6
        else {"model.safetensors.index.json"}
        | set(json.loads((tmp_path / "model.safetensors.index.json").read_text())["weight_map"].values())
    )


def test_a_folder_of_ours_may_become_one_of_the_hubs(tmp_path: Path) -> None:
    oneblock.save(oneblock.build(language_model()), tmp_path)
    new = model("llama", seed=1)
    save_pretrained(new, tmp_path)
    assert equal(oneblock.load(tmp_path), new)


def nth(number: int, f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that fails for lack of space when called for the `number`th time, half its work done."""
    calls = []

    def wrapped(tensors: Any, path: Path, **rest: Any) -> None:
        calls.append(1)
        if len(calls) == number:
            Path(path).write_bytes(b"half of it")
            full()
        f(tensors, path, **rest)

    return wrapped


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("most", [1500, 10**9], ids=["several files", "one file"])
def test_B82_a_full_disk_leaves_the_model_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, most: int
) -> None:
    old = model("llama")
    write_hub(old, tmp_path, most=most)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(hub, "save_file", nth(number if most < 10**9 else 1, hub.save_file))
    with pytest.raises(OSError, match=r"^\[Errno 28\] cannot write [^;]*: No space left on device;") as error:
        write_hub(model("llama", seed=1), tmp_path, most=most)
    assert str(error.value).count("cannot write") == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert equal(oneblock.load(tmp_path), old)


def test_the_benchmark_of_loading_compares_equal_answers_and_holds_little(tmp_path: Path) -> None:
    load = import_module("benchmarks.load")
    save_pretrained(model("llama", seed=3), tmp_path)
    pytest.importorskip("transformers", reason="the reference library is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, "IDS", [[5, 6, 7]])
        ours, theirs = (load.alone(name, str(tmp_path)) for name in (load.OURS, load.THEIRS))
    assert ours.keys() == theirs.keys()
    assert ours["check"] == pytest.approx(theirs["check"], abs=1e-6)
    assert 0 < ours["load_s"] < ours["first_s"]
