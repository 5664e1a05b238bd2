"""Bad and hostile model folders of the hub's kind: each is refused in one clear line, and nothing else happens."""

from __future__ import annotations

import json
import pickle
import struct
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import huggingface_hub
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save, save_file

import oneblock
from oneblock.weights import unique, write_hub
from oneblock.zoo import FAMILIES, named

WEIGHTS, INDEX, CONFIG = "model.safetensors", "model.safetensors.index.json", "config.json"
Q = "model.layers.0.self_attn.q_proj.weight"
SMALL = {"dim": 8, "depth": 2, "heads": 2, "hidden": 12, "vocab": 11, "length": 16}


@cache
def model() -> Any:
    torch.manual_seed(0)
    return oneblock.build(named("llama", **SMALL))


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


def refused(path: object, *words: str) -> str:
    """The one line with which `load` refuses it."""
    with pytest.raises(ValueError) as error:  # noqa: PT011
        oneblock.load(path)
    line = str(error.value)
    assert "\n" not in line
    for word in words:
        assert word in line, line
    return line


def change(path: Path, f: Callable[[Any], Any]) -> None:
    """Rewrite a JSON file."""
    path.write_text(json.dumps(f(json.loads(path.read_text()))))


def edit(folder: Path, **keys: Any) -> None:
    change(folder / CONFIG, lambda config: config | keys)


def rebuilt(header: Any, data: bytes, length: int | None = None) -> bytes:
    """A safetensors file of a header and data as they come."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def parts(path: Path) -> tuple[dict[str, Any], bytes]:
    """(header, data) of a safetensors file."""
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


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


def test_truncated_at_every_place_that_matters(folder: Path) -> None:
    raw = (folder / WEIGHTS).read_bytes()
    length = 8 + struct.unpack("<Q", raw[:8])[0]
    for at in [*range(10), length // 2, length - 1, length, length + 1, (length + len(raw)) // 2, len(raw) - 1]:
        (folder / WEIGHTS).write_bytes(raw[:at])
        refused(folder, WEIGHTS, "no whole safetensors file", "cut short")
    (folder / WEIGHTS).write_bytes(raw + b"\0")
    refused(folder, WEIGHTS, "no whole safetensors file")


@cache
def good() -> tuple[bytes, bytes]:
    """A good config and good weights."""
    with TemporaryDirectory() as there:
        write_hub(model(), Path(there))
        return (Path(there) / CONFIG).read_bytes(), (Path(there) / WEIGHTS).read_bytes()


def opened(raw: bytes) -> None:
    """Either equal tensors come back, or ValueError in one line."""
    with TemporaryDirectory() as there:
        (Path(there) / CONFIG).write_bytes(good()[0])
        (Path(there) / WEIGHTS).write_bytes(raw)
        try:
            found = unique(oneblock.load(there))
        except ValueError as error:
            line = str(error)
            found = None
        if found is None:
            assert "\n" not in line
        else:
            assert all(torch.equal(x, found[name]) for name, x in unique(model()).items())


@settings(max_examples=150)
@given(st.data())
def test_any_bit_flip_of_the_header_is_harmless_or_refused(data: st.DataObject) -> None:
    raw = bytearray(good()[1])
    length = 8 + struct.unpack("<Q", raw[:8])[0]
    at = data.draw(st.integers(0, length - 1) | st.integers(0, 7))
    raw[at] ^= 1 << data.draw(st.integers(0, 7))
    opened(bytes(raw))


@settings(max_examples=30)
@given(st.floats(0, 1, exclude_max=True))
def test_any_truncation_is_refused(share: float) -> None:
    config, weights = good()
    with TemporaryDirectory() as there:
        (Path(there) / CONFIG).write_bytes(config)
        (Path(there) / WEIGHTS).write_bytes(weights[: int(share * len(weights))])
        refused(there, "no whole safetensors file")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["F32", "I64", "", "x", "\0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["dtype", "shape", "a"]), inner),
    max_leaves=6,
)


@settings(max_examples=150)
@given(st.data())
def test_any_value_in_the_header_is_harmless_or_refused(data: st.DataObject) -> None:
    weights = good()[1]
    length = 8 + struct.unpack("<Q", weights[:8])[0]
    header = json.loads(weights[8:length])
    entry = data.draw(st.sampled_from(sorted(header)))
    field = data.draw(st.sampled_from(["dtype", "shape", "data_offsets", ""]))
    if field and entry != "__metadata__":
        header[entry][field] = data.draw(VALUES)
    else:
        header[entry] = data.draw(VALUES)
    opened(rebuilt(header, weights[length:]))


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 2**31, 200_000_000, 0, 1])
def test_an_absurd_length_of_the_header(folder: Path, length: int) -> None:
    header, data = parts(folder / WEIGHTS)
    (folder / WEIGHTS).write_bytes(rebuilt(header, data, length))
    refused(folder, WEIGHTS, "no whole safetensors file")


@pytest.mark.parametrize("how", ["overlap", "beyond", "negative", "backwards", "hole", "infinite", "text", "one"])
def test_offsets_that_cannot_be(folder: Path, how: str) -> None:
    header, data = parts(folder / WEIGHTS)
    begin, end = header[Q]["data_offsets"]
    bad: dict[str, Any] = {
        "overlap": [begin - 4, end - 4], "beyond": [len(data), len(data) + end - begin], "negative": [-end, -begin],
        "backwards": [end, begin], "hole": [begin + 4, end], "infinite": [begin, float("inf")],
        "text": ["0", "4"], "one": [begin],
    }  # fmt: skip
    header[Q]["data_offsets"] = bad[how]
    (folder / WEIGHTS).write_bytes(rebuilt(header, data))
    refused(folder, WEIGHTS, "no whole safetensors file")


@pytest.mark.parametrize("dtype", ["F33", "f32", "", None, 3, "PICKLE"])
def test_a_dtype_that_does_not_exist(folder: Path, dtype: Any) -> None:
    header, data = parts(folder / WEIGHTS)
    header[Q]["dtype"] = dtype
    (folder / WEIGHTS).write_bytes(rebuilt(header, data))
    refused(folder, WEIGHTS, "no whole safetensors file")


@pytest.mark.parametrize("dtype", ["I32", "U32"])
def test_integers_are_no_weights(folder: Path, dtype: str) -> None:
    header, data = parts(folder / WEIGHTS)
    header[Q]["dtype"] = dtype
    (folder / WEIGHTS).write_bytes(rebuilt(header, data))
    refused(folder, "layers.0.attention.q.weight: expected floating-point numbers, got torch.")


def test_a_name_that_stands_twice(folder: Path) -> None:
    header, data = parts(folder / WEIGHTS)
    text = json.dumps(header)
    entry = json.dumps(header[Q])
    (folder / WEIGHTS).write_bytes(rebuilt((text[:-1] + f', "{Q}": {entry}}}').encode(), data))
    refused(folder, WEIGHTS, f"'{Q}' stands twice")


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "..", "a\\..\\b", "a\0b"])
def test_names_that_climb_or_are_none(folder: Path, name: str) -> None:
    header, data = parts(folder / WEIGHTS)
    header[name] = header.pop(Q)
    (folder / WEIGHTS).write_bytes(rebuilt(header, data))
    refused(folder, WEIGHTS, "is no name of a tensor")


def test_a_pickle_in_the_place_of_safetensors(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes(pickle.dumps({"a": list(range(100))}))
    refused(folder, WEIGHTS, "no whole safetensors file")


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


def test_a_tensor_that_is_missing(folder: Path) -> None:
    tensors = load_file(folder / WEIGHTS)
    save_file({name: x for name, x in tensors.items() if name != Q}, folder / WEIGHTS)
    refused(folder, f"{Q} is missing; did you mean")


def test_a_tensor_that_is_left_over(folder: Path) -> None:
    odd = "model.layers.0.self_attn.quarry.weight"
    save_file(load_file(folder / WEIGHTS) | {odd: torch.zeros(2)}, folder / WEIGHTS)
    refused(folder, f"{odd} is not read by anything in this model; did you mean")


@pytest.mark.parametrize("shape", [(8, 9), (8,), (8, 8, 1), ()])
def test_a_tensor_of_another_shape(folder: Path, shape: tuple[int, ...]) -> None:
    save_file(load_file(folder / WEIGHTS) | {Q: torch.zeros(shape)}, folder / WEIGHTS)
    refused(folder, f"layers.0.attention.q.weight: expected shape (8, 8), got {shape}")


def test_numbers_that_are_none_are_loaded_as_they_are(folder: Path) -> None:
    tensors = load_file(folder / WEIGHTS)
    tensors[Q][0, 0], tensors[Q][0, 1] = torch.nan, torch.inf
    save_file(tensors, folder / WEIGHTS)
    found = unique(oneblock.load(folder))["layers.0.attention.q.weight"]
    assert found[0, 0].isnan()
    assert found[0, 1].isinf()


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
