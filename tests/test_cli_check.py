"""`oneblock check`: what it is pointed at, what it prints for whom, its exit codes, and bad input in one line."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import oneblock
from check_corpus.hosts import HOSTS
from check_corpus.plant import seeded
from oneblock.check import CHECKS, check
from oneblock.check.calling.find import found
from oneblock.check.formats import FORMATS, github, sarif, text
from oneblock.cli import main
from oneblock.words import language
from oneblock.words.checks import CHECKS as WORDS
from oneblock.words.checks import explained
from oneblock.words.faults import FAULTS
from oneblock.words.reasons import in_language
from oneblock.words.reasons_of_checks import REASONS

SOURCE = """
import torch
from torch import nn


class Leaky(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.token = nn.Embedding(50, dim)
        layer = nn.TransformerEncoderLayer(dim, 2, 32, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, idx):
        return self.layers(self.token(idx))


class Needs(Leaky):
    def __init__(self, dim, depth):
        super().__init__(dim)


class Fails(Leaky):
    def forward(self, idx):
        raise RuntimeError("no such luck")


def broken():
    raise OSError("disk on fire")


made = Leaky()
number = 3
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with models, in the folder where we are."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "wrong.py").write_text("def f(:\n", encoding="utf-8")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """(exit code, what was printed, what was said on stderr)."""
    with pytest.raises(SystemExit) as left:
        main(["check", *words])
    out, err = capsys.readouterr()
    return int(left.value.code or 0), out, err


def test_a_fault_is_printed_like_a_linter_s_and_the_exit_code_is_1(model: Path, capsys: Any) -> None:
    del model
    code, out, err = run(capsys, "models.py:Leaky", "--as", "decoder", "--only", "causal", "--lang", "en")
    assert code == 1
    assert "models.py:14: layers.layers.0.self_attn: error OB101 [causal] The future leaks" in out
    assert "1 errors" in out
    assert err == ""


@pytest.mark.parametrize("target", ["models.py:made", "models:Leaky", "models:made"])
def test_a_class_or_an_instance_in_a_file_or_a_package(model: Path, capsys: Any, target: str) -> None:
    del model
    code, out, _ = run(capsys, target, "--only", "batch", "--lang", "en")
    assert code == 0
    assert "1 checks passed" in out


@pytest.mark.parametrize("target", ["gpt2", "transformers:GPT2LMHeadModel", "transformers:T5ForConditionalGeneration"])
def test_named_models_are_made_small(capsys: Any, target: str) -> None:
    code, out, _ = run(capsys, target, "--only", "OB101", "--lang", "en")
    assert code == 0
    assert "1 checks passed" in out


def test_a_folder_is_loaded(tmp_path: Path, capsys: Any) -> None:
    oneblock.save(oneblock.build(oneblock.named("gpt2", dim=16, depth=1, heads=2, vocab=50, length=16)), tmp_path / "m")
    code, out, _ = run(capsys, str(tmp_path / "m"), "--only", "causal", "--lang", "zh")
    assert (code, "0 个错误" in out) == (0, True)


def test_a_folder_of_the_reference_library(capsys: Any, shared_data: Path) -> None:
    code, out, _ = run(capsys, str(shared_data / "weights-tiny-gpt2"), "--only", "causal", "--json")
    assert (code, json.loads(out)) == (0, [])


def test_json_is_what_python_says(model: Path, capsys: Any) -> None:
    del model
    code, out, _ = run(capsys, "models.py:made", "--as", "decoder", "--only", "OB1", "--format", "json")
    said = json.loads(out)
    assert code == 1
    assert set(said[0]) == {
        "code", "severity", "check", "module", "file", "line", "message", "evidence", "remedy"
    }  # fmt: skip
    module = __import__("models").Leaky()
    again = check(module, kind="decoder", only=["OB1"]).to_dict()
    assert [(one["code"], one["module"], one["line"]) for one in said] == [
        (one["code"], one["module"], one["line"]) for one in again
    ]


def test_the_forms_that_code_hosts_read(model: Path, capsys: Any) -> None:
    del model
    code, out, _ = run(capsys, "models.py:Leaky", "--as", "decoder", "--only", "causal", "--format", "github")
    assert code == 1
    assert out.startswith("::error file=models.py,line=14,title=OB101 causal::")
    _, out, _ = run(capsys, "models.py:Leaky", "--as", "decoder", "--only", "causal", "--format", "sarif")
    (result,) = json.loads(out)["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 14}
    assert result["ruleId"] == "OB101"


def test_numbers_do_not_depend_on_the_language(model: Path, capsys: Any) -> None:
    del model
    words = ("models.py:Leaky", "--as", "decoder", "--only", "causal", "--json")
    said = [json.loads(run(capsys, *words, "--lang", lang)[1])[0] for lang in ("en", "zh")]
    assert said[0]["evidence"] == said[1]["evidence"]
    assert said[0]["message"] != said[1]["message"]


def test_fail_on_decides_the_exit_code(model: Path, capsys: Any) -> None:
    del model
    words = ("models.py:Leaky", "--as", "encoder", "--only", "OB101")
    assert run(capsys, *words, "--fail-on", "note")[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "expected something to check, got nothing"),
        (("models.py:Leeky",), "no 'Leeky' there; did you mean Leaky?"),
        (("models.py:Needs",), """needs dim, depth; give --kwargs '{"dim": …, "depth": …}'"""),
        (("models.py:Fails",), "RuntimeError: no such luck"),
        (("models.py:broken",), "could not be made: OSError: disk on fire"),
        (("models.py:number",), "expected a torch.nn.Module, its class, or a factory; got int"),
        (("wrong.py:X",), "wrong.py:1: not Python: invalid syntax"),
        (("absent.py:X",), "absent.py: no such file"),
        (("no.such.package:X",), "no module named 'no'"),
        (("transformers:GPT2LMHeadModl",), "did you mean GPT2LMHeadModel?"),
        (("gtp2",), "did you mean gpt2?"),
        (("gpt2", "--only", "causl"), "no check is called 'causl'; did you mean causal?"),
        (("gpt2", "--as", "decodr"), "did you mean decoder?"),
        (("gpt2", "--format", "jsn"), "did you mean json?"),
        (("gpt2", "--fail-on", "eror"), "did you mean error?"),
        (("gpt2", "--lang", "fr"), "expected en or zh, got 'fr'"),
        (("gpt2", "--kwargs", "[1]"), "--kwargs: expected a JSON object"),
        (("gpt2", "--inputs", '{"input_ids": [[1], [1, 2]]}'), "--inputs: input_ids: expected numbers in lists"),
        (("--explain", "OB999"), "no check is called 'OB999'"),
    ],
)
def test_bad_input_is_one_line(model: Path, capsys: Any, words: tuple[str, ...], message: str) -> None:
    del model
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_time_that_is_over_is_said_of_what_was_left(model: Path, capsys: Any) -> None:
    del model
    code, out, err = run(capsys, "models.py:Leaky", "--timeout", "0.0001", "--lang", "en")
    assert (code, out) == (2, "")
    assert "the time given was over" in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_check_is_explained_in_both_languages(lang: str, capsys: Any) -> None:
    assert CHECKS.keys() == WORDS.keys()
    for code, one in CHECKS.items():
        words = explained(code, language(lang))
        assert all(vars(words).values()), code
        assert run(capsys, "--explain", one.name, "--lang", lang)[1].startswith(f"{code} [{one.name}]")


def test_every_fault_has_its_words_in_both_languages() -> None:
    for name, said in FAULTS.items():
        filled = [sorted(fields(one)) for pair in said for one in pair]
        assert set(filled[2] + filled[3]) <= set(filled[0] + filled[1]), name  # English words are left out in Chinese
        assert all(one for pair in said for one in pair), name


def test_every_reason_and_every_way_of_calling_has_its_chinese() -> None:
    rooms = Path(oneblock.__file__).parent / "check"
    literals: list[str] = []
    for file in sorted(rooms.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "CannotAskError":
                literals.append(ast.literal_eval(node.args[0]))
    assert len(literals) > 60
    assert [said for said in literals if said not in REASONS] == []
    for name in ("gpt", "torch transformer", "our bert", "reader", "sorter"):
        told = found(seeded(HOSTS[name].make)).told
        assert [said for said in told if in_language(said, "zh") == said] == []
        assert [in_language(said, "en") for said in told] == list(told)


def fields(template: str) -> set[str]:
    """Names in braces."""
    return {part.partition("}")[0] for part in template.split("{")[1:]}


def test_hostile_names_do_not_leave_their_line(model: Path) -> None:
    assert model.is_dir()
    module = __import__("models").Leaky()
    module._modules["odd\n::error::x"] = module._modules.pop("layers")
    module.forward = lambda idx: module._modules["odd\n::error::x"](module.token(idx))
    report = check(module, kind="decoder", only=["causal"])
    assert len(github(report).splitlines()) == 1
    assert json.loads(sarif(report))
    assert text(report)
    assert set(FORMATS) == {"text", "json", "github", "sarif"}


def test_help_is_there_without_torch() -> None:
    lines = ("import sys", "from oneblock.cli import main", "try:", "    main(['check', '--help'])")
    code = "\n".join((*lines, "except SystemExit:", "    sys.exit('torch' in sys.modules)"))
    run_ = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run_.returncode == 0
    assert "oneblock check model.py:MyTransformer" in run_.stdout
