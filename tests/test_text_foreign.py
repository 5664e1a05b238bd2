"""Tokenizers of any family: special tokens exactly once, text whole while it appears, and files that may be damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, processors

from oneblock.text import ForeignTokenizer, Pieces, Tokenizer, read_tokenizer

TEXT = "Hello, wörld! 你好 🐈‍⬛ low lower"


def byte_level(*specials: str) -> tokenizers.Tokenizer:
    """Bytes and a few merges, as the second model of that line has it."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("l", "o"), ("lo", "w"), ("Ġ", "low"), ("ä", "½")]
    vocab = {token: i for i, token in enumerate([*specials, *letters, *(a + b for a, b in merges)])}
    rust = tokenizers.Tokenizer(models.BPE(vocab, merges))
    rust.pre_tokenizer, rust.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    rust.add_special_tokens(list(specials))
    return rust


def with_template(before: str, after: str) -> tokenizers.Tokenizer:
    rust = byte_level("<s>", "</s>")
    rust.post_processor = processors.TemplateProcessing(
        f"{before} $A {after}".strip(), special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    return rust


@pytest.mark.parametrize(("before", "after"), [("<s>", ""), ("<s>", "</s>"), ("", "</s>"), ("", "")])
@pytest.mark.parametrize("text", ["low", "<s>low", "low</s>", "<s>low</s>", "<s>", TEXT])
def test_B73_special_tokens_stand_once_around_a_text(before: str, after: str, text: str) -> None:
    rust = with_template(before, after)
    tokenizer = ForeignTokenizer(rust)
    plain = text.removeprefix("<s>") if before else text
    plain = plain.removesuffix("</s>") if after else plain
    assert tokenizer.encode(text) == rust.encode(plain).ids
    assert tokenizer.encode(text, end=False) == rust.encode(plain).ids[: len(rust.encode(plain).ids) - bool(after)]
    assert tokenizer.decode(tokenizer.encode(text)) == plain.replace("<s>", "").replace("</s>", "")


def test_roles_come_from_the_files_or_the_usual_spellings(tmp_path: Path) -> None:
    byte_level("<start>", "</s>", "[MASK]").save(str(tmp_path / "tokenizer.json"))
    assert read_tokenizer(tmp_path).roles == {"eos": 1, "mask": 2}
    said = {"bos_token": {"content": "<start>"}, "eos_token": "[MASK]", "pad_token": None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(said), "utf-8")
    assert read_tokenizer(tmp_path).roles == {"bos": 0, "eos": 2, "mask": 2}


def test_a_vocabulary_and_merges_are_the_same_tokenizer(tmp_path: Path) -> None:
    rust = byte_level("<|endoftext|>")
    rust.model.save(str(tmp_path))
    tokenizer = read_tokenizer(tmp_path)
    assert tokenizer.encode(TEXT) == rust.encode(TEXT).ids
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT
    assert tokenizer.encode("low<|endoftext|>")[-1] == 0 == tokenizer.roles["eos"]
    (tmp_path / "merges.txt").write_text("nothing to merge\n", "utf-8")
    with pytest.raises(ValueError, match=r"vocab\.json: expected a vocabulary that fits"):
        read_tokenizer(tmp_path)


def test_ours_is_read_as_ours_and_what_is_none_is_refused(tmp_path: Path) -> None:
    Tokenizer.train(["low lower"] * 2, vocab=270).save(tmp_path)
    assert isinstance(read_tokenizer(tmp_path), Tokenizer)
    (tmp_path / "tokenizer.json").write_text("{", "utf-8")
    with pytest.raises(ValueError, match=r"tokenizer\.json: expected a tokenizer"):
        read_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match="found none there"):
        read_tokenizer(tmp_path)


def test_the_vocabulary_of_a_real_model(shared_data: Path) -> None:
    tokenizer = read_tokenizer(shared_data / "weights-tiny-gpt2")
    assert len(tokenizer) == 50257
    assert tokenizer.encode("Hello world") == [15496, 995]
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT
    assert tokenizer.encode(TEXT) == tokenizer.encode(TEXT, end=False)


@given(st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable()), st.integers(0, 8))
def test_pieces_are_whole_characters_and_together_the_text(text: str, skip: int) -> None:
    tokenizer = ForeignTokenizer(byte_level())
    ids = tokenizer.encode(text)
    pieces = Pieces(tokenizer.decode, ids[:skip])
    found = [pieces.add(token) for token in ids[skip:]]
    before = tokenizer.decode(ids[:skip])
    assert pieces.end() == ""
    assert before.rstrip("\ufffd") + "".join(found) == text
    assert all("\ufffd" not in piece for piece in found)


def test_pieces_of_a_tokenizer_that_strips_a_leading_space() -> None:
    tokenizer = Tokenizer.train(["low lower 你好"] * 2, vocab=290)
    ids = tokenizer.encode("low lower 🐈 你好 low")
    pieces = Pieces(tokenizer.decode, ids[:1])
    assert tokenizer.decode(ids[:1]) + "".join(pieces.add(token) for token in ids[1:]) + pieces.end() == (
        "low lower 🐈 你好 low"
    )


def test_half_a_character_at_the_end_is_told_at_the_end() -> None:
    tokenizer = ForeignTokenizer(byte_level())
    pieces = Pieces(tokenizer.decode)
    ids = tokenizer.encode("a你")
    assert [pieces.add(token) for token in ids[:-1]] == ["a", ""]
    assert pieces.end() == "\ufffd"
