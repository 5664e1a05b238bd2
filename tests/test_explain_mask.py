"""A mask prints as a matrix in which each hidden entry says why it is hidden."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oneblock.explain import mask_matrix, masks, trace
from oneblock.explain.cause import CAUSES
from oneblock.explain.mask import SIGNS
from oneblock.generate import Translator
from oneblock.mask import places
from oneblock.mask.meaning import allowed
from oneblock.spec import Causal, Full, Mask, Window, put
from specs import ANY, exact, language_model, translator
from test_explain_trace import call_of


def matrix(table: object) -> list[str]:
    return ["".join(row[1:]) for row in table]  # type: ignore[attr-defined]


def test_each_cause_has_its_own_sign_and_a_line_below() -> None:
    table = mask_matrix(Causal() & Window(back=2), 4, padding=[0])
    assert matrix(table) == ["PCCC".replace("C", "C"), "P●CC", "P●●C", "PW●●"]
    assert [note[0] for note in table.notes] == ["●", "C", "W", "P"]
    assert len(set(SIGNS.values())) == len(CAUSES)
    assert mask_matrix(Full(), 2).notes == ("● seen: the query may look at the key",)


def test_both_languages() -> None:
    assert "C 因果：键在查询之后" in str(mask_matrix(Causal(), 3, lang="zh"))
    assert mask_matrix(Causal(), 3, lang="zh").title == "因果：行是查询，列是键"
    assert "C causal: the key stands after the query" in str(mask_matrix(Causal(), 3))


@given(mask=st.sampled_from(ANY), length=st.integers(1, 7), padding=st.lists(st.integers(0, 6), max_size=3))
def test_what_is_seen_is_what_the_model_may_see(mask: Mask, length: int, padding: list[int]) -> None:
    hidden = [place for place in padding if place < length]
    shown = torch.ones(1, length, dtype=torch.long)
    shown[0, hidden] = 0
    see = allowed(mask, places(length, shown), places(length, shown)).expand(1, length, length)[0]
    found = matrix(mask_matrix(mask, length, hidden))
    assert [[sign == "●" for sign in row] for row in found] == see.tolist()


def test_the_mask_of_a_trace_names_its_tokens() -> None:
    t = trace(Translator.default(), "我爱你")
    table = masks(t, "decoder.layers.0.attention")
    assert table.columns == ("q \\ k", *t.tokens["decoder."])
    assert table.column("q \\ k") == t.tokens["decoder."]
    cross = masks(t, "decoder.layers.0.cross", lang="zh")
    assert cross.columns[1:] == t.tokens["encoder."]
    assert set("".join(matrix(cross))) == {"●"}
    assert masks(t).title.startswith("mask of encoder.layers.0.attention")


def test_each_text_of_a_batch_has_its_own() -> None:
    spec = put(language_model(), "layers.*.attention.mask", Causal())
    t = trace(exact(spec), call_of(spec, length=4, vocab=13))
    assert matrix(masks(t, row=0)) == ["●CCC", "●●CC", "●●●C", "●●●●"]
    assert matrix(masks(t, row=1)) == ["●CPP", "●●PP", "●●PP", "●●PP"]
    pair = trace(exact(translator()), call_of(translator(), length=4, vocab=13))
    assert matrix(masks(pair, "decoder.layers.0.cross", row=1)) == ["●●PP"] * 5


def test_bad_input_is_one_line() -> None:
    t = trace(exact(language_model()), [4, 5])
    with pytest.raises(ValueError, match=r"expected one of the attentions layers.0.attention, layers.1.att.*got 'x'"):
        masks(t, "x")
    with pytest.raises(ValueError, match="expected a text of 0 to 0, got 1"):
        masks(t, row=1)
    with pytest.raises(ValueError, match="padding inside"):
        mask_matrix(Causal(), 3, padding=[3])
    with pytest.raises(ValueError, match="at least 1"):
        mask_matrix(Causal(), 0)
