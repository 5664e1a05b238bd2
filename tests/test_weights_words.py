"""Dtypes and devices may be given by their words, wherever a model is loaded, saved or converted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import oneblock
from oneblock.weights import read_foreign, read_hub
from oneblock.weights.convert import convert
from oneblock.zoo import named

WORDS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "auto": torch.float16}


@pytest.fixture(params=["oneblock", "hf", "foreign"])
def half(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A model stored in float16, in each kind of folder that `load` reads."""
    folder = tmp_path / "half"
    if request.param == "foreign":
        folder.mkdir()
        tensors = torch.nn.TransformerEncoder(
            torch.nn.TransformerEncoderLayer(8, 2, 12, batch_first=True), 1
        ).state_dict()
        save_file({name: x.half() for name, x in tensors.items()}, folder / "model.safetensors")
        (folder / "params.json").write_text('{"heads": 2}')
    else:
        model = oneblock.build(named("llama", dim=8, depth=1, heads=2, hidden=12, vocab=11, length=16))
        oneblock.save(model, folder, "float16", request.param)
    return folder


def kinds(tensors: dict[str, Any]) -> set[torch.dtype]:
    """The dtypes of the blocks; a stack of torch's has a place for an embedding that no file holds."""
    return {x.dtype for name, x in tensors.items() if "layers." in name}


@pytest.mark.parametrize("word", WORDS)
def test_a_dtype_may_be_a_word(half: Path, word: str) -> None:
    assert kinds(oneblock.load(half, dtype=word).state_dict()) == {WORDS[word]}
    convert(half, half.parent / "new", dtype=word)
    assert kinds(load_file(half.parent / "new" / "model.safetensors")) == {WORDS[word]}


@pytest.mark.parametrize("odd", ["float33", "Float32", "", 16, torch.int8, ["float32"]])
def test_what_is_no_dtype_of_weights_is_refused(half: Path, odd: Any) -> None:
    for function in (
        oneblock.load,
        read_hub,
        read_foreign,
        lambda x, dtype: convert(x, half.parent / "new", dtype=dtype),
    ):
        with pytest.raises(ValueError, match=r"^dtype: no type .* of weights; (did you mean|known)[^\n]*$"):
            function(half, dtype=odd)
    with pytest.raises(ValueError, match=r"^dtype: no type "):
        oneblock.save(oneblock.load(half), half.parent / "new", odd)
    assert not (half.parent / "new").exists()


@pytest.mark.parametrize("there", [True, False], ids=["a GPU", "none"])
def test_auto_is_a_gpu_where_there_is_one(half: Path, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    real = torch.cuda.is_available()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    if there and not real:
        with pytest.raises(ValueError, match=r"^device: 'auto' cannot be used here \([^\n]*; try auto or cpu$"):
            oneblock.load(half, device="auto")
    else:
        found = {x.device.type for x in oneblock.load(half, device="auto").parameters()}
        assert found == {"cuda" if there else "cpu"}


@pytest.mark.parametrize("odd", ["gpu", "cuda:999", "", 3.5, "meta"])
def test_what_is_no_device_is_refused(half: Path, odd: Any) -> None:
    with pytest.raises(ValueError, match=r"^device: .* cannot be used here \([^\n]*; try auto or cpu$"):
        oneblock.load(half, device=odd)


def test_a_device_of_torchs_is_taken_as_it_is(half: Path) -> None:
    assert {x.device for x in oneblock.load(half, device=torch.device("meta")).parameters()} == {torch.device("meta")}
