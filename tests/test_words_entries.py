"""Every brick a spec can hold has a name, a sentence and a formula, in English and in Chinese."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from oneblock.draw.compare import TOPICS
from oneblock.spec import Activation, Pooling, Wiring
from oneblock.tree import TYPES
from oneblock.words import ENTRIES, LABELS, LANGUAGES, label, language, say

CHINESE = re.compile(r"[\u4e00-\u9fff]")
VARIANTS = [
    "Attention.self",
    "Attention.causal",
    "Attention.cross",
    "FeedForward.plain",
    "FeedForward.gated",
    "Head.tied",
    "Softmax.renormalised",
    "qk_norm",
    "softcap",
    "expert",
    "step.router",
    "step.weights",
    "step.mix",
    "step.labels",
    "Embedding.segment",
    "residual",
    "dropout",
    "encoder",
    "decoder",
]
WORDS = [*(f"wiring.{word}" for word in get_args(Wiring)), *(f"pool.{word}" for word in get_args(Pooling))]
KINDS = [*TYPES, *VARIANTS, *WORDS, *get_args(Activation)]


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_type_of_a_spec_has_words(kind: str, lang: str) -> None:
    said = say(kind, lang)
    assert said.name
    assert said.purpose
    assert said.purpose[-1] in ".。"
    assert bool(CHINESE.search(said.purpose)) == (lang == "zh")
    if kind != "Tokens":
        assert said.formula
        assert said.latex


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("kind", ENTRIES)
def test_every_entry_is_a_name_and_a_sentence_in_its_language(kind: str, lang: str) -> None:
    said = say(kind, lang)
    assert said.name
    assert said.purpose[-1] == ("。" if lang == "zh" else ".")
    assert bool(CHINESE.search(said.purpose)) == (lang == "zh")
    assert not CHINESE.search(said.formula + said.symbol)


def test_every_topic_of_a_comparison_has_words() -> None:
    assert {f"topic.{topic}" for topic in TOPICS} == {kind for kind in ENTRIES if kind.startswith("topic.")}


def test_a_type_may_be_asked_for_itself() -> None:
    assert all(say(cls) == say(name) for name, cls in TYPES.items())


@pytest.mark.parametrize("kind", ENTRIES)
def test_latex_is_balanced(kind: str) -> None:
    latex = say(kind).latex
    assert latex.count("{") == latex.count("}")
    assert not CHINESE.search(latex)


def test_labels_take_the_same_filling_in_both_languages() -> None:
    for english, chinese in LABELS.values():
        assert english.count("{}") == chinese.count("{}")


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("Attention", "注意力"),
        ("Attention.cross", "交叉注意力"),
        ("Attention.causal", "因果"),
        ("FeedForward", "前馈网络"),
        ("FeedForward.gated", "门控"),
        ("LayerNorm", "层归一化"),
        ("Rope", "旋转位置编码"),
        ("Embedding", "词嵌入"),
        ("Block", "积木块"),
        ("encoder", "编码器"),
        ("decoder", "解码器"),
        ("residual", "残差"),
        ("dropout", "随机失活"),
        ("wiring.pre", "前置归一化"),
        ("wiring.post", "后置归一化"),
        ("step.query", "查询"),
        ("step.key", "键"),
        ("step.value", "值"),
        ("step.scores", "注意力分数"),
        ("step.pattern", "注意力权重"),
    ],
)
def test_chinese_names_are_those_of_the_notes(english: str, chinese: str) -> None:
    assert chinese in say(english, "zh").name


def test_N5_E1_cross_attention_asks_from_the_decoder() -> None:
    assert "decoder asks (query)" in say("Attention.cross", "en").purpose
    assert "解码器发问（查询）" in say("Attention.cross", "zh").purpose


def test_language_is_asked_for_then_set_then_the_locale() -> None:
    assert language("en", {"ONEBLOCK_LANG": "zh"}) == "en"
    assert language(None, {"ONEBLOCK_LANG": "zh", "LANG": "en_GB.UTF-8"}) == "zh"
    assert language(None, {"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}) == "en"
    assert language(None, {"LANG": "zh_CN.UTF-8"}) == "zh"
    assert language(None, {}) == "en"


@pytest.mark.parametrize("call", [lambda: say("Atention"), lambda: say("Rope", "fr"), lambda: label("nothing like it")])
def test_what_has_no_words_is_refused_in_one_line(call) -> None:
    with pytest.raises(ValueError, match=r"^\w+: [^\n]+$"):
        call()
