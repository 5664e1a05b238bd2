"""A model folder: what is saved comes back, ties stay ties, and whatever is not a whole model says so in one line."""

from __future__ import annotations

import errno
import json
import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

import oneblock
from oneblock.bricks import EncoderDecoder
from oneblock.spec import put
from oneblock.weights import fill, folder, load, read_spec, read_tensors, save, unique
from specs import exact, ids, language_model, models, pairs, same, translator


def logits(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    rest = {"decoder_input_ids": x} if isinstance(model, EncoderDecoder) else {}
    return model(x, **rest).logits


@settings(max_examples=15)
@given(models() | pairs())
def test_what_is_saved_comes_back(spec: Any) -> None:
    model, x = exact(spec), ids(2, 4)
    with tempfile.TemporaryDirectory() as there:
        save(model, there)
        assert sorted(os.listdir(there)) == ["model.safetensors", "spec.json"]
        assert read_spec(Path(there)) == spec
        again = load(there, dtype=None)
    assert not again.training
    assert again.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(tensor, again.state_dict()[name]) for name, tensor in model.state_dict().items())
    same(logits(again, x), logits(model, x), 1e-12)  # mapped memory is aligned otherwise, so sums may round otherwise


def test_the_public_names_are_these(tmp_path: Path) -> None:
    model = oneblock.build(translator())
    oneblock.save(model, tmp_path / "a" / "b")
    assert oneblock.load(tmp_path / "a" / "b").spec == translator()


def test_B29_tied_matrices_are_stored_once_and_come_back_as_one(tmp_path: Path) -> None:
    model, x = exact(translator()), ids(2, 4)
    save(model, tmp_path)
    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        assert sum("embedding.token" in key or "head.out.weight" in key for key in file.keys()) == 1  # noqa: SIM118
        assert file.metadata() == {"format": "pt"}
    again = load(tmp_path, dtype=None)
    table, head = again.decoder.embedding.token.weight, again.decoder.head.out.weight
    assert table is head
    assert again.encoder.embedding.token.weight is table
    assert table.data_ptr() == head.data_ptr()
    same(logits(again, x), logits(model, x), 0)
    before = table.detach().clone()
    again.train()(x, labels=x).loss.backward()
    torch.optim.SGD(again.parameters(), 0.1).step()
    assert not torch.equal(table, before)
    assert again.decoder.head.out.weight is again.encoder.embedding.token.weight


def test_B29_matrices_that_are_not_tied_stay_apart(tmp_path: Path) -> None:
    model = exact(put(put(translator(), "share", False), "decoder.head.tied", False))
    save(model, tmp_path)
    again = load(tmp_path, dtype=None)
    tables = [again.encoder.embedding.token, again.decoder.embedding.token, again.decoder.head.out]
    assert len({table.weight.data_ptr() for table in tables}) == 3
    for name, parameter in again.named_parameters():
        same(parameter, model.get_parameter(name), 0)
        assert parameter.requires_grad


class Wrapped(nn.Module):
    """As DistributedDataParallel keeps its model."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module


def test_B31_keys_are_the_same_compiled_or_wrapped_or_not(tmp_path: Path) -> None:
    model, x = exact(translator()), ids(2, 4)
    compiled = torch.compile(model, backend="eager")
    assert any(key.startswith("_orig_mod.") for key in compiled.state_dict())
    for n, one in enumerate((model, compiled, Wrapped(model), Wrapped(compiled))):
        save(one, tmp_path / str(n))
        with safe_open(tmp_path / str(n) / "model.safetensors", "pt") as file:
            assert set(file.keys()) == set(unique(model))
        same(logits(load(tmp_path / str(n), dtype=None), x), logits(model, x), 0)


def test_B31_files_with_a_wrappers_keys_are_read(tmp_path: Path) -> None:
    model, x = exact(language_model()), ids(2, 4)
    save(model, tmp_path)
    prefixed = {f"module._orig_mod.{name}": tensor for name, tensor in unique(model).items()}
    save_file(prefixed, tmp_path / "model.safetensors")
    same(logits(load(tmp_path, dtype=None), x), logits(model, x), 0)
    other = exact(language_model(), seed=1)
    fill(Wrapped(torch.compile(other, backend="eager")), unique(model))
    same(logits(other, x), logits(model, x), 0)


def test_dtype_of_the_file_and_of_the_model_are_chosen_apart(tmp_path: Path) -> None:
    model = exact(language_model())
    save(model, tmp_path, dtype=torch.bfloat16)
    assert {x.dtype for x in load_file(tmp_path / "model.safetensors").values()} == {torch.bfloat16}
    for asked, got in ((torch.float32, torch.float32), (None, torch.bfloat16), (torch.float64, torch.float64)):
        again = load(tmp_path, dtype=asked)
        assert {p.dtype for p in again.parameters()} == {got}
        for name, parameter in again.named_parameters():
            same(parameter.double(), model.get_parameter(name).bfloat16().double(), 0)
    assert {p.dtype for p in load(tmp_path).parameters()} == {torch.float32}


def test_a_loaded_model_may_be_saved_over_its_own_files(tmp_path: Path) -> None:
    save(exact(language_model()), tmp_path)
    model, x = load(tmp_path, dtype=None), ids(2, 4)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1
    expected = logits(model, x)
    save(model, tmp_path)
    same(logits(model, x), expected, 0)
    same(logits(load(tmp_path, dtype=None), x), expected, 0)


def spoil(there: Path, how: str) -> None:
    """Turn a good model folder into a bad one."""
    spec, weights = there / "spec.json", there / "model.safetensors"
    tensors = load_file(weights)
    name = "layers.0.attention.q.weight"
    if how == "no spec":
        spec.unlink()
    elif how == "no weights":
        weights.unlink()
    elif how == "no json":
        spec.write_text("{")
    elif how == "binary spec":
        spec.write_bytes(b"\xff\xfe\x00")
    elif how == "nested deeply":
        spec.write_text("[" * 100_000)
    elif how == "nested":
        spec.write_text("[" * 600 + "]" * 600)
    elif how == "a key twice":
        spec.write_text('{"type": "Model", "dim": 8, "dim": 16}')
    elif how == "unknown key":
        spec.write_text(json.dumps(json.loads(spec.read_text()) | {"dims": 3}))
    elif how == "unknown type":
        spec.write_text(json.dumps({"type": "Modell"}))
    elif how == "no spec of a model":
        spec.write_text("3")
    elif how == "cut short":
        weights.write_bytes(weights.read_bytes()[:-1])
    elif how == "cut in the header":
        weights.write_bytes(weights.read_bytes()[:20])
    elif how == "empty":
        weights.write_bytes(b"")
    elif how == "text":
        weights.write_text("hello, this is no model at all")
    elif how == "pickle":
        weights.write_bytes(pickle.dumps({"a": 1}))
    elif how == "missing":
        save_file({key: x for key, x in tensors.items() if key != name}, weights)
    elif how == "foreign":
        save_file(tensors | {"layers.0.attention.quarry.weight": torch.zeros(2)}, weights)
    elif how == "shape":
        save_file(tensors | {name: torch.zeros(3, 16)}, weights)


SPOILT = {
    "no spec": "spec.json: not there; a model folder holds spec.json or config.json, and model.safetensors",
    "no weights": "model.safetensors: not there",
    "no json": "spec.json:1: expected JSON, got something else",
    "binary spec": "spec.json: expected JSON in UTF-8, got",
    "nested deeply": "spec.json: expected JSON, got one nested too deeply",
    "nested": "spec.json: expected JSON, got one nested too deeply",
    "a key twice": "spec.json: expected JSON, got one that cannot be meant (key 'dim' stands twice in one object)",
    "unknown key": "spec.json: spec.dims: Model has no such key; did you mean dim?",
    "unknown type": "spec.json: spec.type: 'Modell' is no type of a spec; did you mean Model?",
    "no spec of a model": "spec.json: expected a Model or a Seq2Seq, got int",
    "cut short": "model.safetensors: no whole safetensors file",
    "cut in the header": "model.safetensors: no whole safetensors file",
    "empty": "model.safetensors: no whole safetensors file",
    "text": "model.safetensors: no whole safetensors file",
    "pickle": "model.safetensors: no whole safetensors file",
    "missing": "model.safetensors: layers.0.attention.q.weight is missing; did you mean",
    "foreign": "layers.0.attention.quarry.weight belongs to no parameter of this spec; did you mean",
    "shape": "layers.0.attention.q.weight: expected shape (16, 16), got (3, 16)",
}


@pytest.mark.parametrize("how", SPOILT)
def test_what_is_no_whole_model_says_so_in_one_line(tmp_path: Path, how: str) -> None:
    save(exact(language_model()), tmp_path)
    spoil(tmp_path, how)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        load(tmp_path)
    assert SPOILT[how] in str(error.value)
    assert "\n" not in str(error.value)
    assert str(tmp_path) in str(error.value)


def test_a_spec_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    save(exact(language_model()), tmp_path)
    (tmp_path / "spec.json").write_text((tmp_path / "spec.json").read_text(), encoding="utf-8-sig")
    assert load(tmp_path).spec == language_model()


def test_no_folder_or_a_file_instead_of_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a model folder, found nothing there"):
        load(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="expected a model folder, found a file there"):
        load(tmp_path / "file")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pth", "last.ckpt", "x.pkl"])
def test_pickles_are_never_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(pickle.dumps({}))
    with pytest.raises(ValueError, match="pickles can run code and are never read"):
        read_tensors(tmp_path / name)


def test_a_module_that_is_none_of_ours_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"save: Linear has no spec; expected a model made by oneblock\.build"):
        save(nn.Linear(2, 2), tmp_path / "x")


def full(*_args: object, **_rest: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def half(_tensors: object, path: Path, **_rest: object) -> None:
    Path(path).write_bytes(b"half of it")
    full()


def interrupted(_tensors: object, path: Path, **_rest: object) -> None:
    Path(path).write_bytes(b"half of it")
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["rename", "write", "half", "interrupt"])
@pytest.mark.parametrize("spec", [language_model(), translator()], ids=["same spec", "another spec"])
def test_B82_a_save_that_fails_leaves_the_old_model_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, spec: Any
) -> None:
    model, x = exact(language_model()), ids(2, 4)
    save(model, tmp_path)
    with monkeypatch.context() as patch:
        if where == "rename":
            patch.setattr(os, "replace", full)
        else:
            patch.setattr(folder, "save_file", {"write": full, "half": half, "interrupt": interrupted}[where])
        with pytest.raises((OSError, KeyboardInterrupt)):
            save(exact(spec, seed=1), tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["model.safetensors", "spec.json"]
    same(logits(load(tmp_path, dtype=None), x), logits(model, x), 0)


def test_B82_a_first_save_that_fails_leaves_nothing_that_looks_like_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "save_file", half)
    with pytest.raises(OSError, match="No space left on device"):
        save(exact(language_model()), tmp_path / "new")
    assert not (tmp_path / "new" / "model.safetensors").exists()
    assert not list((tmp_path / "new").glob(".*"))


def test_a_public_config_does_not_outlive_its_weights(tmp_path: Path) -> None:
    model = oneblock.build(oneblock.named("gpt2", dim=8, depth=1, heads=2, hidden=16, vocab=9, length=4))
    oneblock.save(model, tmp_path, format="hf")
    oneblock.save(model, tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["model.safetensors", "spec.json"]
