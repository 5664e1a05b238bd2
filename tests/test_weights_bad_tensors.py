"""Damaged and hostile files of tensors: each is refused in one clear line, or gives the numbers that were saved."""

from __future__ import annotations

import json
import pickle
import struct
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import oneblock
from bad_files import CONFIG, WEIGHTS, Q, model, parts, rebuilt, refused
from oneblock.weights import unique, write_hub


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A good model folder in one file."""
    write_hub(model(), tmp_path / "m")
    return tmp_path / "m"


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
    assert "cut short" not in refused(folder, WEIGHTS, f"'{Q}' stands twice", "do not trust this file")


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "..", "a\\..\\b", "a\0b"])
def test_names_that_climb_or_are_none(folder: Path, name: str) -> None:
    header, data = parts(folder / WEIGHTS)
    header[name] = header.pop(Q)
    (folder / WEIGHTS).write_bytes(rebuilt(header, data))
    assert "cut short" not in refused(folder, WEIGHTS, "is no name of a tensor", "do not trust this file")


def test_a_pickle_in_the_place_of_safetensors(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes(pickle.dumps({"a": list(range(100))}))
    refused(folder, WEIGHTS, "no whole safetensors file")


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
