"""Splitting long texts: nothing lost, nothing too long, and what is cut is named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneblock.generate.pieces import pieces


def at_most(size):
    return lambda text: len(text.strip()) <= size


def test_a_text_that_fits_stays_whole():
    assert pieces("One. Two. 三。", at_most(12)) == (["One. Two. 三。"], "")


def test_sentences_first_then_clauses():
    text = "今天天气很好！我们去公园，然后去吃饭，然后回家。他说：“好的。”真的吗？！是的。"
    assert pieces(text, at_most(12)) == (
        ["今天天气很好！", "我们去公园，然后去吃饭，", "然后回家。", "他说：“好的。”", "真的吗？！", "是的。"],
        "",
    )


def test_numbers_and_commas_inside_them_are_no_pauses():
    text = "It costs 1,234.50 dollars. Is that so? Yes."
    assert pieces(text, at_most(30))[0] == ["It costs 1,234.50 dollars.", " Is that so?", " Yes."]


def test_what_cannot_be_split_is_cut_after_a_word_and_named():
    assert pieces("Short. one two three four five", at_most(13)) == (["Short.", "one two three"], "four five")
    assert pieces("一二三四五六七八", at_most(5)) == (["一二三四五"], "六七八")
    assert pieces("a" * 9 + "。" + "b" * 9 + "。", at_most(4)) == (["aaaa", "bbbb"], "aaaaa。\nbbbbb。")


def test_nothing_fits():
    assert pieces("abc。d", lambda _: False) == ([], "abc。\nd")


@given(st.text(alphabet="ab 。.,，!？”\n", min_size=1, max_size=60), st.integers(min_value=1, max_value=20))
def test_every_character_is_in_a_piece_or_named_as_cut(text, size):
    found, cut = pieces(text, at_most(size))
    assert all(at_most(size)(piece) for piece in found)
    kept = sorted("".join(found) + cut)
    assert [c for c in kept if not c.isspace()] == sorted(c for c in text if not c.isspace())


@pytest.mark.parametrize("size", [3, 7])
def test_pieces_keep_the_order(size):
    text = "，".join(str(i) for i in range(9)) + "。"
    found, cut = pieces(text, at_most(size))
    assert "".join(found) == text
    assert not cut
