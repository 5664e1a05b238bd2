"""The verb `compare`: two folders, names or both on one input; what they differ in, and what cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import oneblock
from oneblock.cli.compare import EXAMPLE
from oneblock.explain import compare
from oneblock.explain.drawn import drawn
from oneblock.spec import put
from oneblock.text import Tokenizer
from oneblock.words import say
from test_cli_bad_input import PAIRS, refused, run

Capture = pytest.CaptureFixture[str]
SMALL = {"dim": 16, "depth": 2, "heads": 2, "length": 12}


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEBLOCK_LANG", "en")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a; b, whose second block has another epsilon; wide, of another vocabulary; a pair that reads and writes text."""
    folder = tmp_path_factory.mktemp("compared")
    torch.manual_seed(0)
    a = oneblock.build(oneblock.named("gpt2", vocab=20, **SMALL)).eval()
    b = oneblock.build(put(a.spec, "layers.1.norm.eps", 1e-2)).eval()
    b.load_state_dict(a.state_dict())
    tokenizer = Tokenizer.train([side for pair in PAIRS for side in pair], vocab=320, languages=("en", "zh"))
    size = {"dim": 8, "depth": 1, "heads": 2, "hidden": 16, "length": 40, "vocab": len(tokenizer)}
    models = {
        "a": a,
        "b": b,
        "wide": oneblock.build(oneblock.named("gpt2", vocab=21, **SMALL)),
        "pair": oneblock.build(oneblock.named("vaswani", **size)),
    }
    for name, model in models.items():
        oneblock.save(model, folder / name)
    tokenizer.save(folder / "pair")
    return folder


def test_two_that_agree_leave_with_0_and_a_table_without_columns(folders: Path, capsys: Capture) -> None:
    code, out, err = run(capsys, "compare", folders / "a", folders / "a", "--ids", "1,2,3")
    assert (code, err) == (0, "")
    title, columns, said = out.splitlines()
    assert "step by step" in title
    assert columns == ""
    assert said.startswith("All ")
    assert "agree" in said


def test_two_that_differ_leave_with_1_and_the_tested_cause(folders: Path, capsys: Capture) -> None:
    code, out, err = run(capsys, "compare", folders / "a", folders / "b", "--ids", "1 2 3")
    assert (code, err) == (1, "")
    assert "layers.1.norms.attention_pre.norm" in out
    assert "epsilon (layers.1.norm.eps): A has 1e-05, B behaves as 0.01" in out
    assert "With that changed, every step from there on agrees." in out
    code, chinese, _ = run(capsys, "compare", folders / "a", folders / "b", "--ids", "1,2,3", "--lang", "zh")
    assert code == 1
    assert say("cause.epsilon", "zh").purpose in chinese


def test_a_transposed_matrix_of_a_folder_is_found(folders: Path, tmp_path: Path, capsys: Capture) -> None:
    model = oneblock.load(folders / "a")
    with torch.no_grad():
        model.layers[1].attention.v.weight.copy_(model.layers[1].attention.v.weight.mT.clone())
    oneblock.save(model, tmp_path / "turned")
    code, out, _ = run(capsys, "compare", folders / "a", tmp_path / "turned", "--ids", "4,5,6")
    assert code == 1
    assert "layers.1.attention.v (Value projection)" in out
    assert "Tested: transposed weight (layers.1.attention.v): A has W, B behaves as Wᵀ." in out


@pytest.mark.parametrize("other", ["a", "b"])
def test_json_is_what_python_gives_in_either_language(folders: Path, other: str, capsys: Capture) -> None:
    found = [
        run(capsys, "compare", folders / "a", folders / other, "--ids", "1,2,3", "--json", "--lang", lang)
        for lang in ("en", "zh")
    ]
    assert found[0] == found[1]
    models = [oneblock.load(folders / name) for name in ("a", other)]
    expected = compare(*models, [1, 2, 3])
    assert json.loads(found[0][1]) == json.loads(json.dumps(expected.to_dict()))
    assert found[0][0] == (0 if other == "a" else 1)


def test_a_text_is_read_by_the_first_ones_tokenizer_and_answered_by_it(folders: Path, capsys: Capture) -> None:
    assert EXAMPLE.startswith("oneblock compare ")
    code, out, _ = run(capsys, "compare", folders / "pair", folders / "pair", "I love you.", "--target", "我爱你。")
    assert code == 0
    assert run(capsys, "compare", folders / "pair", folders / "pair", "I love you.", "--json")[0] == 0
    code, same, _ = run(capsys, "compare", folders / "pair", folders / "pair", "--ids", "4,5", "--target", "5,6,2")
    assert code == 0
    assert "agree" in out
    assert "agree" in same


def test_a_folder_may_be_compared_with_a_name_whose_weights_are_those_of_a_seed(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = oneblock.named("gpt2", vocab=20, **SMALL)
    monkeypatch.setattr("oneblock.cli.compare.named", lambda name: {"gpt2": small}[name])
    oneblock.save(drawn(small, "gpt2", 3), tmp_path / "mine")
    assert run(capsys, "compare", tmp_path / "mine", "gpt2", "--ids", "1,2", "--seed", 3)[0] == 0
    code, out, _ = run(capsys, "compare", tmp_path / "mine", "gpt2", "--ids", "1,2", "--seed", 4)
    assert code == 1
    assert "embedding" in out


def test_two_names_of_one_seed_agree_and_must_fit_into_memory(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    small = oneblock.named("gpt2", vocab=20, **SMALL)
    monkeypatch.setattr("oneblock.cli.compare.named", lambda _: small)
    assert run(capsys, "compare", "gpt2", "gpt2", "--ids", "4,5")[0] == 0
    monkeypatch.setattr("oneblock.explain.drawn.available", lambda: 100)
    assert "two of them in float64 need" in refused(capsys, "compare", "gpt2", "gpt2", "--ids", "4,5")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["{}/a", "no/where", "--ids", "1"], "no/where"),
        (["gpt3", "gpt2", "--ids", "1"], "gpt3: expected a model folder, a hub id or a model's name; did you mean"),
        (["{}/a", "{}/none", "--ids", "1"], "none: expected a model folder, found nothing there"),
        (["{}/a", "{}/a"], "expected a text or --ids, got neither"),
        (["{}/a", "{}/a", "hello", "--ids", "1"], "expected a text or --ids, got both"),
        (["{}/a", "{}/a", " "], "expected a text, got an empty one"),
        (["{}/a", "{}/a", "hello"], "or give --ids"),
        (["gpt2", "gpt2", "hello"], "gpt2 is a name and has no tokenizer to read a text; give --ids"),
        (["{}/a", "{}/a", "--ids", "1,two"], "--ids: expected numbers such as 1,2,3, got '1,two'"),
        (["{}/a", "{}/a", "--ids", ""], "--ids: expected numbers"),
        (["{}/a", "{}/a", "--ids", "20"], "expected ids of the vocabulary of 20, got 20"),
        (["{}/a", "{}/a", "--ids", "1 " * 13], "the model has 12 positions, 13 tokens need more"),
        (["{}/a", "{}/wide", "--ids", "1"], "cannot be lined up: embedding.vocab is 20 in A, 21 in B"),
        (["{}/a", "{}/pair", "--ids", "1"], "cannot be lined up: Model in A, Seq2Seq in B"),
        (["{}/a", "{}/a", "--ids", "1,2", "--target", "3"], "target: expected ids of shape (1, 2)"),
        (["{}/pair", "{}/pair", "--ids", "4"], "an encoder-decoder needs --target beside --ids"),
        (["{}/pair", "{}/pair", "--ids", "4", "--target", "x"], "--target: expected numbers such as 1,2,3, got 'x'"),
        (["{}/a", "{}/a", "--ids", "1", "--lang", "fr"], "language: expected en or zh, got 'fr'"),
    ],
)
def test_bad_input_gets_one_line(
    folders: Path, arguments: list[str], says: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    if "gpt2" in arguments:
        monkeypatch.setattr("oneblock.cli.compare.named", lambda _: oneblock.named("gpt2", vocab=20, **SMALL))
    assert says in refused(capsys, "compare", *(one.format(folders) for one in arguments))
