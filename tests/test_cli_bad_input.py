"""Bad input gets one clear line on stderr, exit code 2, and loses nothing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import oneblock
from oneblock.cli import main
from oneblock.text import Tokenizer

PAIRS = [("I love you.", "我爱你。"), ("You love me.", "你爱我。"), ("Good night.", "晚安。"), ("Hello!", "你好！")]


@pytest.fixture(scope="session")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator that has learnt nothing, in a folder."""
    folder = tmp_path_factory.mktemp("translator")
    tokenizer = Tokenizer.train([side for pair in PAIRS for side in pair], vocab=320, languages=("en", "zh"))
    spec = oneblock.named("vaswani", dim=8, depth=1, heads=2, hidden=16, vocab=len(tokenizer), length=12)
    oneblock.save(oneblock.build(spec), folder)
    tokenizer.save(folder)
    return folder


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A run file that trains a tiny model on a few pairs in a second."""
    lines = [f"{english} {number}\t{chinese}{number}\tsomeone\n" for number in range(20) for english, chinese in PAIRS]
    (tmp_path / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    path = tmp_path / "run.toml"
    path.write_text(
        '[model]\nname = "vaswani"\ndim = 8\ndepth = 1\nheads = 2\nhidden = 16\n'
        '[data]\npairs = "pairs.tsv"\nvalid = 4\ntest = 4\n[tokenizer]\nvocab = 320\n'
        "[batch]\ntokens = 200\n[training]\nsteps = 2\nsample = 2\n",
        encoding="utf-8",
    )
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of the command line."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return int(left.value.code or 0), said.out, said.err


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that a refusal prints."""
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    lines = err.strip().splitlines()
    assert lines
    assert lines[-1].startswith("oneblock: ")
    assert "Traceback" not in err
    return lines[-1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["tranlate"], "did you mean translate"),
        (["show", "vaswanny"], "did you mean vaswani"),
        (["show", "vaswani", "--lang", "fr"], "en"),
        (["show"], "SPEC"),
        (["show", "vaswani", "--nope"], "--nope"),
    ],
)
def test_unknown_words_name_the_nearest(capsys: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    assert says in refused(capsys, *arguments)


def test_translate_refuses(capsys: pytest.CaptureFixture[str], translator: Path, tmp_path: Path) -> None:
    model = ("--model", translator)
    assert "empty" in refused(capsys, "translate", "  ", *model)
    assert "beam" in refused(capsys, "translate", "hi", "--beam", 0, *model)
    assert "n_best" in refused(capsys, "translate", "hi", "--beam", 2, "--n-best", 3, *model)
    assert "zh" in refused(capsys, "translate", "hi", "--to", "fr", *model)
    assert "nothing there" in refused(capsys, "translate", "hi", "--model", tmp_path / "absent")
    (tmp_path / "bad.txt").write_bytes(b"good\n\xff\xfe\n")
    line = refused(capsys, "translate", "--file", tmp_path / "bad.txt", *model)
    assert "bad.txt:2" in line
    assert "UTF-8" in line
    assert "both" in refused(capsys, "translate", "hi", "--file", tmp_path / "bad.txt", *model)


def test_one_line_out_per_line_in(capsys: pytest.CaptureFixture[str], translator: Path, tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("Hello!\n\n我爱你。\n", encoding="utf-8")
    code, out, _ = run(capsys, "translate", "--file", path, "--model", translator, "--beam", 2)
    assert code == 0
    assert len(out.split("\n")) == 4
    assert out.split("\n")[1] == ""
    code, out, _ = run(capsys, "translate", "--file", path, "--model", translator, "--beam", 2, "--n-best", 2)
    assert len(out.split("\n")) == 7


def test_a_sentence_too_long_is_translated_whole_or_says_what_is_cut(
    capsys: pytest.CaptureFixture[str], translator: Path
) -> None:
    code, _, err = run(capsys, "translate", "Hello! " * 40, "--model", translator, "--beam", 1)
    assert code == 0
    assert err == ""
    code, _, err = run(capsys, "translate", "hello" * 40, "--model", translator, "--beam", 1)
    assert code == 0
    assert "left out: " in err


@pytest.mark.parametrize("name", ["spec.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("damage", ["missing", "cut", "foreign"])
def test_a_damaged_model_folder(
    capsys: pytest.CaptureFixture[str], translator: Path, tmp_path: Path, name: str, damage: str
) -> None:
    for path in translator.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).unlink()
    if damage != "missing":
        (tmp_path / name).write_bytes(data[: len(data) // 2] if damage == "cut" else b"\x80\x04something else")
    assert name in refused(capsys, "translate", "hi", "--model", tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[optimizer]\nlrr = 1\n", "optimizer.lrr"),
        ("[training]\nsteps = 'many'\n", "training.steps"),
        ("[trainin]\nsteps = 1\n", "training"),
        ("steps = = 1\n", "TOML"),
        ("[model]\nheads = 3\n", "heads"),
        ("[model]\nname = 'vaswanny'\n", "vaswani"),
        ("[data]\npairs = 'absent.tsv'\n", "absent.tsv"),
    ],
)
def test_a_bad_run_file(capsys: pytest.CaptureFixture[str], recipe: Path, tmp_path: Path, text: str, says: str) -> None:
    base = recipe.read_text(encoding="utf-8")
    heading = text.split("\n")[0]
    if heading in base:
        key = text.split("\n")[1].split(" ")[0]
        kept = [line for line in base.split("\n") if not line.startswith(f"{key} =")]
        text = "\n".join(kept).replace(heading, text.rstrip("\n"))
    else:
        text = base + text
    recipe.write_text(text, encoding="utf-8")
    assert says in refused(capsys, "train", recipe, "--out", tmp_path / "out")


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (b"no tab here\n", "pairs.tsv:1"),
        ("Hello!\t你好！\n\n".encode(), "pairs.tsv:2"),
        (b"Hello!\t\n", "pairs.tsv:1"),
        (b"Hello!\t\xff\xfe\n", "UTF-8"),
        (b"", "pairs.tsv"),
    ],
)
def test_a_bad_corpus(
    capsys: pytest.CaptureFixture[str], recipe: Path, tmp_path: Path, lines: bytes, says: str
) -> None:
    (tmp_path / "pairs.tsv").write_bytes(lines)
    assert says in refused(capsys, "train", recipe, "--out", tmp_path / "out")


def test_unequal_parallel_files(capsys: pytest.CaptureFixture[str], recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "a.zh.gz").write_bytes(gzip.compress("一\n".encode()))
    text = recipe.read_text(encoding="utf-8").replace('pairs = "pairs.tsv"', 'source = "a.en"\ntarget = "a.zh.gz"')
    recipe.write_text(text, encoding="utf-8")
    assert "unequal length" in refused(capsys, "train", recipe, "--out", tmp_path / "out")


def test_a_run_trains_resumes_refuses_and_translates(
    capsys: pytest.CaptureFixture[str], recipe: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    code, said, _ = run(capsys, "train", recipe, "--out", out)
    assert code == 0
    assert '"step": 2' in said
    names = {path.name for path in out.iterdir()}
    assert {"spec.json", "run.toml", "tokenizer.json", "model.safetensors", "metrics.jsonl", "env.json"} <= names
    before = (out / "model.safetensors").read_bytes()
    assert "--resume" in refused(capsys, "train", recipe, "--out", out)
    line = refused(capsys, "train", recipe, "--out", out, "--resume", "--set", "model.dim=16")
    assert "encoder.dim was 8, is 16" in line
    with (tmp_path / "pairs.tsv").open("a", encoding="utf-8") as file:
        file.write("A new pair.\t新的句对。\tsomeone\n")
    assert "corpus" in refused(capsys, "train", recipe, "--out", out, "--resume")
    assert (out / "model.safetensors").read_bytes() == before
    assert run(capsys, "translate", "Hello!", "--model", out)[0] == 0
    code, said, _ = run(capsys, "eval", out, "--data", tmp_path / "pairs.tsv", "--beam", 1, "--json")
    assert code == 0
    assert '"bleu"' in said


def test_json_has_a_score_for_every_translation(capsys: pytest.CaptureFixture[str], translator: Path) -> None:
    code, out, _ = run(capsys, "translate", "Hello!", "--json", "--n-best", 2, "--beam", 2, "--model", translator)
    assert code == 0
    found = json.loads(out)
    assert found["to"] == "zh"
    assert set(found["alternatives"][0]) == {"text", "score"}
    assert found["score"] >= found["alternatives"][0]["score"]


def test_a_refused_resume_and_a_refused_start_leave_the_folder_as_it_was(
    capsys: pytest.CaptureFixture[str], recipe: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert "heads" in refused(capsys, "train", recipe, "--out", out, "--set", "model.heads=3")
    assert "device: 'nonsense'" in refused(capsys, "train", recipe, "--out", out, "--device", "nonsense")
    assert run(capsys, "train", recipe, "--out", out)[0] == 0
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    refused(capsys, "train", recipe, "--out", out, "--resume", "--set", "model.dim=16")
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before


def evaluated(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    """The directions that `oneblock eval` scores."""
    code, out, err = run(capsys, "eval", *arguments, "--beam", 1, "--json")
    assert code == 0, err
    return [score["direction"] for score in json.loads(out)]


def test_eval_takes_languages_and_directions_from_the_run(
    capsys: pytest.CaptureFixture[str], recipe: Path, tmp_path: Path
) -> None:
    out, file = tmp_path / "out", tmp_path / "pairs.tsv"
    text = recipe.read_text(encoding="utf-8")
    recipe.write_text(text.replace("[data]\n", '[data]\nlanguages = ["fr", "zh"]\ndirections = "forward"\n'), "utf-8")
    assert run(capsys, "train", recipe, "--out", out)[0] == 0
    assert evaluated(capsys, out) == ["fr-zh"]
    assert evaluated(capsys, out, "--data", file) == ["fr-zh"]
    assert evaluated(capsys, out, "--data", recipe) == ["fr-zh"]
    assert evaluated(capsys, out, "--data", file, "--direction", "zh-fr") == ["zh-fr"]
    assert evaluated(capsys, out, "--data", file, "--languages", "zh,fr") == ["fr-zh"]
    assert evaluated(capsys, out, "--data", file, "--languages", "zh,fr", "--direction", "zh-fr") == ["zh-fr"]
    assert "expected fr-zh or zh-fr, got en-zh" in refused(capsys, "eval", out, "--direction", "en-zh")
    assert "--languages: expected two" in refused(capsys, "eval", out, "--languages", "fr")
    (out / "run.toml").write_text("data = 3", encoding="utf-8")
    assert "run.toml: data: expected a table" in refused(capsys, "eval", out, "--data", file)
    (out / "run.toml").unlink()
    assert "got 'en'" in refused(capsys, "eval", out, "--data", file)


def test_a_piped_table_neither_folds_nor_cuts(capsys: pytest.CaptureFixture[str], recipe: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(capsys, "train", recipe, "--out", out)[0] == 0
    scores = json.loads(run(capsys, "eval", out, "--beam", 1, "--json")[1])
    code, said, _ = run(capsys, "eval", out, "--beam", 1)
    assert code == 0
    head, *lines = said.splitlines()
    assert head.split() == ["direction", "sentences", "beam", "BLEU", "chrF", "signature"]
    assert [line.split()[0] for line in lines] == ["en-zh", "zh-en"]
    assert [line.split()[-1] for line in lines] == [score["bleu_signature"] for score in scores]


def test_a_model_folder_whose_spec_nests_deeply(
    capsys: pytest.CaptureFixture[str], translator: Path, recipe: Path, tmp_path: Path
) -> None:
    for path in translator.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    spec = tmp_path / "spec.json"
    for nested in ("[" * 100_000, "[" * 600 + "]" * 600, '{"type": "Seq2Seq", "encoder": ' * 600 + "1" + "}" * 600):
        spec.write_text(nested, encoding="utf-8")
        assert "spec.json: expected" in refused(capsys, "show", spec)
        assert "spec.json: expected" in refused(capsys, "translate", "hi", "--model", tmp_path)
        text = recipe.read_text(encoding="utf-8").partition("[data]")[2]
        (tmp_path / "nested.toml").write_text(f'[model]\nspec = "spec.json"\n[data]{text}', encoding="utf-8")
        line = refused(capsys, "train", tmp_path / "nested.toml", "--out", tmp_path / "out")
        assert "model.spec: " in line


def test_a_file_that_cannot_be_read_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for path in (tmp_path / "absent.txt", tmp_path):
        line = refused(capsys, "translate", "--file", path)
        assert line.startswith(f"oneblock: --file: {path}: expected a text file")
        assert "Errno" not in line
