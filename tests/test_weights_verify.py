"""Verify: models agree with transformers brick by brick, and a planted fault is found where it was planted."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="the reference library is not installed")

import torch
from benchmarks.agreement import FAMILIES_FILES  # noqa: F401 - they register their cases
from benchmarks.agreement.cases import CASES
from benchmarks.agreement.measure import reference
from safetensors.torch import load_file, save_file
from torch import Tensor

import oneblock
from oneblock.weights.pairs import Pair
from oneblock.weights.verify import verify
from oneblock.weights.watch import apart
from oneblock.zoo import named
from oneblock.zoo.family import Flip, Fused, Paired

Edit = Callable[[dict[str, Any], dict[str, Tensor]], None]


def saved(there: Path, family: str, index: int = 0) -> Path:
    case = CASES[family]
    reference(case, next(iter(case.classes)), index).save_pretrained(there)
    return there


def copied(there: Path, edit: Edit) -> Path:
    """A copy of a folder with a fault in it, beside it."""
    config, tensors = json.loads((there / "config.json").read_text()), load_file(there / "model.safetensors")
    edit(config, tensors)
    wrong = there.parent / "wrong"
    wrong.mkdir()
    (wrong / "config.json").write_text(json.dumps(config))
    save_file({name: x.contiguous() for name, x in tensors.items()}, wrong / "model.safetensors")
    return wrong


@pytest.mark.parametrize(
    "family", ["llama", "gpt2", "bert", "neox", "gptj", "gemma2", "t5", "olmo2", "qwen3_moe", "bart"]
)
def test_models_agree_brick_by_brick(tmp_path: Path, family: str) -> None:
    found = verify(saved(tmp_path, family))
    assert found.agrees, found
    names = [brick.name for brick in found.bricks]
    assert names[-1] == "output"
    assert any(name.endswith("layers.0") for name in names)
    assert any(name.endswith("attention.q") for name in names)
    assert all(brick.noise > 0 for brick in found.bricks)


def swap(x: dict[str, Tensor], a: str, b: str) -> None:
    x[a], x[b] = x[b], x[a]


def epsilon(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:  # noqa: ARG001
    config["rms_norm_eps"] = 0.01


def theta(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:  # noqa: ARG001
    config["rope_parameters"] = config["rope_parameters"] | {"rope_theta": 100.0}


def gate_and_up(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:  # noqa: ARG001
    swap(tensors, "model.layers.1.mlp.gate_proj.weight", "model.layers.1.mlp.up_proj.weight")


def turned(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:  # noqa: ARG001
    name = "model.layers.1.self_attn.o_proj.weight"
    tensors[name] = tensors[name].T.contiguous()


def activation(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:  # noqa: ARG001
    config["hidden_act"] = "relu"


def one_number(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:  # noqa: ARG001
    tensors["model.layers.1.self_attn.v_proj.weight"][2, 3] += 1e-4


def last_norm(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:  # noqa: ARG001
    tensors["model.norm.weight"][1] *= 1.001


FAULTS: dict[Edit, tuple[str, str | None]] = {
    epsilon: ("layers.0.norms.attention_pre", None),
    theta: ("layers.0.attention", "layers.0.attention.out"),
    gate_and_up: ("layers.1.feedforward.gate", None),
    turned: ("layers.1.attention.out", None),
    activation: ("layers.0.feedforward", "layers.0.feedforward.down"),
    one_number: ("layers.1.attention.v", None),
    last_norm: ("norm", None),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_found_where_it_is(tmp_path: Path, fault: Edit) -> None:
    there = tmp_path / "right"
    config: dict[str, Any] = {"vocab_size": 53, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2}
    transformers = import_module("transformers")
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**config, num_attention_heads=4))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    model.save_pretrained(there)
    assert verify(there).agrees
    found = verify(copied(there, fault), there)
    assert (found.first, found.given) == FAULTS[fault]
    assert not found.bricks[-1].agrees


def test_fused_and_lying_matrices_are_told_apart(tmp_path: Path) -> None:
    def keys(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:  # noqa: ARG001
        name = next(name for name in tensors if name.endswith("h.1.attn.c_attn.weight"))
        tensors[name][:, 16:32] *= 1.01

    there = saved(tmp_path / "right", "gpt2")
    assert verify(copied(there, keys), there).first == "layers.1.attention.k"


def test_a_model_of_ours_is_compared_through_what_save_makes_of_it(tmp_path: Path) -> None:
    spec = named("llama", dim=16, depth=1, heads=2, hidden=24, vocab=31, length=32)
    oneblock.save(oneblock.build(spec), tmp_path)
    assert verify(tmp_path).agrees
    assert verify(tmp_path, ids=[3, 4, 5]).agrees
    assert verify(tmp_path, length=20, seed=3).agrees
    with pytest.raises(ValueError, match=r"ids: expected 0 to 30, got 3 to 31"):
        verify(tmp_path, ids=[3, 31])
    with pytest.raises(ValueError, match=r"length: expected 2 to 32 tokens, got 33"):
        verify(tmp_path, length=33)


def test_a_spec_that_no_family_has_is_said(tmp_path: Path) -> None:
    oneblock.save(oneblock.build(named("vaswani", dim=8, depth=1, heads=2, hidden=16, vocab=9)), tmp_path)
    with pytest.raises(ValueError, match="spec: is of no family whose files we write"):
        verify(tmp_path)


@pytest.mark.parametrize("family", ["gpt2", "bart", "t5", "bert", "qwen3"])
def test_another_architecture_is_said_before_anything_runs(tmp_path: Path, family: str) -> None:
    one, other = saved(tmp_path / "one", "llama"), saved(tmp_path / "other", family)
    for a, b in ((one, other), (other, one)):
        with pytest.raises(ValueError, match=f"^verify: {a} and {b} are not of one architecture: .* is .* and [^\n]*$"):
            verify(a, b)


@pytest.mark.parametrize("odd", [torch.nan, -torch.inf])
def test_numbers_that_are_not_finite_are_refused(tmp_path: Path, odd: float) -> None:
    def planted(_: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        tensors["model.layers.1.mlp.up_proj.weight"][0, 0] = odd

    wrong = copied(saved(tmp_path / "right", "llama"), planted)
    with pytest.raises(
        ValueError, match=r"wrong: layers\.1\.feedforward\.up\.weight holds numbers that are not finite"
    ):
        verify(wrong)


def test_without_the_other_library_one_kind_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ValueError, match="transformers is not installed, and it is what we compare with; pip install"):
        verify(tmp_path)


def test_a_tensor_that_the_other_library_would_draw_is_said(tmp_path: Path) -> None:
    there = saved(tmp_path / "right", "llama")
    name = "model.layers.1.mlp.up_proj.weight"
    wrong = copied(there, lambda _, tensors: tensors.pop(name))
    with pytest.raises(ValueError, match=f"transformers finds no {name} there and would draw it at random"):
        verify(there, wrong)


@pytest.mark.parametrize("row", [Fused("x"), Fused("x", groups=2), Paired("x", 2), Flip("x"), "x"])
@pytest.mark.parametrize("axes", [(3, 5), (3,)])
def test_outputs_are_split_as_the_row_splits_weights(row: Any, axes: tuple[int, ...]) -> None:
    rows = import_module("oneblock.weights.rows")
    weights = [torch.randn(8, 6) for _ in range(2 if isinstance(row, Fused) else 1)]
    (theirs,) = rows.theirs(row, weights)
    x = torch.randn(*axes, 6)
    gave = x @ (theirs if isinstance(row, Flip) else theirs.T)
    for part, weight in zip(Pair((), "x", row, tuple((8, 6) for _ in weights)).parts(gave), weights, strict=True):
        assert torch.allclose(part, x @ weight.T, atol=1e-5)


def test_heads_may_stand_on_either_side_of_the_length() -> None:
    x = torch.randn(2, 5, 3, 4)
    for other in (x.transpose(1, 2), x.flatten(2)):
        assert apart(x, other) == apart(other, x) == 0
        assert apart(x + 1, other) == pytest.approx(1)
    assert apart(x, torch.randn(2, 5, 7)) is None


def test_padding_is_not_compared_and_nan_is() -> None:
    real = torch.tensor([[True, True, False]])
    a, b = torch.zeros(1, 3, 2), torch.tensor([[[0.0, 1], [0, 0], [9, 9]]])
    assert apart(a, b, real) == 1
    assert apart(a.flatten(0, 1), b.flatten(0, 1), real) == 1
    b[0, 0, 0] = torch.nan
    assert apart(a, b, real) != apart(a, b, real)


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    main = import_module("oneblock.cli.main")
    monkeypatch.setitem(main.VERBS, "verify", "")
    there = saved(tmp_path / "right", "llama")
    wrong = copied(there, epsilon)
    capsys.readouterr()

    def run(*arguments: object) -> tuple[Any, str, str]:
        with pytest.raises(SystemExit) as left:
            main.main(["verify", *map(str, arguments)])
        return (left.value.code, *capsys.readouterr())

    code, out, err = run(there, "--lang", "en")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split() == ["brick", "largest", "difference", "noise", "of", "float32", "verdict"]
    assert "No brick is further apart than rounding explains." in out
    code, out, err = run(wrong, "--reference", there, "--lang", "en", "--prompt-ids", "7,8,9")
    assert (code, err) == (1, "")
    assert "First apart: layers.0.norms.attention_pre" in out
    code, out, err = run(wrong, "--reference", there, "--lang", "zh")
    assert code == 1
    assert "最先不一致：layers.0.norms.attention_pre" in out
    code, out, err = run(wrong, "--reference", there, "--json")
    said = json.loads(out)
    assert (code, said["agrees"], said["first"]) == (1, False, "layers.0.norms.attention_pre")
    assert {"name", "theirs", "difference", "noise", "agrees"} == said["bricks"][0].keys()
    for arguments, word in (
        (["--prompt-ids", "1,x"], "--prompt-ids: expected numbers such as 1,2,3"),
        (["--prompt-ids", "99"], "ids: expected 0 to 52"),
        (["--prompt-ids", "1", "--text", "a"], "expected one of them, got both"),
        (["--text", "a"], "expected a tokenizer"),
    ):
        code, out, err = run(there, *arguments)
        assert (code, out) == (2, "")
        assert word in err
        assert err.count("\n") == 1
