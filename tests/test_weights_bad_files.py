"""Bad and hostile model folders of the hub's kind: each is refused in one clear line, and nothing else happens."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file, save, save_file

import oneblock
from bad_files import CONFIG, INDEX, WEIGHTS, Q, model, refused
from oneblock.weights import unique, write_hub
from oneblock.zoo import FAMILIES


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A good model folder in one file."""
    write_hub(model(), tmp_path / "m")
    return tmp_path / "m"


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    """A good model folder in several files."""
    write_hub(model(), tmp_path / "s", most=1500)
    assert len(list((tmp_path / "s").glob("model-*.safetensors"))) > 2
    return tmp_path / "s"


def change(path: Path, f: Callable[[Any], Any]) -> None:
    """Rewrite a JSON file."""
    path.write_text(json.dumps(f(json.loads(path.read_text()))))


def edit(folder: Path, **keys: Any) -> None:
    change(folder / CONFIG, lambda config: config | keys)


def test_the_good_folders_load(folder: Path, sharded: Path) -> None:
    for there in (folder, sharded):
        found = unique(oneblock.load(there))
        assert all(torch.equal(x, found[name]) for name, x in unique(model()).items())


def test_a_hub_id_without_a_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def offline(*_: object, **__: object) -> str:
        raise OSError("no route to host\nand more lines")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    refused("someone/model", "someone/model: no such folder", "no route to host", "path of a folder with config.json")


def test_a_hub_id_without_the_hubs_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    refused("someone/model", "no such folder here", "give the path of a folder")


def test_a_folder_that_is_no_model(tmp_path: Path) -> None:
    refused(tmp_path, str(tmp_path), "spec.json or config.json")
    (tmp_path / "notes.txt").write_text("hello")
    refused(tmp_path, "spec.json or config.json")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pth", "last.ckpt"])
@pytest.mark.parametrize("config", [True, False], ids=["with a config", "without"])
def test_only_pickles(folder: Path, name: str, config: bool) -> None:
    (folder / WEIGHTS).unlink()
    (folder / name).write_bytes(pickle.dumps({"a": 1}))
    if not config:
        (folder / CONFIG).unlink()
    refused(folder, name, "pickle", "never read", "convert it")
    refused(folder / name, name, "never read", "convert it")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "expected JSON"),
        ("", "expected JSON"),
        ("[1, 2]", "expected an object of keys and values, got list"),
        ("3", "expected an object of keys and values, got int"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"a":' * 500 + "1" + "}" * 500, "nested too deeply"),
        ('{"model_type": "llama", "model_type": "gpt2"}', "stands twice"),
        ("{}", "model_type: None is no family we know"),
    ],
)
def test_a_config_that_is_none(folder: Path, text: str, word: str) -> None:
    (folder / CONFIG).write_text(text)
    refused(folder, CONFIG, word)


def test_a_config_of_another_encoding(folder: Path) -> None:
    (folder / CONFIG).write_bytes(b"\xff\xfe{}")
    refused(folder, CONFIG, "expected JSON in UTF-8")


def test_an_unknown_family_names_the_nearest_and_the_keys_that_differ(folder: Path) -> None:
    edit(folder, model_type="llamoid", sparkle=3)
    refused(folder, CONFIG, "'llamoid' is no family we know", "most like those of llama", "sparkle")


def test_an_unknown_class(folder: Path) -> None:
    edit(folder, architectures=["LlamaForCausalLN"])
    refused(folder, CONFIG, "'LlamaForCausalLN' is no class of llama we know; did you mean LlamaForCausalLM?")
    for odd in ("LlamaForCausalLM", [[]], 3, {"a": 1}, [None]):
        edit(folder, architectures=odd)
        refused(folder, CONFIG, "architectures")


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("hidden_sise", 8, "hidden_sise: not understood, so what the model computes is not known; did you mean"),
        ("sliding_widow", None, "not understood"),
        ("pretraining_tp", 2, "pretraining_tp: expected 1"),
        ("quantization_config", {"bits": 4}, "quantization_config: expected None"),
        ("hidden_act", "swosh", "'swosh' is none of ours"),
        ("rope_parameters", {"rope_type": "spiral", "rope_theta": 1.0}, "'spiral' is no scaling we know"),
        ("num_hidden_layers", 10**9, "num_hidden_layers: expected at most 10,000 layers"),
        ("num_attention_heads", 3, "heads"),
    ],
)
def test_a_key_that_is_not_understood(folder: Path, key: str, value: Any, word: str) -> None:
    edit(folder, **{key: value})
    refused(folder, CONFIG, word)


ODD = [None, -1, "x", {"a": 1}, [[]], 10**30, 1e308]


@pytest.mark.parametrize("name", ["llama", "gpt2", "bert", "t5", "phi3"])
def test_no_value_of_a_config_ends_in_anything_but_a_line(tmp_path: Path, name: str) -> None:
    family = FAMILIES[name]
    shallow = {key: 1 for key, row in family.config.items() if "depth" in (row.argument or "")}
    for key in [*family.config, *family.fixed, "id2label", "num_labels", "model_type"]:
        for value in ODD:
            (tmp_path / CONFIG).write_text(json.dumps({"model_type": family.kind} | shallow | {key: value}))
            if value is not None or key not in shallow:  # else as many layers as usual, which takes its time
                refused(tmp_path)


def test_a_shard_that_is_missing(sharded: Path) -> None:
    first = sorted(sharded.glob("model-*.safetensors"))[0]
    first.unlink()
    refused(sharded, first.name, f"not there, though {INDEX} lists it")


def test_a_shard_that_lacks_what_the_index_says(sharded: Path) -> None:
    first = sorted(sharded.glob("model-*.safetensors"))[0]
    tensors = load_file(first)
    gone = next(iter(tensors))
    save_file({name: x for name, x in tensors.items() if name != gone} | {"pad": torch.zeros(1)}, first)
    refused(sharded, first.name, f"{gone} is not in it")


def test_a_tensor_in_two_shards(sharded: Path) -> None:
    first, second = sorted(sharded.glob("model-*.safetensors"))[:2]
    both = load_file(second)
    name, x = next(iter(load_file(first).items()))
    second.write_bytes(save(both | {name: x}))
    refused(sharded, second.name, f"{name} is also in {first.name}")


@pytest.mark.parametrize(
    "name",
    ["../elsewhere.safetensors", "/etc/passwd", "a/b.safetensors", "..", "", "a\\b", "a\0b", 3, None, ["x"]],
)
def test_an_index_that_names_files_outside_the_folder(sharded: Path, tmp_path: Path, name: Any) -> None:
    first = sorted(sharded.glob("model-*.safetensors"))[0]
    (tmp_path / "elsewhere.safetensors").write_bytes(first.read_bytes())
    change(sharded / INDEX, lambda index: index | {"weight_map": index["weight_map"] | {Q: name}})
    refused(sharded, INDEX)


def test_an_index_that_lists_a_tensor_twice(sharded: Path) -> None:
    text = (sharded / INDEX).read_text()
    at = text.index('"weight_map": {') + len('"weight_map": {')
    (sharded / INDEX).write_text(text[:at] + f'"{Q}": "model-00001-of-00002.safetensors", ' + text[at:])
    refused(sharded, INDEX, f"key '{Q}' stands twice")


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"weight_map": []}', '{"weight_map": 3}', '{"weight_map": {}}'])
def test_an_index_that_is_none(sharded: Path, text: str) -> None:
    (sharded / INDEX).write_text(text)
    refused(sharded)


@pytest.mark.parametrize("path", [WEIGHTS, CONFIG])
def test_a_folder_where_a_file_should_be(folder: Path, path: str) -> None:
    (folder / path).unlink()
    (folder / path).mkdir()
    refused(folder)


@pytest.mark.parametrize("verb", ["convert", "verify"])
@pytest.mark.parametrize("how", ["nothing", "pickle", "cut", "config"])
def test_the_command_line_says_one_line_and_leaves_with_2(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: str, how: str
) -> None:
    if how == "pickle":
        (folder / WEIGHTS).rename(folder / "pytorch_model.bin")
    elif how == "cut":
        (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-1])
    elif how == "config":
        edit(folder, sparkle=1)
    there = folder.parent / "nowhere" if how == "nothing" else folder
    main = import_module("oneblock.cli.main")
    monkeypatch.setitem(main.VERBS, verb, "")
    target = folder.parent / "new"
    with pytest.raises(SystemExit) as left:
        main.main([verb, str(there), *([str(target)] if verb == "convert" else [])])
    out, err = capsys.readouterr()
    assert (left.value.code, out) == (2, "")
    assert err.startswith("oneblock: ")
    assert err.count("\n") == 1
    assert sorted(path.name for path in folder.parent.iterdir()) == [folder.name]
