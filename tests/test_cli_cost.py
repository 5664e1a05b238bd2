"""The verb `cost`: a table, terms, JSON, a priced change, a measured run; what is wrong is said in one line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import oneblock
from oneblock.cli.cost import EXAMPLE
from oneblock.cost import COLUMNS, bound, machine
from oneblock.cost.machines import place
from oneblock.zoo import named
from test_cli_bad_input import refused, run

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """English, and no machine that was probed."""
    monkeypatch.setenv("ONEBLOCK_LANG", "en")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def said(capsys: Capture, *arguments: object) -> str:
    code, out, err = run(capsys, "cost", *arguments)
    assert (code, err) == (0, "")
    return out


def test_a_table_with_the_sums_to_the_last_digit(capsys: Capture) -> None:
    out = said(capsys, "gpt2", "--length", 1024)
    assert "291,648,307,200 FLOPs forward" in out
    assert re.search(r"^  12 × Block +85,054,464 ", out, re.MULTILINE)
    assert "a multiply-add is two" in out
    assert "scores = feed-forward at length 3,072 (4 · dim)" in out
    assert "A token uses 12,879,925,248 parameters" in said(capsys, "mixtral")
    assert "trained on texts of 2,048 tokens" in said(capsys, "llama", "--length", 4096)


def test_the_example_in_the_help_runs(capsys: Capture) -> None:
    out = said(capsys, *EXAMPLE.split()[2:])
    assert "AdamW" in out
    assert "backward" in out


def test_terms_are_listed_with_formula_numbers_and_sentence(capsys: Capture) -> None:
    out = said(capsys, "vaswani", "--terms", "--length", 10, "--lang", "zh")
    line = "前向 · 注意力分数: 2 · batch · heads · tokens · head_dim · keys = 2 · 1 · 8 · 10 · 64 · 10 = 102,400"
    assert line in out
    assert "每个查询与每个键相乘" in out


@pytest.mark.parametrize("phase", ["train", "prefill", "decode"])
def test_json_is_what_python_gives_in_either_language(capsys: Capture, phase: str) -> None:
    job = {"batch": 3, "length": 100, "phase": phase, "dtype": "float32", "source": 50}
    options = [part for key, value in job.items() for part in (f"--{key}", value)]
    out, zh = (said(capsys, "vaswani", *options, "--json", "--lang", lang) for lang in ("en", "zh"))
    assert out == zh
    found = oneblock.cost(named("vaswani"), **job)
    printed = json.loads(out)
    assert printed["totals"] == found.totals
    assert printed["memory"] == found.memory
    assert printed["parameters"] == oneblock.parameters(found.spec)
    assert printed["bound"]["seconds"] == bound(found.lines, machine("cpu-2-cores"), "float32").seconds
    assert [brick["path"] for brick in printed["bricks"]] == [line.path for line in found.lines]
    for column in COLUMNS:
        terms = [(b["times"], t) for b in printed["bricks"] for t in b["terms"] if t["column"] == column]
        assert sum(times * term["value"] for times, term in terms) == found.totals[column]


def test_a_change_is_priced_line_by_line(capsys: Capture) -> None:
    out = said(capsys, "mistral", "mixtral")
    assert re.search(r"^Feed-forward +\+39\.5 G .*gated SiLU → 2 of 8 experts", out, re.MULTILINE)
    assert out.splitlines()[-1].startswith("Total ")
    printed = json.loads(said(capsys, "mistral", "mixtral", "--json"))
    assert [line["topic"] for line in printed][-2:] == ["feedforward", "total"]
    assert said(capsys, "gpt2", "gpt2") == "no difference\n"


def test_a_source_may_be_that_of_either_model(capsys: Capture) -> None:
    there, back = (
        json.loads(said(capsys, *pair, "--source", 10, "--json")) for pair in (("bert", "t5"), ("t5", "bert"))
    )
    assert [line["price"]["forward"] for line in (there[-1], back[-1])] == [
        change := oneblock.cost(named("t5"), length=512, source=10).forward - oneblock.cost(named("bert")).forward,
        -change,
    ]


@pytest.mark.parametrize("pair", [("gpt2", "llama"), ("vaswani", "t5"), ("mistral", "mixtral")])
@pytest.mark.parametrize("phase", ["train", "prefill", "decode"])
def test_printed_prices_add_up_to_the_printed_total(capsys: Capture, pair: tuple[str, str], phase: str) -> None:
    *lines, total = json.loads(said(capsys, *pair, "--phase", phase, "--json"))
    for key, value in total["price"].items():
        assert sum(line["price"][key] for line in lines if line["price"]) == pytest.approx(value, rel=1e-9), key


def test_a_model_is_measured(capsys: Capture, tmp_path: Path) -> None:
    oneblock.save(oneblock.build(named("vaswani", dim=16, depth=2, heads=2, hidden=32, vocab=50)), tmp_path / "m")
    options = (tmp_path / "m", "--length", 9, "--dtype", "float32", "--measure")
    out = said(capsys, *options, "--phase", "train")
    assert "kept: predicted" in out
    assert "predicted 1.5 times apart or more" in out
    printed = json.loads(said(capsys, *options, "--json"))
    assert all(brick["flops"]["predicted"] == brick["flops"]["measured"] for brick in printed["bricks"])


@pytest.mark.parametrize("hidden", [10, 16])
def test_experts_of_any_width_are_measured(hidden: int, capsys: Capture, tmp_path: Path) -> None:
    """Narrow experts are multiplied one by one, by counts that tensors without numbers do not have."""
    size = {"dim": 16, "depth": 2, "heads": 2, "kv_heads": 1, "vocab": 20}
    oneblock.save(oneblock.build(named("mixtral", hidden=hidden, **size)), tmp_path / "m")
    printed = json.loads(said(capsys, tmp_path / "m", "--length", 5, "--dtype", "float32", "--measure", "--json"))
    assert all(brick["flops"]["predicted"] == brick["flops"]["measured"] for brick in printed["bricks"])


def test_a_probe_is_printed_kept_and_used(capsys: Capture) -> None:
    code, out, _ = run(capsys, "probe", "--seconds", 0.1, "--device", "cpu")
    assert code == 0
    assert "FLOP/s" in out
    assert str(place()) in out
    assert "Machine here: probed" in said(capsys, "gpt2")
    assert "cpu-2-cores" in said(capsys, "gpt2", "--machine", "cpu-2-cores")
    code, out, _ = run(capsys, "probe", "--seconds", 0.1, "--device", "cpu", "--json", "--no-keep")
    assert json.loads(out)["name"] == "here"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["vaswanni"], "did you mean vaswani?"),
        (["gpt2", "--length", 0], "length: expected a whole number of at least 1, got 0"),
        (["gpt2", "--batch", 0], "batch: expected a whole number of at least 1, got 0"),
        (["gpt2", "--length", 2000], "length: expected at most 1024, the model has 1024 positions; got 2000"),
        (["gpt2", "--machine", "nvidia-h101"], "did you mean nvidia-h100?"),
        (["gpt2", "--machine", "here"], "`oneblock probe` measures it"),
        (["gpt2", "--dtype", "int4"], "no rate in int4; expected bfloat16 or float16 or float32"),
        (["gpt2", "--phase", "training"], "did you mean train?"),
        (["gpt2", "--source", 3], "--source: gpt2 reads no source; leave it out"),
        (["gpt2", "bert", "--source", 3], "--source: neither gpt2 nor bert reads a source; leave it out"),
        (["gpt2", "llama", "--terms"], "--terms: expected one model"),
        (["gpt2", "--measure", "--terms"], "--terms: expected one model"),
        (["gpt2", "--loss", "half"], "loss: 'half' is not one of its words; known: chunked, whole"),
        (["gpt2", "--attention", "fuse"], "did you mean fused?"),
        (["gpt2", "vaswani", "--length", 1025], "length: expected at most 1024"),
        (["bert", "--phase", "decode"], "this model looks ahead"),
        (["gpt2", "llama", "--measure"], "--measure: expected one model, got two"),
        (["gpt2", "lama"], "did you mean llama?"),
        (["mixtral", "--measure"], "--measure: expected at most"),
    ],
)
def test_bad_input_gets_one_line(capsys: Capture, arguments: list[object], says: str) -> None:
    assert says in refused(capsys, "cost", *arguments)


def test_an_unknown_device_gets_one_line(capsys: Capture) -> None:
    assert "device: expected cpu, cuda or mps, got 'tpu'" in refused(capsys, "probe", "--device", "tpu")


def test_pricing_needs_no_tensor_library() -> None:
    code = (
        "import sys, oneblock; from oneblock.cli import main\n"
        "try: main(['cost', 'vaswani', 'llama3-8b'])\n"
        "except SystemExit: pass\n"
        "oneblock.cost(oneblock.named('mixtral')); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False).returncode == 0
