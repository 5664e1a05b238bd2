"""The verb `diff`: lines that say what differs, a patch that carries it out; bad input in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from oneblock.cli.diff import EXAMPLE, run
from oneblock.spec import apply, to_dict
from oneblock.zoo import named

app = typer.Typer()
app.command()(run)


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEBLOCK_LANG", "en")


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_equal_models_have_no_difference() -> None:
    result = ran("vaswani", "vaswani-base")
    assert (result.exit_code, result.output) == (0, "no difference\n")
    assert ran("vaswani", "vaswani-base", "--lang", "zh").output == "没有差别\n"
    assert json.loads(ran("vaswani", "vaswani-base", "--json").output) == {"changes": []}


def test_the_example_in_the_help_runs() -> None:
    result = ran(*EXAMPLE.split()[2:])
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "Training    Dropout 0.1 (embedding, sublayers) → Dropout 0.3 (embedding, sublayers)"
        " — What acts in training only.",
        "Sizes       dimension 512 → 1,024 · heads 8 × 64 → 16 × 64 · hidden 2,048 → 4,096",
        "Parameters  63,082,496 → 214,245,376 (× 3.4)",
        "Cache       12,288 bytes per token + 12,288 per source token → "
        "24,576 bytes per token + 24,576 per source token (× 2)",
    ]


@pytest.mark.parametrize(("a", "b"), [("vaswani", "llama3-8b"), ("llama3-8b", "vaswani"), ("llama-7b", "llama3.1-70b")])
def test_a_patch_is_exact(a: str, b: str) -> None:
    assert apply(named(a), json.loads(ran(a, b, "--json").output)) == named(b)


def test_encoder_decoder_against_one_stream_is_few_lines() -> None:
    lines = ran("vaswani", "llama3-8b").output.splitlines()
    assert len(lines) <= 15
    assert lines[0].startswith("Structure       encoder and decoder → one stream")
    assert all(line[14:16] == "  " and line[16] != " " for line in lines)
    chinese = ran("vaswani", "llama3-8b", "--lang", "zh").output.splitlines()
    assert chinese[-1] == "缓存      每个词元 12,288 字节 + 每个源词元 12,288 字节 → 每个词元 131,072 字节 (× 10.7)"


def test_files_and_folders_are_compared_too(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(to_dict(named("vaswani", depth=2))), encoding="utf-8")
    assert "layers 6 → 2" in ran("vaswani", str(tmp_path)).output
    assert "layers 2 → 6" in ran(str(tmp_path / "spec.json"), "vaswani").output


@pytest.mark.parametrize("order", [1, -1])
def test_an_unknown_name_on_either_side_is_one_line(order: int) -> None:
    result = ran(*["vaswani", "vaswanni"][::order])
    assert isinstance(result.exception, ValueError)
    assert "did you mean vaswani?" in str(result.exception)


def test_comparing_needs_no_tensor_library() -> None:
    code = "import sys, oneblock.cli.diff as d; d.run('vaswani', 'llama3-8b'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False).returncode == 0
