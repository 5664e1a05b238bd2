"""A trace as a worked exercise: its numbers are the trace's, its sums are right, and no language changes one."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest
import torch

import oneblock
from oneblock.explain import Trace, trace
from oneblock.explain.arithmetic import shares
from oneblock.explain.lens import best, candidates, lens
from oneblock.explain.worked import Exercise, exercise
from oneblock.explain.worked.choose import stacks
from oneblock.explain.worked.data import data
from oneblock.explain.worked.number import shown
from oneblock.explain.worked.text import text
from oneblock.spec import Causal, Window, put
from oneblock.words import LANGUAGES, say
from oneblock.zoo import FAMILIES
from specs import exact, language_model, translator
from test_explain_trace import call_of
from test_families_cached import model_of

PHI = {"π": math.pi, "phi": lambda x: (1 + math.erf(x / 2**0.5)) / 2, "inf": math.inf} | {
    name: getattr(math, name) for name in ("sqrt", "exp", "tanh", "sin", "cos", "log")
}


@lru_cache
def made_of(name: str) -> tuple[Trace, Exercise]:
    model = model_of(name)
    torch.manual_seed(0)
    found = trace(model, call_of(model.spec))
    return found, exercise(found, layer=1, head=1, token=2)


def computed(how: str) -> float:
    """The value of a written sum."""
    said = how.replace("−", "-").replace("·", "*").replace("²", "**2").replace("³", "**3").replace("½", "0.5*")
    said = said.replace("e^-(", "exp(-(1)*").replace("e^(", "exp(").replace("Φ", "phi").replace("∞", "inf")
    said = re.sub(r"√([\d.]+)", r"sqrt(\1)", said).replace("√", "sqrt").replace("^", "**")
    said = re.sub(r"\b(cos|sin|log) (-?[\d.]+(?:e-\d+)?)", r"\1(\2)", re.sub(r"(\d),(\d{3})", r"\1\2", said))
    return float(eval(said, dict(PHI)))  # our own arithmetic


def every_line(made: Exercise) -> list[Any]:
    lines = [line for section in made.sections for step in section.steps for line in step.lines]
    return lines + [
        line for section in made.sections if section.maps for cell in section.maps.cells for line in cell.lines
    ]


@pytest.mark.parametrize("name", FAMILIES)
def test_N22_a_sum_that_is_written_out_gives_the_number_behind_it(name: str) -> None:
    whole = [line for line in every_line(made_of(name)[1]) if line.how and not re.search(r"[\[…]|var", line.how)]
    assert len(whole) > 20
    for line in whole:
        size = 1 + sum(abs(float(x)) for x in re.findall(r"\d+\.\d+", line.how))
        assert computed(line.how) == pytest.approx(line.value, abs=0.003 * size), line


@pytest.mark.parametrize("name", FAMILIES)
def test_N22_the_numbers_of_an_exercise_are_those_of_its_trace(name: str) -> None:
    found, made = made_of(name)
    for section in made.sections:
        for step in section.steps:
            tensor = found[step.path].tensor
            assert step.statistics == found[step.path].statistics
            if step.row:
                inner = tensor[0] if found[step.path].dims[0] == "B" else tensor
                assert inner[step.index][: len(step.row)].tolist() == list(step.row)
        if section.maps:
            for at, head in section.maps.heads.items():
                for part, last in (("scores", "scores"), ("masked", "masked"), ("weights", "pattern")):
                    assert [list(row) for row in getattr(head, part)] == found[f"{section.path}.{last}"].tensor[
                        0, at
                    ].tolist()


@pytest.mark.parametrize("name", FAMILIES)
def test_any_cell_has_its_arithmetic(name: str) -> None:
    found, made = made_of(name)
    for maps in (section.maps for section in made.sections if section.maps):
        heads, queries, keys = found[f"{maps.path}.pattern"].shape[1:]
        assert len(maps.cells) == heads * queries * keys
        for cell in maps.cells:
            place = (0, cell.head, cell.query, cell.key)
            q, k = (found[f"{maps.path}.{side}"].tensor for side in ("query", "key"))
            owner = cell.head * k.shape[1] // heads
            scale = found[f"{maps.path}.scores"].operands["scale"].value
            assert (scale * q[0, cell.head, cell.query] @ k[0, owner, cell.key]).item() == pytest.approx(
                cell.lines[0].value
            )
            assert cell.lines[-1].value == found[f"{maps.path}.pattern"].tensor[place].item()


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", FAMILIES)
def test_every_step_is_shown_with_its_formula_sentence_and_shape(name: str, lang: str) -> None:
    found, made = made_of(name)
    said = text(made, lang)
    paths = {step.path for section in made.sections for step in section.steps}
    last = {stack: len(model.layers) - 1 for stack, model in stacks(found.spec).items()}
    shown_ = [f"{stack}layers.{min(1, depth)}." for stack, depth in last.items()]
    assert paths == {s.path for s in found if "layers." not in s.path or s.path.startswith(tuple(shown_))}
    for section in made.sections:
        for step in section.steps:
            words = say(step.kind, lang)
            assert step.written.formula
            assert f"{step.written.formula}   {words.purpose}" in said
            assert f"({', '.join(step.dims)}) = ({', '.join(map(str, step.shape))})" in said or not step.dims
    assert [step.number for section in made.sections for step in section.steps] == list(range(1, len(paths) + 1))


@pytest.mark.parametrize("name", ["vaswani", "gpt2", "t5", "mixtral"])
def test_switching_the_language_changes_no_number(name: str) -> None:
    made = made_of(name)[1]
    english, chinese = (
        Counter(re.findall(r"[−\d][\d.,e−]*", text(made, lang).replace("，", " "))) for lang in LANGUAGES
    )
    numbers = {
        lang: Counter(x.strip(".,") for x in found.elements())
        for lang, found in zip(LANGUAGES, (english, chinese), strict=True)
    }
    assert numbers["en"] == numbers["zh"]
    words = ("name", "purpose", "formula", "symbol")

    def bare(x: Any) -> Any:
        if isinstance(x, dict):
            return {key: bare(value) for key, value in x.items() if key not in words}
        return [bare(one) for one in x] if isinstance(x, list) else x

    assert bare(data(made, "en")) == bare(data(made, "zh"))


def test_N3_a_mask_prints_with_its_causes() -> None:
    spec = put(language_model(), "layers.*.attention.mask", Causal() & Window(2))
    call = {"input_ids": torch.tensor([[0, 4, 5, 6]]), "attention_mask": torch.tensor([[0, 1, 1, 1]])}
    lines = [" ".join(line.split()) for line in text(exercise(trace(exact(spec), call))).splitlines()]
    at = lines.index("mask of layers.0.attention: rows are queries, columns are keys")
    assert lines[at + 1 : at + 10] == [
        "q \\ k 0 4 5 6",
        "0 P C C C",
        "4 P ● C C",
        "5 P ● ● C",
        "6 P W ● ●",
        "● seen: the query may look at the key",
        "C causal: the key stands after the query",
        "W window: the key stands too far away",
        "P padding: the key is no token but padding",
    ]


def test_N1_E11_a_row_of_the_softmax_is_worked_by_hand_and_hidden_keys_get_0() -> None:
    found = trace(exact(language_model()), [4, 5, 6, 7])
    step = next(s for s in exercise(found, token=1).sections[1].steps if s.softmax)
    row = step.softmax
    assert row is not None
    assert row.weights[2:] == row.exps[2:] == (0.0, 0.0)
    assert row.largest == max(row.scores)
    assert row.sum == pytest.approx(sum(row.exps))
    assert [e / row.sum for e in row.exps] == pytest.approx(row.weights)


@pytest.mark.parametrize("name", ["vaswani", "gpt2", "bert", "neox", "gemma2"])
def test_N6_the_stream_is_followed_through_all_blocks(name: str) -> None:
    found, made = made_of(name)
    for stack, rows in made.additions.items():
        at = made.chosen.token[stack]
        for one in rows[1:]:
            step = found[one.path]
            branch = [step.operands[x].value for x in ("branch", "attention", "feedforward") if x in step.operands]
            x, f = step.operands["x"].value[0, at], sum(branch)[0, at] * step.operands["branch_scale"].value
            assert (one.before, one.added) == pytest.approx((x.norm().item(), f.norm().item()))
            assert one.ratio == pytest.approx((f.norm() / x.norm()).item())
            assert one.after == pytest.approx(step.tensor[0, at].norm().item())
        depth = len(getattr(found.spec, stack.rstrip("."), found.spec).layers)
        assert len(rows) >= 1 + depth


def test_N2_dividing_makes_the_variance_of_scores_smaller_by_the_width() -> None:
    made = made_of("gpt2")[1]
    lines = {line.name: line.value for step in made.sections[1].steps for line in step.lines}
    assert lines["var(s)"] == pytest.approx(lines["var(q·k)"] / 4)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_lens_after_the_last_block_is_what_the_model_says(name: str) -> None:
    found = made_of(name)[0]
    ends, seen = candidates(found, top=3), lens(found, top=3)
    assert ends is not None
    assert seen is not None
    for there, here in zip(seen.best[-1], ends.best, strict=True):
        assert [one.id for one in there] == [one.id for one in here]
        assert [one.probability for one in there] == pytest.approx([one.probability for one in here])
    logits = found.output.logits[0].double()
    assert [best[0].probability for best in ends.best] == pytest.approx(logits.softmax(-1).amax(-1).tolist())
    assert seen.final[-1] == pytest.approx([best[0].probability for best in ends.best])
    assert [one.logit for one in ends.answers if one] == pytest.approx(
        [logits[at, one.id].item() for at, one in enumerate(ends.answers) if one]
    )


def test_the_likeliest_are_those_of_sorting_the_whole_vocabulary() -> None:
    logits = torch.randint(0, 4, (20, 30), generator=torch.Generator().manual_seed(0)).double()
    found = best(logits, shares(logits), str, 5)
    assert [[one.id for one in row] for row in found] == logits.argsort(dim=-1, descending=True, stable=True)[
        :, :5
    ].tolist()
    assert [len(row) for row in best(logits[:, :3], shares(logits[:, :3]), str, 5)] == [3] * 20
    assert len(best(torch.full((1, 4), math.nan), torch.full((1, 4), math.nan), str, 2)[0]) == 2


def test_the_loss_is_the_mean_surprise_at_the_answers() -> None:
    found = trace(exact(translator()), {"input_ids": [5, 6, 7]}, target=[5, 6, 2])
    made = exercise(found)
    assert made.candidates is not None
    lost = [-math.log(one.probability) for one in made.candidates.answers if one]
    assert made.loss == pytest.approx(sum(lost) / 3)
    assert "What the decoder reads is what it should say, shifted right by one" in text(made)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"layer": 2}, "layer: expected 0 to 1 (layers: model 2), got 2"),
        ({"layer": -1}, "layer: expected 0 to 1"),
        ({"head": 4}, "head: expected 0 to 3 (the block has 4 heads), got 4"),
        ({"token": 3}, "token: expected 0 to 2 of 4 5 6, got 3"),
        ({"token": "44"}, "token: expected 0 to 2 of 4 5 6, got '44'; did you mean 4?"),
        ({"only": "layers.0.attention.patern"}, "did you mean layers.0.attention.pattern?"),
    ],
)
def test_beyond_what_there_is_is_refused_in_one_line(choice: dict[str, Any], said: str) -> None:
    found = trace(exact(language_model()), [4, 5, 6])
    with pytest.raises(ValueError, match=re.escape(said)) as raised:
        exercise(found, **choice)
    assert "\n" not in str(raised.value)


def test_a_foreign_module_is_refused() -> None:
    with pytest.raises(ValueError, match="adopt"):
        exercise(trace(torch.nn.Linear(2, 2), torch.ones(1, 2)))


def test_a_token_is_found_by_how_it_reads() -> None:
    found = replace(trace(exact(language_model()), [4, 5, 6]), tokens={"": ("▁I", "▁love", "love")})
    assert [exercise(found, token=word).chosen.token[""] for word in ("▁love", "love", "I", 1)] == [1, 2, 0, 1]


def test_only_the_steps_that_were_asked_for_are_shown() -> None:
    found = trace(exact(language_model()), [4, 5, 6])
    made = exercise(found, only="layers.*.stream*")
    assert [step.path for section in made.sections for step in section.steps] == [
        "layers.0.stream", "layers.0.stream#2", "layers.1.stream", "layers.1.stream#2",
    ]  # fmt: skip
    assert {section.path for section in made.sections} == {
        f"layers.{layer}.{sublayer}" for layer in (0, 1) for sublayer in ("attention", "feedforward")
    }
    assert "logit lens" not in text(made)


def test_numbers_are_written_the_same_everywhere() -> None:
    assert shown(-0.0) == "0"
    assert shown(0.0004) == "4.0e−04"
    assert shown(math.nan) == "NaN"
    assert shown(-12345.6) == "−12,346"


def test_the_packaged_translator_shows_what_the_notes_describe() -> None:
    """N1 to N13 can each be pointed at."""
    holder = oneblock.Translator.default()
    said = text(exercise(trace(holder, "我爱你"), name=lambda at: holder.tokenizer.token(at), text="我爱你"))
    for fact in (
        "softmax(q kᵀ / √64) v W_O", "One row of the softmax by hand", "var(q·k)", "C causal", "(h, L_q, L_k) = (4,",
        "concat(z) W_O", "Self-attention", "Cross-attention", "‖f(x)‖ / ‖x‖", "√(σ² + ε)", "σ² = ", "ReLU(x W_up",
        "(L, d_ff) = ", "Pre-norm", "one-hot", "sin² + cos²", "PE[", "N_enc = 3", "Causal self-attention", "should say",
    ):  # fmt: skip
        assert fact in said, fact
