"""The translator: order, directions, empty and long texts, and options that must not change the answer."""

from importlib import import_module

import pytest
import torch

import oneblock
from oneblock import weights
from oneblock.bricks import build_model
from oneblock.generate import Translation, Translator, score, translate
from oneblock.spec import Learned
from oneblock.text import Tokenizer
from oneblock.zoo import named

PAIRS = [
    ("I love you.", "我爱你。"),
    ("You love me.", "你爱我。"),
    ("Hello, big world!", "你好，大世界！"),
    ("He left.", "他走了。"),
]
ENGLISH, CHINESE = (list(side) for side in zip(*PAIRS, strict=True))
LINES = [line for pair in PAIRS for line in pair]
ANSWERS = [line for pair in PAIRS for line in reversed(pair)]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(LINES * 3, vocab=330, languages=("en", "zh"))


def make(tokenizer, length=None, steps=0):
    torch.manual_seed(5)
    spec = named("vaswani", dim=24, depth=1, heads=2, hidden=48, vocab=len(tokenizer), dropout=0.1, length=length)
    model = build_model(spec).double()
    if steps:
        learn(model, tokenizer, steps)
    return Translator(model, tokenizer)


def learn(model, tokenizer, steps):
    """Learn the pairs by heart, in both directions."""
    model.eval()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    directions = [(a, b, "zh") for a, b in PAIRS] + [(b, a, "en") for a, b in PAIRS]
    ids = padded([tokenizer.encode(source, to) for source, _, to in directions], 0)
    labels = padded([tokenizer.encode(target) for _, target, _ in directions], -100)
    for _ in range(steps):
        model(ids, attention_mask=(ids != 0).long(), labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.train()


def padded(rows, value):
    tensors = [torch.tensor(row) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=value)


@pytest.fixture(scope="module")
def translator(tokenizer):
    return make(tokenizer, steps=80)


@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("rule", ["never", False, True])
def test_N12_a_model_that_knows_the_answers_gives_them_in_the_order_of_the_texts(translator, beam, rule):
    alone = [translator(line, beam=beam, early_stopping=rule)[0] for line in LINES]
    assert [t.text for t in alone] == ANSWERS
    assert all(t.finished and not t.cut for t in alone)
    for batch_tokens in (1, 20, 10_000):
        found = translator(LINES, beam=beam, early_stopping=rule, batch_tokens=batch_tokens)
        assert [(t.source, t.text, t.to) for t in found] == [(t.source, t.text, t.to) for t in alone]
        assert [t.score for t in found] == pytest.approx([t.score for t in alone], abs=1e-5)


def test_the_direction_goes_by_the_script_of_each_line(translator):
    assert [t.to for t in translator(LINES)] == ["zh", "en"] * 4
    assert [t.to for t in translator(LINES, to="en")] == ["en"] * 8
    assert translator("我爱你。")[0] == translator("我爱你。", to="en")[0]
    assert translator("我爱你。")[0].score != translator("我爱你。", to="zh")[0].score


def test_nothing_in_nothing_out(translator):
    assert translator([]) == []
    assert translator("")[0] == Translation("", "", to="zh")
    found = translator(["我爱你。", "", " \n", "你爱我。"])
    assert [t.text for t in found[1:3]] == ["", ""]
    assert [found[0], found[3]] == [translator("我爱你。")[0], translator("你爱我。")[0]]


def test_a_string_for_a_string(translator, tmp_path):
    assert translate("我爱你。", translator) == str(translator("我爱你。")[0]) == "I love you."
    weights.save(translator.model, tmp_path)
    translator.tokenizer.save(tmp_path)
    assert Translator.load(tmp_path).model.spec == translator.model.spec
    assert translate("我爱你。", tmp_path) == translate("我爱你。", str(tmp_path), to="en") == "I love you."
    with pytest.raises(ValueError, match="nowhere"):
        translate("我爱你。", tmp_path / "nowhere")
    with pytest.raises(TypeError, match="beams"):
        translate("我爱你。", tmp_path, beams=3)


def test_the_translator_in_the_package_is_read_once_and_is_the_default(translator, tmp_path, monkeypatch):
    weights.save(translator.model, tmp_path)
    translator.tokenizer.save(tmp_path)
    monkeypatch.setattr(import_module("oneblock.generate.translator"), "PACKAGED", tmp_path)
    assert Translator.default() is Translator.default()
    assert oneblock.translate("我爱你。") == Translator.default()("我爱你。")[0].text == "I love you."


def test_alternatives_are_the_next_best_and_scores_are_means_of_log_probabilities(translator):
    best = translator("我爱你。", n_best=3, max_length=8)[0]
    assert len(best.alternatives) == 2
    assert best.score >= best.alternatives[0].score >= best.alternatives[1].score
    assert translator("我爱你。", max_length=8)[0].text == best.text
    free = translator("我爱你。", max_length=8, length_penalty=0.0, n_best=5)[0]
    assert free.score >= free.alternatives[-1].score


def test_a_score_is_that_of_forced_decoding(translator, tokenizer):
    answer = translator("你好，大世界！", length_penalty=0.0)[0]
    source, target = (torch.tensor([tokenizer.encode(*text)]) for text in ((answer.source, "en"), (answer.text,)))
    translator.model.eval()
    logprob = score(translator.model, source, target)
    translator.model.train()
    assert float(logprob.sum()) == pytest.approx(answer.score, abs=1e-4)
    penalised = translator("你好，大世界！", length_penalty=1.0)[0]
    assert penalised.score == pytest.approx(answer.score / target.shape[1], abs=1e-5)


def test_max_length_is_exact_and_told(translator):
    for size in (0, 1, 4):
        found = translator("你好，大世界！", max_length=size, beam=2)[0]
        assert found.finished is False
    assert translator("你好，大世界！", max_length=0)[0].text == ""


def test_a_long_text_is_translated_in_pieces_and_nothing_is_lost(tokenizer):
    short = make(tokenizer, length=9, steps=80)
    text = "我爱你。你爱我。 他走了。"
    found = short(text, n_best=2)[0]
    assert len(tokenizer.encode(text, "en")) > 9
    assert (found.source, found.text) == (text, "I love you. You love me. He left.")
    assert (found.to, found.cut, found.finished) == ("en", "", True)
    assert len(found.alternatives) == 1
    parts = [short(part)[0] for part in ("我爱你。", "你爱我。", "他走了。")]
    sizes = [len(tokenizer.encode(part.text)) for part in parts]
    total = sum(part.score * size for part, size in zip(parts, sizes, strict=True))
    assert found.score == pytest.approx(total / sum(sizes), abs=1e-5)
    assert short("I love you. He left. You love me.")[0].text == "我爱你。他走了。你爱我。"


def test_what_is_too_long_for_any_piece_is_cut_and_told(tokenizer):
    short = make(tokenizer, length=9)
    found = short("爱" * 20 + "。我爱你。")[0]
    assert set(found.cut) == {"爱", "。"}
    assert 8 < len(found.cut) < 20
    assert found.text.endswith(short("我爱你。", to="en")[0].text)
    assert short("我爱你。")[0].cut == ""


def test_the_model_is_left_in_the_mode_it_was_found_in(translator):
    model = translator.model
    model.train()
    model.encoder.eval()
    modes = {name: module.training for name, module in model.named_modules()}
    state = torch.get_rng_state()
    first = translator(LINES)
    assert {name: module.training for name, module in model.named_modules()} == modes
    assert (torch.get_rng_state() == state).all()
    assert first == translator(LINES)


def test_progress_counts_pieces_and_equal_texts_are_translated_once(translator):
    seen = []
    found = translator(LINES + LINES, batch_tokens=20, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(LINES), len(LINES))
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert found[: len(LINES)] == found[len(LINES) :]
    assert 1 < len(seen) < len(LINES)
    seen.clear()
    translator(LINES, batch_tokens=10_000, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(len(LINES), len(LINES))]


def test_one_language_or_none_needs_no_script():
    one = Tokenizer.train(LINES * 3, vocab=330, languages=("de",))
    assert make(one)("我爱你。")[0].to == "de"
    none = Tokenizer.train(LINES * 3, vocab=330)
    assert make(none)("我爱你。")[0].to is None
    two = Tokenizer.train(LINES * 3, vocab=330, languages=("de", "en"))
    with pytest.raises(ValueError, match=r"text 2: to: .*'de', 'en'"):
        make(two)(["我爱你。", "I love you."])


def test_what_cannot_be_translated_is_refused_in_one_line(translator, tokenizer):
    for arguments, message in (
        ({"to": "fr"}, "'fr'"),
        ({"beam": 0}, "beam"),
        ({"batch_tokens": 0}, "batch_tokens"),
        ({"max_length": -1}, "max_length"),
    ):
        with pytest.raises(ValueError, match=message) as error:
            translator(["我爱你。"], **arguments)
        assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match=r"text 2: .*surrogate"):
        translator(["a", "\ud800"])
    with pytest.raises(ValueError, match="text 1: expected a string, got NoneType"):
        translator([None])
    with pytest.raises(ValueError, match="encoder-decoder"):
        Translator(torch.nn.Linear(2, 2), tokenizer)
    small = named("vaswani", dim=16, depth=1, heads=2, hidden=32, vocab=len(tokenizer) - 1)
    with pytest.raises(ValueError, match="tokenizer"):
        Translator(build_model(small), tokenizer)


def test_a_model_whose_vocabulary_is_padded_to_a_round_number(tokenizer):
    torch.manual_seed(1)
    model = build_model(named("vaswani", dim=8, depth=1, heads=2, hidden=16, vocab=len(tokenizer) + 2000))
    found = Translator(model, tokenizer)("我爱你。", max_length=5)[0]
    assert isinstance(found.text, str)


def test_no_translation_is_longer_than_the_decoder_has_positions(tokenizer):
    torch.manual_seed(0)
    spec = named("vaswani", dim=8, depth=1, heads=2, hidden=16, vocab=len(tokenizer), position=Learned(length=12))
    found = Translator(build_model(spec), tokenizer)("你好，大世界！", max_length=100)[0]
    assert not found.finished
