"""The verb `show`: a table, JSON or a figure of any named or saved spec; what is wrong is said in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from oneblock.cli.show import EXAMPLE, run
from oneblock.cost import parameters
from oneblock.spec import from_dict, to_dict
from oneblock.zoo import named

app = typer.Typer()
app.command()(run)


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEBLOCK_LANG", "en")


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def refused(*arguments: str) -> str:
    result = ran(*arguments)
    assert isinstance(result.exception, ValueError)
    said = str(result.exception)
    assert "\n" not in said
    return said


def test_show_prints_a_table() -> None:
    result = ran("vaswani")
    assert result.exit_code == 0
    assert "6 × Block" in result.output
    assert "63,082,496" in result.output


def test_the_language_is_the_one_asked_for_then_the_one_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "积木块" in ran("vaswani", "--lang", "zh").output
    monkeypatch.setenv("ONEBLOCK_LANG", "zh")
    assert "积木块" in ran("vaswani").output
    assert "Block" in ran("vaswani", "--lang", "en").output


def test_json_holds_the_spec_and_its_parameters() -> None:
    said = json.loads(ran("vaswani-big", "--json").output)
    assert from_dict(said["spec"]) == named("vaswani-big")
    assert said["parameters"] == said["rows"][0]["total"] == parameters(named("vaswani-big"))


def test_the_example_in_the_help_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert ran(*EXAMPLE.split()[2:]).exit_code == 0
    assert (tmp_path / "vaswani.svg").read_text(encoding="utf-8").startswith("<svg ")
    assert [path.name for path in tmp_path.iterdir()] == ["vaswani.svg"]


@pytest.mark.parametrize("name", ["spec.json", "mine.json", ""])
def test_a_saved_spec_is_found_by_file_and_by_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / (name or "spec.json")).write_text(json.dumps(to_dict(named("vaswani", vocab=100))), encoding="utf-8")
    assert f"{parameters(named('vaswani', vocab=100)):,}" in ran(str(tmp_path / name)).output


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (b"{", "spec.json:1: expected JSON"),
        (b"\xff\xfe", "expected JSON in UTF-8"),
        (b"[" * 100_000, "expected JSON"),
        (b"[]", "expected a Model or a Seq2Seq, got tuple"),
        (b'{"type": "RMSNorm"}', "expected a Model or a Seq2Seq, got RMSNorm"),
        (b'{"type": "Modle"}', "did you mean Model?"),
    ],
)
def test_a_broken_file_is_refused_in_one_line_that_names_it(tmp_path: Path, written: bytes, expected: str) -> None:
    (tmp_path / "spec.json").write_bytes(written)
    said = refused(str(tmp_path))
    assert str(tmp_path) in said
    assert expected in said


def test_a_spec_whose_parts_do_not_fit_is_refused(tmp_path: Path) -> None:
    saved = to_dict(named("vaswani", heads=7))
    (tmp_path / "spec.json").write_text(json.dumps(saved), encoding="utf-8")
    assert "expected a divisor of dim=512, got 7" in refused(str(tmp_path))


def test_an_unknown_name_hints_at_the_nearest() -> None:
    assert refused("vaswanni") == (
        "vaswanni: expected a model's name, a spec.json or config.json, or a folder with one; did you mean vaswani?"
    )


def test_nothing_is_left_of_a_figure_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    assert isinstance(ran("vaswani", "--svg", str(tmp_path / "taken")).exception, OSError)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_showing_needs_no_tensor_library() -> None:
    code = "import sys, oneblock.cli.show as s; s.run('vaswani'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False).returncode == 0
