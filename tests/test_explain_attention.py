"""How far and how evenly heads look, and which kind they are, on patterns whose answer is known."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

import oneblock
from oneblock.explain import Trace, attention, detect, repeated, trace
from oneblock.explain.attention import distance, entropy, real, scores, targets
from oneblock.zoo import FAMILIES
from specs import exact, language_model, translator
from test_explain_trace import call_of
from test_families_cached import model_of

TEXT = [4, 5, 6, 7, 4, 5, 6, 7]


def with_heads(*heads: Tensor) -> Trace:
    """A trace of TEXT in which the heads of the first layer look where they are told; each (query, key)."""
    made = torch.stack(heads)[None].double()
    return trace(exact(language_model()), TEXT, edit={"layers.0.attention.pattern": lambda _: made})


def looking(back: int) -> Tensor:
    """Every query looks `back` tokens back, and at the first token where there is none."""
    pattern = torch.zeros(8, 8)
    for query in range(8):
        pattern[query, max(query - back, 0)] = 1.0
    return pattern


def uniform() -> Tensor:
    """Every query looks evenly at what it may see."""
    return torch.tril(torch.ones(8, 8)) / torch.arange(1, 9)[:, None]


def rows(table: Any, layer: str = "layers.0.attention") -> list[tuple[Any, ...]]:
    return [row[1:] for row in table if row[0] == layer]


def test_N18_previous_duplicate_and_induction_heads_are_found() -> None:
    table = detect(with_heads(looking(1), looking(4), looking(3), uniform()))
    found = rows(table)
    assert [row[-1] for row in found] == ["previous", "duplicate", "induction", None]
    assert [row[1] for row in found[:3]] == [1.0, pytest.approx(1 / 7), pytest.approx(1 / 7)]  # token 1 looks at 0
    assert [row[2] for row in found[:3]] == [0.0, 1.0, 0.0]
    assert [row[3] for row in found[:3]] == [0.0, 0.0, 1.0]


def test_even_attention_scores_what_is_said_to_be_chance() -> None:
    table = detect(with_heads(*[uniform()] * 4))
    even = sum(1 / (query + 1) for query in range(4, 8)) / 4
    assert rows(table)[0][1:] == (
        pytest.approx(sum(1 / (query + 1) for query in range(1, 8)) / 7), pytest.approx(even), pytest.approx(even), None
    )  # fmt: skip
    assert f"duplicate {even:.2f}" in table.notes[0]


def test_without_repeats_nothing_can_be_said_of_them() -> None:
    table = detect(trace(exact(language_model()), [4, 5, 6]))
    assert all(row[2:4] == (None, None) for row in rows(table))
    assert any("No token comes twice" in note for note in table.notes)
    assert "没有词元重复" in str(detect(trace(exact(language_model()), [4, 5, 6]), lang="zh"))


def test_targets_of_a_token_that_follows_itself() -> None:
    found = targets(torch.tensor([[4, 4, 5]]))
    assert found["duplicate"][0].int().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert found["induction"][0].int().tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]  # never the query itself


def test_hidden_places_are_no_targets() -> None:
    ids, seen = torch.tensor([[4, 5, 4]]), torch.tril(torch.ones(1, 3, 3)).bool()
    pattern = torch.eye(3)[None, None].double()
    found = scores(pattern, ids, seen, torch.ones(1, 3, dtype=torch.bool))
    assert found["duplicate"].tolist() == [0.0]  # of query 2 alone: query 0 may not look ahead


def test_entropy_of_even_attention_is_the_log_of_how_much_is_visible() -> None:
    assert entropy(torch.full((1, 1, 1, 7), 1 / 7).double()).item() == pytest.approx(math.log(7))
    assert entropy(torch.eye(3)[None, None]).tolist() == [[[0.0, 0.0, 0.0]]]
    found = rows(attention(with_heads(uniform(), looking(1), looking(0), uniform())))
    assert found[0][2] == pytest.approx(sum(math.log(n) for n in range(1, 9)) / 8)
    assert found[0][3] == pytest.approx(1.0)
    assert found[1][2:] == (0.0, 0.0)


def test_distance_is_in_tokens() -> None:
    found = rows(attention(with_heads(looking(1), looking(3), looking(0), uniform())))
    assert found[0][1] == pytest.approx(7 / 8)
    assert found[1][1] == pytest.approx((1 + 2 + 5 * 3) / 8)
    assert found[2][1] == 0.0
    assert found[3][1] == pytest.approx(sum(query / 2 for query in range(8)) / 8)
    assert distance(torch.tensor([[[[0.0, 0.0, 1.0]]]])).item() == 2.0


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_counts_neither_as_query_nor_as_key(side: str) -> None:
    model = exact(language_model())
    texts = {"input_ids": torch.tensor([[4, 5, 6, 7]]), "attention_mask": torch.ones(1, 4, dtype=torch.long)}
    at = slice(2, 6) if side == "left" else slice(0, 4)
    filled, mask = torch.zeros(1, 6, dtype=torch.long), torch.zeros(1, 6, dtype=torch.long)
    filled[0, at], mask[0, at] = texts["input_ids"][0], 1
    alone, padded = (attention(trace(model, call)) for call in (texts, {"input_ids": filled, "attention_mask": mask}))
    for one, other in zip(alone, padded, strict=True):
        assert one[:2] == other[:2]
        assert one[2:] == pytest.approx(other[2:])
    assert real(trace(model, {"input_ids": filled, "attention_mask": mask}), "", 6).int().tolist() == mask.tolist()


@pytest.mark.parametrize("name", FAMILIES)
def test_N18_every_family_has_a_line_for_each_layer_and_head(name: str) -> None:
    model = model_of(name)
    t = trace(model, call_of(model.spec))
    table = attention(t)
    patterns = {step.path.rpartition(".")[0]: step.shape[1] for step in t if step.kind == "step.pattern"}
    assert len(table) == sum(patterns.values())
    for row in table:
        assert (row[2] is None) == row[0].endswith(".cross")
        assert 0 <= row[4] <= 1 + 1e-9
    assert {row[0] for row in detect(t)} == {path for path in patterns if not path.endswith(".cross")}


def test_repeated_ids_are_said_twice_and_none_is_special() -> None:
    model = exact(language_model())
    ids = repeated(model, 5, seed=1)
    assert ids.shape == (1, 10)
    assert ids[0, :5].tolist() == ids[0, 5:].tolist()
    assert repeated(model, 5, seed=1).equal(ids)
    pair = exact(translator())
    assert not set(repeated(pair, 200)[0].tolist()) & {0, 1, 2}
    with pytest.raises(ValueError, match="expected a length of at least 1, got 0"):
        repeated(model, 0)


def test_N18_the_translator_in_the_package_has_heads_that_look_at_the_previous_token() -> None:
    table = detect(trace(oneblock.Translator.default(), "我爱你"))
    assert "previous" in table.column("looks like")


@pytest.mark.parametrize(
    "text",
    [
        "我爱你",
        "今天天气很好，我们去公园散步吧。",
        "她比她姐姐高。",
        "I would like to know why you did not come yesterday.",
    ],
)
def test_N18_later_layers_of_the_packaged_encoder_look_further_those_of_its_decoder_nearer(text: str) -> None:
    far: dict[str, list[float]] = {}
    for path, _, distance_, *_ in attention(trace(oneblock.Translator.default(), text)):
        if distance_ is not None:
            far.setdefault(str(path), []).append(float(distance_))
    means = {path: sum(values) / len(values) for path, values in far.items()}
    encoder = [value for path, value in means.items() if path.startswith("encoder.")]
    decoder = [value for path, value in means.items() if path.startswith("decoder.")]
    assert len(encoder) == len(decoder) == 3
    assert encoder == sorted(encoder)
    assert decoder == sorted(decoder, reverse=True)


def test_a_module_without_attention_of_ours_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a trace of a model of ours with attention"):
        attention(trace(torch.nn.Linear(2, 2), torch.ones(1, 2)))
