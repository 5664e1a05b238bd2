"""The verbs about texts: generate, score, embed, fill, classify, for models of every kind."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import oneblock
from oneblock.cli import main as entry
from oneblock.generate import Pipeline
from oneblock.spec import Classify, Full, Head, Learned, Model, Tokens, put
from oneblock.text import Tokenizer
from specs import language_model
from vocabularies import LINES, words

VERBS = ("generate", "score", "embed", "fill", "classify")


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["oneblock.cli.main"]
    for verb in VERBS:
        monkeypatch.setitem(module.VERBS, verb, module.VERBS.get(verb, verb))
    monkeypatch.setitem(oneblock.PUBLIC, "Pipeline", "generate")


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        entry([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return int(left.value.code or 0), said.out, said.err


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert "Traceback" not in err
    assert err.startswith("oneblock: ")
    assert len(err.strip().splitlines()) == 1
    return err


def saved(folder: Path, spec: Model | Any, tokenizer: Any) -> Path:
    torch.manual_seed(0)
    model = oneblock.build(spec)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    oneblock.save(model, folder)
    tokenizer.save(folder) if isinstance(tokenizer, Tokenizer) else tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="session")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = Tokenizer.train(LINES * 2, vocab=300)
    spec = put(language_model(tokens=Tokens(0, 1, 2)), "embedding.vocab", len(tokenizer) + 7)
    return saved(tmp_path_factory.mktemp("causal"), put(spec, "embedding.position", Learned(40)), tokenizer)


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = Tokenizer.train(LINES * 2, vocab=300, languages=("en", "zh"))
    spec = oneblock.named("vaswani", dim=16, depth=1, heads=2, hidden=16, vocab=len(tokenizer))
    return saved(tmp_path_factory.mktemp("pair"), spec, tokenizer)


@pytest.fixture(scope="session")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = language_model(attention={"mask": Full()}, head=Head(), tokens=Tokens(pad=0))
    return saved(tmp_path_factory.mktemp("masked"), spec, words())


@pytest.fixture(scope="session")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = language_model(attention={"mask": Full()}, head=Classify(labels=2), tokens=Tokens(pad=0))
    folder = saved(tmp_path_factory.mktemp("classifier"), spec, words())
    (folder / "config.json").write_text('{"id2label": {"0": "bad", "1": "good"}}', "utf-8")
    return folder


CPU = ("--device", "cpu")


def test_one_prompt_is_shown_as_it_is_written(capsys: Any, causal: Path) -> None:
    code, out, err = run(capsys, "generate", causal, "low 猫", "--max-new-tokens", 12, *CPU)
    assert (code, err) == (0, "")
    assert out.startswith("low 猫")
    answer = Pipeline.load(causal).generate("low 猫", max_new_tokens=12)[0][0]
    assert out == f"low 猫{answer.text}\n"
    assert max(answer.tokens) < 300  # rows of the head beyond the tokenizer never come


def test_a_stream_of_bytes_is_whole_characters(causal: Path) -> None:
    pipeline = Pipeline.load(causal)
    options = {"max_new_tokens": 30, "do_sample": True, "temperature": 3.0}
    for seed in range(5):
        pieces = list(pipeline.stream("low", seed=seed, **options))
        assert "".join(pieces) == pipeline.generate("low", seed=seed, **options)[0][0].text
        assert len(pieces) > 5
        assert all(piece for piece in pieces)


def test_prompts_from_a_file_and_answers_as_json(capsys: Any, causal: Path, tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_text("low\n猫坐\nthe cat sat\n", "utf-8")
    options = ("--file", tmp_path / "prompts.txt", "--num-beams", 3, "--num-return-sequences", 2, "--json", *CPU)
    code, out, _ = run(capsys, "generate", causal, "--max-new-tokens", 5, "--early-stopping", "never", *options)
    assert code == 0
    found = [json.loads(line) for line in out.splitlines()]
    assert [one["prompt"] for one in found] == ["low", "low", "猫坐", "猫坐", "the cat sat", "the cat sat"]
    assert set(found[0]) == {"prompt", "text", "tokens", "score", "logprob", "finished"}
    assert found[0]["score"] >= found[1]["score"]


def test_a_prompt_from_standard_input(capsys: Any, causal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("low 猫\n".encode())))
    assert run(capsys, "generate", causal, "--max-new-tokens", 3, *CPU)[1].startswith("low 猫")


@pytest.mark.parametrize("beams", [1, 2])
def test_a_stop_string_ends_an_answer(causal: Path, beams: int) -> None:
    pipeline = Pipeline.load(causal)
    options: dict[str, Any] = {"max_new_tokens": 20, "num_beams": beams, "repetition_penalty": 1.5}
    whole = pipeline.generate("low", **options)[0][0]
    stop = whole.text[6:8]
    cut = pipeline.generate("low", stop_strings=stop, **options)[0][0]
    assert cut.finished
    assert stop in cut.text
    assert stop not in pipeline.decode(cut.tokens[:-1])
    assert len(cut.tokens) < len(whole.tokens)


def test_an_encoder_decoder_answers(capsys: Any, pair: Path) -> None:
    code, out, _ = run(capsys, "generate", pair, "the cat", "--max-new-tokens", 6, *CPU)
    assert code == 0
    assert out == f"{oneblock.translate('the cat', pair, beam=1, max_length=6)}\n"
    code, out, _ = run(capsys, "generate", pair, "the cat", "--to", "en", "--num-beams", 2, *CPU)
    assert code == 0


def test_score(capsys: Any, causal: Path, pair: Path) -> None:
    code, out, _ = run(capsys, "score", causal, "low lower", "the cat", "--json", *CPU)
    first = json.loads(out.splitlines()[0])
    assert code == 0
    assert sum(logprob for _, logprob in first["tokens"]) == pytest.approx(first["logprob"])
    assert first["perplexity"] > 1
    assert run(capsys, "score", pair, "the cat\t猫", *CPU)[1].endswith("\t猫\n")
    assert "a tab" in refused(capsys, "score", pair, "the cat", *CPU)


def test_embed(capsys: Any, masked: Path) -> None:
    code, out, _ = run(capsys, "embed", masked, "paris", "the capital of france", "--json", *CPU)
    vectors = [json.loads(line)["vector"] for line in out.splitlines()]
    assert code == 0
    assert [sum(x * x for x in vector) for vector in vectors] == pytest.approx([1, 1], abs=1e-5)
    assert len(run(capsys, "embed", masked, "paris", "--no-normalise", "--pooling", "first", *CPU)[1].split("\t")) == 16


def test_fill(capsys: Any, masked: Path) -> None:
    code, out, _ = run(capsys, "fill", masked, "paris is the [MASK] of [MASK] .", "--top-k", 3, "--json", *CPU)
    gaps = json.loads(out)["gaps"]
    assert code == 0
    assert [len(gap) for gap in gaps] == [3, 3]
    assert gaps[0][0][1] >= gaps[0][1][1] >= gaps[0][2][1]
    assert "expected a gap" in refused(capsys, "fill", masked, "paris", *CPU)


def test_classify(capsys: Any, classifier: Path) -> None:
    code, out, _ = run(capsys, "classify", classifier, "paris is the capital", "the", "--json", *CPU)
    found = [json.loads(line)["labels"] for line in out.splitlines()]
    assert code == 0
    assert [sum(labels.values()) for labels in found] == pytest.approx([1, 1], abs=1e-5)
    assert set(found[0]) == {"bad", "good"}


def test_a_blank_line_in_is_a_blank_line_out(capsys: Any, causal: Path, tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_text("low\n\n猫坐\n  \n", "utf-8")
    options = (causal, "--file", tmp_path / "prompts.txt", "--max-new-tokens", 4, *CPU)
    answers = Pipeline.load(causal).generate(["low", "猫坐"], max_new_tokens=4)
    first, second = (answer[0].prompt + answer[0].text for answer in answers)
    assert run(capsys, "generate", *options)[1] == f"{first}\n\n{second}\n\n"
    found = [json.loads(line) for line in run(capsys, "generate", *options, "--json")[1].splitlines()]
    assert [one["prompt"] for one in found] == ["low", "", "猫坐", "  "]
    assert [one["text"] == "" for one in found] == [False, True, False, True]
    assert all(one.keys() == found[0].keys() for one in found)
    several = ("--num-beams", 2, "--num-return-sequences", 2)
    assert len(run(capsys, "generate", *options, *several, "--json")[1].splitlines()) == 8
    assert "text 2 is empty" in refused(capsys, "score", causal, "--file", tmp_path / "prompts.txt", *CPU)
    (tmp_path / "prompts.txt").write_text("low cat\n\n \n", "utf-8")
    assert len(run(capsys, "score", causal, "--file", tmp_path / "prompts.txt", *CPU)[1].splitlines()) == 1


def test_answers_to_many_are_printed_batch_by_batch(
    capsys: Any, causal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prompts.txt").write_text("low\nthe cat\n" * 10, "utf-8")
    seen, answered = [], Pipeline._answered

    def told(self: Pipeline, *rest: Any) -> Any:
        seen.append(len(capsys.readouterr().out.splitlines()))
        return answered(self, *rest)

    monkeypatch.setattr(Pipeline, "_answered", told)
    run(capsys, "generate", causal, "--file", tmp_path / "prompts.txt", "--max-new-tokens", 1, *CPU)
    assert seen == [0, 16]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, ValueError])
def test_a_stream_cut_short_ends_its_line(
    capsys: Any, causal: Path, monkeypatch: pytest.MonkeyPatch, stop: type[BaseException]
) -> None:
    def pieces(*_: Any, **__: Any) -> Iterator[str]:
        yield " and so"
        raise stop("no more")

    monkeypatch.setattr(Pipeline, "stream", pieces)
    code, out, err = run(capsys, "generate", causal, "low", *CPU)
    assert out == "low and so\n"
    assert (code, err) == ((130, "interrupted\n") if stop is KeyboardInterrupt else (2, "oneblock: no more\n"))


def test_options_about_drawing_are_noted_where_nothing_is_drawn(capsys: Any, causal: Path) -> None:
    given = {"--temperature": 0.5, "--top-k": 3, "--top-p": 0.9, "--min-p": 0.1, "--typical-p": 0.9, "--seed": 1}
    call = ("generate", causal, "low", "--max-new-tokens", 3, *CPU)
    plain = run(capsys, *call)
    assert plain[2] == ""
    for name, value in given.items():
        code, out, err = run(capsys, *call, name, value)
        assert (code, out) == plain[:2]
        assert err == f"note: {name}: not looked at without --do-sample\n"
        assert run(capsys, *call, name, value, "--do-sample")[2] == ""
    err = run(capsys, *call, *(part for pair in given.items() for part in pair))[2]
    assert err == f"note: {', '.join(given)}: not looked at without --do-sample\n"


def test_refusals(capsys: Any, causal: Path, masked: Path, tmp_path: Path) -> None:
    assert "use fill or embed" in refused(capsys, "generate", masked, "paris", *CPU)
    assert "use generate or score" in refused(capsys, "classify", causal, "low", *CPU)
    assert "use generate or score" in refused(capsys, "fill", causal, "low", *CPU)
    assert "empty prompt" in refused(capsys, "generate", causal, " ", *CPU)
    assert "positions" in refused(capsys, "generate", causal, "low " * 50, *CPU)
    assert "temperature" in refused(capsys, "generate", causal, "low", "--temperature", "nan", *CPU)
    assert "top_k" in refused(capsys, "generate", causal, "low", "--top-k", "-3", *CPU)
    assert "seed: expected" in refused(capsys, "generate", causal, "low", "--seed", 10**24, *CPU)
    assert "seed: expected" in refused(capsys, "generate", causal, "low", "--seed", "-1", *CPU)
    assert "early-stopping" in refused(capsys, "generate", causal, "low", "--early-stopping", "often", *CPU)
    assert "no directions" in refused(capsys, "generate", causal, "low", "--to", "zh", *CPU)
    assert "device" in refused(capsys, "generate", causal, "low", "--device", "nonsense")
    assert "dtype" in refused(capsys, "generate", causal, "low", "--dtype", "float7", *CPU)
    assert "both" in refused(capsys, "generate", causal, "low", "--file", tmp_path / "x", *CPU)
    (tmp_path / "bad.txt").write_bytes(b"low\n\xff\n")
    assert "bad.txt:2: expected UTF-8" in refused(capsys, "generate", causal, "--file", tmp_path / "bad.txt", *CPU)
    assert "absent" in refused(capsys, "generate", tmp_path / "absent", "low", *CPU)
    other = saved(tmp_path / "other", language_model(), Tokenizer.train(LINES * 2, vocab=300))
    assert "at most the model's 13 tokens" in refused(capsys, "generate", other, "low", *CPU)


@pytest.mark.parametrize("verb", VERBS)
def test_help_is_there_without_torch(verb: str) -> None:
    code = (
        f"import sys, oneblock.cli.{verb} as m; assert m.EXAMPLE.startswith('oneblock {verb} ');"
        "print([m for m in ('torch', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_long_answers_and_bytes_lay_the_weights_out(capsys: Any, causal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, str | None]] = []
    monkeypatch.setattr(sys.modules["oneblock.generate"], "prepack", lambda _, *how: asked.append(how))
    monkeypatch.setattr(sys.modules["oneblock.cli.generate"], "WORTH", 4)
    for new, options in (("4", ["low"]), ("3", ["low"]), ("3", ["low", "low", "--num-beams", "2", "--dtype", "int8"])):
        status, _, said = run(capsys, "generate", causal, *options, "--max-new-tokens", new, *CPU)
        assert (status, said) == (0, "")
    assert asked == [(1, None), (4, "int8")]
