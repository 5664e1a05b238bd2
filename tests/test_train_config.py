"""Run files: every default documented and written back, every mistake one line that names the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from oneblock.train import Run
from oneblock.train.config import BatchPart
from oneblock.train.toml import build, dump, parse_value


def written(folder: Path, text: str) -> Path:
    path = folder / "run.toml"
    path.write_text(text, encoding="utf-8")
    return path


def load(folder: Path, text: str, *overrides: tuple[str, str]) -> Run:
    return Run.load(written(folder, '[data]\npairs = "a.tsv"\n' + text), overrides)


def test_defaults_and_arguments(tmp_path: Path) -> None:
    run = load(tmp_path, "[model]\ndim = 32\nbias = false\n[optimizer]\nlr = 1\n")
    assert run.model.arguments == {"dim": 32, "bias": False}
    assert run.optimizer.lr == 1.0
    assert isinstance(run.optimizer.lr, float)
    assert run.optimizer.betas == (0.9, 0.98)
    assert run.training.label_smoothing == 0.1


def test_paths_are_relative_to_the_run_file_and_stay_right_when_written_elsewhere(tmp_path: Path) -> None:
    run = load(tmp_path, '[tokenizer]\npath = "deep/t.json"\n')
    assert run.data.pairs == str(tmp_path / "a.tsv")
    elsewhere = tmp_path / "runs" / "first"
    elsewhere.mkdir(parents=True)
    text = run.dump(elsewhere)
    assert 'pairs = "../../a.tsv"' in text
    assert Run.load(written(elsewhere, text)) == run


def test_a_path_on_another_drive_stays_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def relpath(path: Path, start: Path) -> str:
        raise ValueError(f"path is on mount 'D:', start on mount 'C:': {path} {start}")

    run = load(tmp_path, "")
    monkeypatch.setattr("os.path.relpath", relpath)
    assert Run.load(written(tmp_path, run.dump(tmp_path))) == run


def test_what_is_written_reads_back_equal(tmp_path: Path) -> None:
    odd = '[model]\nname = "x"\n"a b" = [1, 2.5, "ü\\n\\u007f"]\ntable = {k = true}\n[data]\nlanguages = ["de", "en"]\n'
    run = Run.load(written(tmp_path, odd + 'source = "s"\ntarget = "t"\ncolumns = ["a", "b"]\n'))
    assert Run.load(written(tmp_path, run.dump(tmp_path))) == run


def test_overrides_are_toml_or_text(tmp_path: Path) -> None:
    run = load(tmp_path, "", ("optimizer.schedule", "cosine"), ("optimizer.betas", "[0.8, 0.9]"), ("model.dim", "64"))
    assert (run.optimizer.schedule, run.optimizer.betas, run.model.arguments) == ("cosine", (0.8, 0.9), {"dim": 64})
    assert parse_value("1\nx = 2") == "1\nx = 2"
    assert parse_value('"3"') == "3"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[optimizer]\nlrr = 1e-3", "optimizer.lrr: unknown key; did you mean lr?"),
        ("[trainign]\nsteps = 1", "trainign: unknown key; did you mean training?"),
        ('[optimizer]\nlr = "1e-3"', 'optimizer.lr: expected a number, got "1e-3"'),
        ("[training]\nsteps = 1.5", "training.steps: expected an integer, got 1.5"),
        ("[training]\nsteps = true", "training.steps: expected an integer, got true"),
        ("[training]\nsteps = 0", "training.steps: expected at least 1, got 0"),
        ("[training]\nlabel_smoothing = 1.5", "training.label_smoothing: expected a number from 0.0 to 1.0, got 1.5"),
        ("[optimizer]\nlr = nan", "optimizer.lr: expected at least 0.0, got nan"),
        ("[optimizer]\nbetas = [0.9]", "optimizer.betas: expected a list of 2 (a number each), got [0.9]"),
        ("[optimizer]\nbetas = [0.9, 1.0]", "optimizer.betas: expected two numbers in [0, 1), got [0.9, 1.0]"),
        ('[optimizer]\nschedule = "cosin"', 'got "cosin"; did you mean cosine?'),
        ("model = 3", "model: expected a table, got 3"),
        ('[batch]\ntokens = "many', "not TOML: "),
    ],
)
def test_a_mistake_is_one_line_with_the_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"run\.toml: ") as caught:
        Run.load(written(tmp_path, text))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seed = 1", "data.pairs: no training data"),
        ('[data]\nsource = "a"', "data.pairs: give either pairs or both source and target"),
        ('[data]\npairs = "a"\nvalid_source = "b"', "data.valid_pairs: give either valid_pairs or both"),
        ('[data]\npairs = "a"\nlanguages = ["en", "en"]', "data.languages: expected two different names"),
    ],
)
def test_data_must_be_named_once(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"run\.toml") as caught:
        Run.load(written(tmp_path, text))
    assert said in str(caught.value)


def test_no_such_file_and_no_such_table(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot read the run file"):
        Run.load(tmp_path / "none.toml")
    with pytest.raises(ValueError, match="seed: is a value, not a table"):
        load(tmp_path, "", ("seed", "1"), ("seed.x", "2"))
    with pytest.raises(ValueError, match="expected a dotted key"):
        load(tmp_path, "", ("training.", "2"))


def test_building_a_part_alone() -> None:
    assert build(BatchPart, {"tokens": 7}) == BatchPart(tokens=7)
    assert dump(BatchPart(tokens=7)).startswith("tokens = 7\n")
