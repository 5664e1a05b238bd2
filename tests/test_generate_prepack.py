"""Weights laid out for decoding give the same numbers; what is prepacked cannot be saved."""

from __future__ import annotations

import copy
from importlib import import_module
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from oneblock import weights
from oneblock.bricks import EncoderDecoder, build_model
from oneblock.generate import generate, prepack
from oneblock.zoo import FAMILIES, named
from specs import language_model
from test_families_cached import SMALL, TINY

ROOM = import_module("oneblock.generate.prepack")


def logits(model: Any, ids: Tensor) -> Tensor:
    if isinstance(model, EncoderDecoder):
        return model(ids, decoder_input_ids=ids.flip(1)).logits
    return model(ids).logits


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=4)
@given(batch=st.integers(1, 3), length=st.integers(1, 5), rows=st.sampled_from([1, 4]), seed=st.integers(0, 99))
def test_every_family_gives_the_same_logits(
    name: str, dtype: torch.dtype, blocks: bool, batch: int, length: int, rows: int, seed: int
) -> None:
    torch.manual_seed(seed)
    model = build_model(named(name, **(SMALL | TINY.get(name, {})))).eval().to(dtype)
    ids = torch.randint(5, 17, (batch, length))
    with torch.inference_mode(), pytest.MonkeyPatch.context() as patch:
        if not blocks:
            patch.setattr(ROOM, "BLOCKS", False)
        expected = logits(model, ids)
        layers = sum(type(module) is nn.Linear for module in model.modules())
        assert prepack(model, rows) is model
        left = sum(type(module) is nn.Linear for module in model.modules())
        assert layers
        assert left == (layers if dtype == torch.bfloat16 and not (blocks and ROOM.BLOCKS) else 0)
        close = {torch.float32: 1e-5, torch.bfloat16: 0.05}[dtype]
        torch.testing.assert_close(logits(model, ids), expected, rtol=close, atol=close)


@pytest.mark.parametrize("beams", [1, 3])
def test_the_same_tokens_are_written(beams: int) -> None:
    model = build_model(language_model()).eval()
    prompts = [[4, 5, 6, 7], [8, 9], [10]]
    options: dict[str, Any] = {"max_new_tokens": 20, "eos_token_id": [], "num_beams": beams}
    expected = generate(model, prompts, **options)
    for rows in (1, 3):
        found = generate(prepack(copy.deepcopy(model), rows), prompts, **options)
        assert torch.equal(found, expected)


def test_a_compiled_step_takes_them_as_they_are() -> None:
    model = build_model(language_model()).eval()
    expected = generate(model, [[4, 5, 6]], max_new_tokens=9, eos_token_id=[])
    for rows in (1, 3):
        torch._dynamo.reset()
        ready = prepack(copy.deepcopy(model), rows)
        found = generate(ready, [[4, 5, 6]], max_new_tokens=9, eos_token_id=[], cache="static", compile="aot_eager")
        assert torch.equal(found, expected)


def test_a_prepacked_model_is_not_saved(tmp_path: Any) -> None:
    model = prepack(build_model(language_model()))
    with pytest.raises(ValueError, match=r"^state_dict: the model was prepacked for decoding; load it again [^\n]*$"):
        weights.save(model, tmp_path / "out")
    assert not (tmp_path / "out" / "model.safetensors").exists()


def test_no_rows_and_other_devices() -> None:
    with pytest.raises(ValueError, match=r"^batch: expected at least 1 row, got 0$"):
        prepack(nn.Linear(2, 2), 0)
    elsewhere = nn.Sequential(nn.Linear(2, 2, device="meta"))
    assert type(prepack(elsewhere)[0]) is nn.Linear


@pytest.mark.skipif(not ROOM.BYTES, reason="this torch has no products of int8")
@pytest.mark.parametrize("name", FAMILIES)
def test_bytes_are_close_to_the_weights_they_round(name: str) -> None:
    torch.manual_seed(0)
    model = build_model(named(name, **(SMALL | TINY.get(name, {})))).eval()
    ids = torch.randint(5, 17, (2, 6))
    with torch.inference_mode():
        expected = logits(model, ids)
        found = logits(prepack(model, 2, "int8"), ids)
    assert 0 < (found - expected).norm() / expected.norm() < 0.1


@pytest.mark.skipif(not ROOM.BYTES, reason="this torch has no products of int8")
def test_a_byte_is_a_step_of_the_largest_weight_in_its_row() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(8, 4)
    layer.weight.data[0] = 0
    layer.weight.data[1] *= 1000
    ready = prepack(nn.Sequential(copy.deepcopy(layer)), dtype=torch.int8)
    with torch.inference_mode():
        rounded = ready(torch.eye(8)).T - layer.bias[:, None]
    step = layer.weight.abs().amax(1) / 127
    assert ((rounded - layer.weight).abs() <= step[:, None] * (0.51 + 127 / 254)).all()


def test_other_dtypes_and_bytes_elsewhere() -> None:
    with pytest.raises(ValueError, match=r"^dtype: expected int8 or None, got torch.float16; load the model [^\n]*$"):
        prepack(nn.Linear(2, 2), dtype=torch.float16)
    with pytest.raises(ValueError, match=r"^dtype: int8 needs linear layers on an x86 CPU[^\n]*$"):
        prepack(nn.Sequential(nn.Linear(2, 2, device="meta")), dtype="int8")
