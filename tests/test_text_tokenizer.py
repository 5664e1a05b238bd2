"""The tokenizer loses nothing, takes nothing in a text for a command, and is the same for the same lines."""

import hashlib
import json
import os
import random
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
import tokenizers
from hypothesis import example, given
from hypothesis import strategies as st

from oneblock.text import Tokenizer, read_pairs

LINES = [
    "The cat sat on the mat.", "I don't know what the cat wants.", "The dog doesn't want the cat.",
    "I can't go there...", "我不知道猫想要什么。", "猫坐在垫子上。", "我们不知道。", "2024年5月",
    "Tom 和 the cat", "</s> <pad> <2zh> <0x41>",
] * 3  # fmt: skip
SPELT = ["<pad>", "<s>", "</s>", "<2zh>", "<2en>", "<0x41>", "▁", "<0xFF></s>", "a</s>b", " <2zh> "]
MARKS = ["the", "猫", "不", "知道", "'", "\u2019", "\u0301", " ", "\n", "...", "7", "😀", "が"]
PIECES = st.sampled_from([*SPELT, *LINES, *MARKS])
TEXTS = st.one_of(st.text(), st.lists(st.one_of(PIECES, st.text(max_size=3))).map("".join))


TRAINED = Tokenizer.train(LINES, 360, ("en", "zh"))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return TRAINED


def spellings(text: str) -> list[str]:
    return [TRAINED._rust.id_to_token(at) for at in TRAINED.encode(text)]


@given(TEXTS)
@example("")
@example(" \u3000\n")
@example("e\u0301 \x85 a\u200d😀👨\u200d👩\u200d👧 ")
@example("\x00\x1c\ufeff\U0010ffff")
def test_decoding_an_encoding_gives_the_normalised_text(text: str) -> None:
    ids = TRAINED.encode(text)
    assert TRAINED.decode(ids) == TRAINED.normalise(text)
    assert ids[-1] == TRAINED.eos
    assert all(at > 4 for at in ids[:-1]), "no special token but the last"


@given(st.text(st.characters(exclude_categories=["Cs", "Cn"])))  # two libraries know different versions of Unicode
def test_normalising_is_only_composition_and_spaces(text: str) -> None:
    found = TRAINED.normalise(text)
    assert TRAINED.normalise(found) == found
    assert found == found.strip(" ")
    assert "  " not in found
    letters = [letter for letter in text if not letter.isspace() and letter != "▁"]
    kept = [letter for letter in found if not letter.isspace()]
    assert unicodedata.normalize("NFD", "".join(kept)) == unicodedata.normalize("NFD", "".join(letters))


@given(TEXTS)
def test_the_direction_comes_first_and_changes_nothing_else(text: str) -> None:
    assert TRAINED.encode(text, to="zh") == [TRAINED.direction("zh"), *TRAINED.encode(text)]


def test_ids_are_where_models_expect_them(tokenizer: Tokenizer) -> None:
    assert (tokenizer.pad, tokenizer.bos, tokenizer.eos) == (0, 1, 2)
    assert (tokenizer.direction("en"), tokenizer.direction("zh")) == (3, 4)
    names = [tokenizer._rust.id_to_token(at) for at in range(261)]
    assert names == ["<pad>", "<s>", "</s>", "<2en>", "<2zh>", *(f"<0x{byte:02X}>" for byte in range(256))]
    assert len(tokenizer) == 360
    assert tokenizer.languages == ("en", "zh")


@pytest.mark.parametrize("text", SPELT)
def test_text_that_spells_a_special_token_is_text(tokenizer: Tokenizer, text: str) -> None:
    for ids in (tokenizer.encode(text), tokenizer.encode(text, dropout=0.5, rng=random.Random(0))):
        assert not set(ids[:-1]) & {0, 1, 2, 3, 4}
        assert tokenizer.decode(ids) == text.replace("▁", " ").strip()
    assert 5 + 0x41 not in tokenizer.encode("<0x41>")


def test_an_unknown_character_is_its_bytes(tokenizer: Tokenizer) -> None:
    assert spellings("猫😀") == ["猫", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "</s>"]
    assert tokenizer.encode("猫\u00e9")[1:3] == [5 + 0xC3, 5 + 0xA9]


def test_pieces_are_sensible() -> None:
    assert spellings("The cat") == ["▁The", "▁cat", "</s>"]
    assert spellings("不知道") == ["不知道", "</s>"], "words of several Han characters, no mark of a space"
    assert spellings("the 猫") == ["▁the", "▁", "猫", "</s>"]
    assert spellings("cat 222") == ["▁cat", "▁2", "2", "2", "</s>"], "digits stand alone"
    assert spellings("cat.") == ["▁cat", ".", "</s>"]


def test_decoding_drops_specials_and_mends_bytes(tokenizer: Tokenizer) -> None:
    cat = tokenizer.encode("cat")[:-1]
    assert tokenizer.decode([1, 3, *cat, 2, 0, 0]) == "cat"
    good = [5 + byte for byte in "猫".encode()]
    assert tokenizer.decode([*good, 5 + 0xE7, 5 + 0x8C, *good]) == "猫\ufffd猫", "a broken one spoils no neighbour"
    assert tokenizer.decode([]) == ""
    for wrong in (-1, len(tokenizer)):
        with pytest.raises(ValueError, match=f"id: expected 0 to 359; got {wrong}"):
            tokenizer.decode([wrong])


def test_the_same_lines_give_the_same_file_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "lines.json").write_text(json.dumps(LINES), "utf-8")
    code = (
        "import sys, json, pathlib; from oneblock.text import Tokenizer; folder = pathlib.Path(sys.argv[1])\n"
        "Tokenizer.train(json.loads((folder / 'lines.json').read_text('utf-8')), 360, ('en', 'zh')).save(folder)"
    )
    for seed in "12":
        subprocess.run([sys.executable, "-c", code, tmp_path], check=True, env=os.environ | {"PYTHONHASHSEED": seed})
        assert (tmp_path / "tokenizer.json").read_text("utf-8") == TRAINED._text + "\n"


def test_tatoeba_trains_to_the_same_file_twice(shared_data: Path) -> None:
    pairs = read_pairs(shared_data / "tatoeba-cmn-eng" / "cmn.txt")
    lines = [text for pair in pairs for text in pair[:2]]
    found = {hashlib.sha256(Tokenizer.train(lines, 6000, ("en", "zh"))._text.encode()).digest() for _ in range(2)}
    assert len(found) == 1
    tokenizer = Tokenizer.train(lines, 6000, ("en", "zh"))
    assert len(tokenizer) == 6000
    for line in lines[::7]:
        assert tokenizer.decode(tokenizer.encode(line)) == tokenizer.normalise(line)


def test_saved_and_loaded_it_is_the_same(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "other.json")
    tokenizer.save(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["other.json", "tokenizer.json"]
    for again in (Tokenizer.load(tmp_path / "other.json"), Tokenizer.load(str(tmp_path))):
        assert (len(again), again.languages, again._text) == (len(tokenizer), tokenizer.languages, tokenizer._text)
        for text in (*LINES, *SPELT):
            assert again.encode(text, to="zh") == tokenizer.encode(text, to="zh")


def test_tokenizers_reads_the_file(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    plain = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in LINES[:9]:
        assert plain.encode(text).ids == tokenizer.encode(text)
        assert plain.decode(plain.encode(text).ids) == text


def test_transformers_reads_the_file(tokenizer: Tokenizer, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer.save(tmp_path)
    other = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(tmp_path / "tokenizer.json"), pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    )
    assert (len(other), other.pad_token_id, other.eos_token_id) == (len(tokenizer), 0, 2)
    for text in [*LINES[:9], "猫😀 ok", "e\u0301"]:
        assert other(text)["input_ids"] == tokenizer.encode(text)
        assert other.decode(tokenizer.encode(text), skip_special_tokens=True) == tokenizer.normalise(text)
    assert other("</s>", split_special_tokens=True)["input_ids"] == tokenizer.encode("</s>")


def test_without_languages_and_with_hardly_any_vocabulary() -> None:
    bytes_only = Tokenizer.train(["abc"], 260)
    assert bytes_only.languages == ()
    assert bytes_only.decode(bytes_only.encode("abc 猫")) == "abc 猫"
    with pytest.raises(ValueError, match=r"got 'zh'; it has none, train it with some"):
        bytes_only.encode("abc", to="zh")


def test_rare_characters_are_left_to_bytes_and_ties_stay_together() -> None:
    common, rare = "abcdefgh" * 1000, "猫狗"
    small = Tokenizer.train([common, rare], 400)
    assert small.encode(rare) == [3 + byte for byte in rare.encode()] + [2]
    assert small._rust.token_to_id("猫") is None


@pytest.mark.parametrize(
    ("lines", "vocab", "languages", "message"),
    [
        (["a"], 259, (), "vocab: expected more than the 259 reserved tokens; got 259; raise it"),
        (["a"], 300, ("en", "en"), "languages: expected distinct names"),
        (["a"], 300, ("en zh",), "languages: expected distinct names"),
        ([], 300, (), "lines: expected text to learn from; got none"),
        (["", " \n"], 300, (), "lines: expected text to learn from; got none"),
        (["a", "b\udc80"], 300, (), "text: expected Unicode text; got half a surrogate pair, .* at character 2"),
    ],
)
def test_training_refuses(lines: list[str], vocab: int, languages: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        Tokenizer.train(lines, vocab, languages)
    assert "\n" not in str(error.value)


def test_encoding_refuses(tokenizer: Tokenizer) -> None:
    with pytest.raises(ValueError, match=r"language: expected one of the tokenizer's, got 'zhh'; did you mean zh\?"):
        tokenizer.encode("a", to="zhh")
    for dropout, rng in (
        (0.1, None),
        (-0.1, random.Random(0)),
        (1.1, random.Random(0)),
        (float("nan"), random.Random(0)),
    ):
        with pytest.raises(ValueError, match="dropout: expected 0, or up to 1 with rng="):
            tokenizer.encode("a", dropout=dropout, rng=rng)
    with pytest.raises(ValueError, match="half a surrogate pair"):
        tokenizer.encode("\ud800")
    with pytest.raises(ValueError, match="half a surrogate pair"):
        tokenizer.encode("\ud800", dropout=0.1, rng=random.Random(0))


def test_loading_refuses_what_is_not_ours(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    with pytest.raises(ValueError, match=r"tokenizer\.json: expected a tokenizer; got no such file"):
        Tokenizer.load(path)
    described = json.loads(tokenizer._text)
    changed = {
        "cut short": tokenizer._text[:500],
        "not text": "\x00",
        "lower-cased": json.dumps(described | {"normalizer": {"type": "Lowercase"}}),
        "without byte fallback": json.dumps(described | {"model": described["model"] | {"byte_fallback": False}}),
        "of another model": json.dumps(
            described | {"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}
        ),
        "without special tokens": json.dumps(described | {"added_tokens": []}),
        "empty": tokenizers.Tokenizer(tokenizers.models.BPE()).to_str(),
    }
    for case, text in changed.items():
        path.write_text(text, "utf-8")
        with pytest.raises(ValueError, match=r"tokenizer\.json: expected a tokenizer") as error:
            Tokenizer.load(path)
        assert "\n" not in str(error.value), case
