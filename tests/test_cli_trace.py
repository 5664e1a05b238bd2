"""The verb `trace`: on the screen, as JSON, as a page, two side by side; what is wrong is said in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import oneblock
from oneblock.cli.trace import EXAMPLE
from oneblock.explain.page import page
from oneblock.explain.worked import exercise
from oneblock.explain.worked.data import data
from oneblock.explain.worked.text import text
from oneblock.zoo import FAMILIES
from shown import Page
from test_cli_bad_input import refused, run, translator  # noqa: F401 - a fixture

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEBLOCK_LANG", "en")


def python(sentence: str, **choice: Any) -> Any:
    """The same in Python."""
    holder = oneblock.Translator.default()
    found = oneblock.trace(holder, sentence)
    name = holder.tokenizer.token
    return exercise(found, text=sentence, model="oneblock translator", name=name, **choice)


def test_the_screen_json_and_the_page_say_what_python_says(capsys: Capture, tmp_path: Path) -> None:
    made = python("我爱你", layer=1, head=2, token="love")
    choice = ("trace", "我爱你", "--layer", 1, "--head", 2, "--token", "love")
    assert run(capsys, *choice)[:2] == (0, text(made) + "\n")
    assert json.loads(run(capsys, *choice, "--json", "--lang", "zh")[1]) == json.loads(json.dumps(data(made, "zh")))
    assert run(capsys, *choice, "--html", tmp_path / "t.html")[1].strip() == str(tmp_path / "t.html")
    assert (tmp_path / "t.html").read_text("utf-8") == page(made)
    assert [path.name for path in tmp_path.iterdir()] == ["t.html"]


def test_json_is_one_object_with_every_step_and_no_infinity(capsys: Capture) -> None:
    said = run(capsys, "trace", "我爱你", "--json")[1]
    assert said.count("\n") == 1
    found = json.loads(said, parse_constant=lambda name: pytest.fail(name))
    steps = list(oneblock.trace(oneblock.Translator.default(), "我爱你"))
    assert [step["path"] for step in found["every"]] == [step.path for step in steps]
    assert found["every"][5]["statistics"]["norm"] == steps[5].statistics.norm


def test_a_target_and_a_single_step(capsys: Capture) -> None:
    out = run(capsys, "trace", "我爱你", "--target", "I like you.", "--step", "*.cross.pattern")[1]
    assert "▁like" in out
    assert out.count("Attention weights  (h, L_q, L_k)") == 3


def test_N23_two_texts_side_by_side(capsys: Capture, tmp_path: Path) -> None:
    out = run(capsys, "trace", "狗咬人", "人咬狗")[1]
    assert "Both texts read as the same tokens in another order." in out
    assert "they first differ at step 2: Sinusoidal position (encoder.embedding.position)" in out
    without = run(capsys, "trace", "狗咬人", "人咬狗", "--without-positions")[1]
    assert "Token by token they do not differ at any step of this stack: order is not seen." in without
    found = json.loads(run(capsys, "trace", "狗咬人", "人咬狗", "--json")[1])
    assert found["stacks"][0]["first_token"] == 2
    assert run(capsys, "trace", "狗咬人", "人咬狗", "--html", tmp_path / "t.html")[0] == 0
    two = Page((tmp_path / "t.html").read_text("utf-8"))
    assert {"steps", "heads", "stream", "lens", "candidates", "figure"} <= {
        element.attributes["id"] for element in two.of("section")
    }
    assert "狗咬人 beside 人咬狗" in Page((tmp_path / "t.html").read_text("utf-8")).of("title")[0].said
    out = run(capsys, "trace", "我爱你", "你爱我", "--lang", "zh")[1]
    assert "同一词元相比" in out


@pytest.mark.parametrize(("name", "seen"), [("bert", False), ("t5", False), ("llama", True), ("gpt2", True)])
def test_N23_without_positions_only_a_causal_mask_tells_the_order(name: str, seen: bool, capsys: Capture) -> None:
    choice = ("trace", "狗咬人", "人咬狗", "--model", name, "--json")
    stack = json.loads(run(capsys, *choice, "--without-positions")[1])
    first = stack["stacks"][0]["first_token"]
    paths = {step["number"]: step["path"] for step in stack["steps"]}
    assert (first is None) is not seen
    assert first is None or paths[first].endswith("masked")
    with_positions = json.loads(run(capsys, *choice)[1])
    first = with_positions["stacks"][0]["first_token"]
    paths = {step["number"]: step["path"] for step in with_positions["steps"]}
    assert paths[first].rpartition(".")[2] in ("position", "query", "masked")
    assert seen or first < len(paths)


def test_help_is_there_without_torch() -> None:
    code = "import sys, oneblock.cli.trace; print([m for m in ('torch', 'numpy', 'latex2mathml') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", [*FAMILIES, "llama3-8b", "gemma2-9b", "t5-v1.1-small"])
def test_a_name_we_know_is_shown_tiny_and_random_and_says_so(name: str, capsys: Capture) -> None:
    code, out, _ = run(capsys, "trace", "我爱你", "--model", name)
    assert code == 0
    assert f"{name} at a tiny size with random weights" in out


def test_the_example_in_the_help_runs(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(capsys, *EXAMPLE.replace('"', "").split()[1:])[0] == 0
    assert (tmp_path / "trace.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("我爱你", "--layer", "3"), "layer: expected 0 to 2 (layers: encoder 3 and decoder 3), got 3"),
        (("我爱你", "--head", "4"), "head: expected 0 to 3"),
        (("我爱你", "--token", "9"), "token: expected 0 to 3 of <2en> 我爱 你 </s>, or 0 to 4 of <s> ▁I ▁love ▁you ."),
        (("我爱你", "--token", "loev"), "did you mean ▁love?"),
        (("我爱你", "--step", "encoder.layers.9.stream"), "no step 'encoder.layers.9.stream'"),
        (("",), "text 1 is empty"),
        (("a", "b", "c"), "expected one text, or two to set side by side, got 3"),
        (("我爱你", "--model", "gpt22"), "gpt22: expected a model's folder or a name we know; did you mean gpt2?"),
        (("我爱你 " * 60, "--model", "gpt2"), "the model has 128 positions"),
        (("我爱你", "--html", "no/such/t.html"), "there is no folder no/such; make it first"),
        (("我爱你", "--html", "."), "expected a file, got a folder"),
        (("我爱你", "--model", "gpt2", "--target", "x"), "only a model that answers a source has one"),
        (("我爱你", "--target", " "), "--target: expected a text, got an empty one"),
        (("我爱你", "--token", "-1"), "0 to 4 of <s> ▁I ▁love ▁you ., got '-1'"),
        (("我爱你", "--step", "zzz"), "names are like encoder.layers.0.attention.pattern, * matches anything"),
        (("我爱你", "--model", ""), "expected a model's folder or a name we know, got nothing"),
        (("我爱你", "--lang", "fr"), "expected en or zh"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...], expected: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert expected in refused(capsys, "trace", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_a_model_is_read(translator: Path, capsys: Capture) -> None:  # noqa: F811
    code, out, _ = run(capsys, "trace", "我爱你", "--model", translator, "--target", "I love you.")
    assert code == 0
    assert "random weights" not in out


def test_a_page_that_cannot_be_written_leaves_nothing(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "t.html").write_text("before")
    monkeypatch.setattr("oneblock.files.durable.os.replace", full)
    assert "No space left" in refused(capsys, "trace", "我爱你", "--html", tmp_path / "t.html")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]
