"""Every term of a cost has a formula that gives its number, and a name and a sentence in English and Chinese."""

from __future__ import annotations

import re
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneblock.cost import COLUMNS, Cost, Term, bound, cost, crossovers, machine, parameters
from oneblock.cost.job import writes
from oneblock.draw.bill import bills
from oneblock.draw.invoice import conventions, listing, summary, table
from oneblock.spec import Alibi, Attention, Block, Causal, Embedding, FeedForward, Full, Model, Seq2Seq, Spec, put
from oneblock.words import ENTRIES, LANGUAGES, say
from oneblock.zoo import FAMILIES, named
from specs import specs

WAYS = ("fused", "plain", "recomputed", None)
H100 = machine("nvidia-h100")


def terms(found: Cost) -> list[Term]:
    return [term for line in found.lines for term in line.terms]


def phases(spec: Spec) -> list[str]:
    return ["train", "prefill", *(["decode"] if writes(getattr(spec, "decoder", spec)) else [])]


@settings(max_examples=60, deadline=None)
@given(spec=specs, batch=st.integers(1, 3), length=st.integers(1, 30), way=st.sampled_from(WAYS))
def test_a_formula_gives_its_number_and_has_a_sentence_in_each_language(
    spec: Spec, batch: int, length: int, way: Any
) -> None:
    for phase in phases(spec):
        for term in terms(cost(spec, batch, length, phase, attention=way)):
            written = term.form.text.replace("·", "*")
            assert re.fullmatch(r"[\w *+]+", written)
            assert term.value == eval(written, {}, term.sizes) >= 0
            assert set(term.sizes) == term.form.names
            assert term.form.latex.count("{") == term.form.latex.count("}")
            assert all(say(f"cost.{term.name}", lang).purpose for lang in LANGUAGES)


def test_every_word_of_a_price_is_said_of_something() -> None:
    odd = Model(8, Embedding(9), (Block(Attention(2, position=Alibi()), FeedForward(8)),))
    every = [*(named(name) for name in FAMILIES), odd, put(named("gpt2"), "layers.*.feedforward.activation", "relu")]
    every.append(named("bert", length=512))
    found = {
        term.name
        for spec, way, loss in product(every, WAYS, ("whole", "chunked"))
        for phase in phases(spec)
        for term in terms(cost(spec, phase=phase, attention=way, length=64, loss=loss))
    }
    heads = {"labels", "pool", "kept.places"}  # of models that answer once for a text
    known = {kind.removeprefix("cost.") for kind in ENTRIES if kind.startswith("cost.")} - {"shared"}
    assert known - heads == found
    assert {f"column.{column}" for column in COLUMNS} == {kind for kind in ENTRIES if kind.startswith("column.")}


@settings(max_examples=40, deadline=None)
@given(spec=specs, batch=st.integers(1, 3))
def test_lines_hold_all_parameters_and_rows_all_lines(spec: Spec, batch: int) -> None:
    found = cost(spec, batch, 12, "train", "float32")
    assert sum(line.times * line.parameters for line in found.lines) == parameters(spec)
    assert (
        found.totals["weights"] == found.totals["gradients"] == found.totals["optimiser"] // 2 == 4 * parameters(spec)
    )
    rows = bills(found, H100)
    assert rows[0].sums == found.totals
    deepest = [row for row, after in zip(rows, [*rows[1:], None], strict=True) if not after or after.level <= row.level]
    whole = [row for row in deepest if not row.path.endswith(("q_norm", "k_norm"))]
    norms = [row for row in deepest if row not in whole]
    above = [row for row, after in pairwise(rows) if after in norms and row not in norms]
    for column in COLUMNS:
        assert sum(row.sums[column] for row in [*whole, *norms, *above]) == found.totals[column]


@pytest.mark.parametrize("name", [*FAMILIES, "llama3-8b"])
def test_switching_language_changes_no_number(name: str) -> None:
    found = cost(named(name), phase="train", length=128)

    def numbers(lang: str) -> list[str]:
        rows = bills(found, H100, lang)
        said = [table(rows, found, lang), *summary(found, H100, lang), *conventions(found, lang), *listing(rows, lang)]
        return re.findall(r"\d+(?:[.,]\d+)*(?: [kMGTP]\b)?", "\n".join(said).replace("float32", ""))

    assert numbers("en") == numbers("zh")
    assert len(numbers("en")) > 100


def test_a_narrow_terminal_gets_fewer_columns() -> None:
    found = cost(named("vaswani"), phase="train")
    rows = bills(found, H100)
    whole = max(map(len, table(rows, found, "en").splitlines()))
    for room in (whole, whole - 1, 110, 80):
        assert max(map(len, table(rows, found, "en", room).splitlines())) <= room
    assert table(rows, found, "en", whole) == table(rows, found, "en")
    assert "at least" in table(rows, found, "en", 20)


def test_E13_crossovers_of_the_block_of_2017() -> None:
    """FLOPs of scores are the feed-forward's at 4 dim and all other products' at 6 dim. Kept for backward, written-out
    scores are all else at 7 head_dim with masks in the numbers' own type: 34 / 5 = 6.8 with masks of a byte."""
    spec = named("vaswani")
    first, second, third = crossovers(spec)
    assert (first.length, first.times, first.of) == (2048, 4, "dim")
    assert (second.length, second.times, second.of) == (3072, 6, "dim")
    assert third.of == "head_dim"
    assert third.times == pytest.approx(6.8, abs=0.25)


@pytest.mark.parametrize("name", ["vaswani", "gpt2", "llama3-8b", "mixtral", "gemma2"])
def test_E13_at_a_crossover_both_sides_are_equal(name: str) -> None:
    spec = named(name)
    stack = getattr(spec, "encoder", spec)
    for one in crossovers(spec):
        long = put(stack, "layers.length", 1)
        length = round(one.length)
        long = put(long, "embedding.position.length", 2 * length) if name == "gpt2" else long
        found = cost(long, length=length, phase="train", attention="plain")
        block = [line for line in found.lines if line.layers]
        column = "activations" if one.name == "scores.kept" else "forward"
        square = linear = 0
        for line in block:
            for term in line.terms:
                if term.column == column and (
                    one.name != "scores.feedforward"
                    or line.path.endswith("feedforward")
                    or term.name in ("scores", "mix")
                ):
                    both = {"tokens", "keys"} <= term.form.names
                    square, linear = (square + term.value, linear) if both else (square, linear + term.value)
        assert square == pytest.approx(linear, rel=0.01)


def test_N17_N24_what_a_change_of_the_block_costs() -> None:
    """Width of the feed-forward is parameters, length is scores, fewer keys and values are cache and nothing of FLOPs
    at the scores, and norms and residuals cost no product at all."""
    spec = named("gpt2")
    wide = put(spec, "layers.*.feedforward.hidden", 2 * 3072)
    assert parameters(wide) - parameters(spec) == 12 * (2 * 768 * 3072 + 3072)
    grouped = put(spec, "layers.*.attention.kv_heads", 3)
    assert cost(grouped).totals["cache"] * 4 == cost(spec).totals["cache"]
    scores = [term.value for term in terms(cost(spec)) if (term.column, term.name) == ("forward", "scores")]
    assert scores == [term.value for term in terms(cost(grouped)) if (term.column, term.name) == ("forward", "scores")]
    found = cost(spec)
    assert all(line.sums["forward"] == 0 for line in found.lines if ".norms." in line.path)


def test_ways_of_attention_trade_memory_for_products() -> None:
    spec = named("gpt2", attention_dropout=0.0)
    plain, fused, again = (cost(spec, phase="train", attention=way) for way in ("plain", "fused", "recomputed"))
    assert plain.forward == fused.forward == again.forward
    assert plain.backward == 2 * plain.forward
    assert plain.backward < fused.backward == again.backward
    assert plain.totals["activations"] > 2 * fused.totals["activations"] > 1.9 * again.totals["activations"]
    long = cost(put(spec, "embedding.position.length", 4096), length=4096, phase="train", attention="fused")
    assert 3.9 < long.totals["activations"] / fused.totals["activations"] < 4.1


def test_bounds_follow_the_machine() -> None:
    found = cost(named("llama3-8b"), phase="decode", length=100)
    slow, fast = (bound(found.lines, machine(name), "bfloat16") for name in ("nvidia-h100", "nvidia-h200"))
    assert slow.limit == fast.limit == "memory"
    assert slow.seconds / fast.seconds == pytest.approx(4800 / 3350)
    read = found.totals["weights"] - 128_256 * 4096 * 2 + found.totals["cache"]  # all but the embedding, of which a row
    assert slow.seconds == pytest.approx(read / 3350e9, rel=0.02)
    prefill = bound(cost(named("llama3-8b"), length=4096).lines, machine("nvidia-h100"), "bfloat16")
    assert prefill.limit == "compute"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"length": 0}, "length: expected a whole number of at least 1, got 0"),
        ({"batch": 0}, "batch: expected a whole number of at least 1, got 0"),
        ({"source": 0}, "source: expected a whole number of at least 1, got 0"),
        ({"length": 1025}, "length: expected at most 1024, the model has 1024 positions; got 1025"),
        ({"length": 1024, "phase": "decode"}, "length: expected at most 1023, the model has 1024 positions; got 1024"),
        ({"phase": "prefil"}, "phase: 'prefil' is not one of its words; did you mean prefill?"),
        ({"dtype": "bfloat"}, "dtype: 'bfloat' is not one of its words; did you mean bfloat16?"),
        ({"attention": "flash"}, "attention: 'flash' is not one of its words"),
        ({"loss": "half"}, "loss: 'half' is not one of its words"),
    ],
)
def test_what_cannot_be_priced_is_refused_in_one_line(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        cost(named("gpt2"), **arguments)


def test_a_model_that_looks_ahead_writes_no_next_token() -> None:
    with pytest.raises(ValueError, match="this model looks ahead"):
        cost(named("bert"), phase="decode")
    assert cost(named("bert")).totals["cache"] == 0
    mixed = Model(8, Embedding(9), tuple(Block(Attention(2, mask=m), FeedForward(8)) for m in (Causal(), Full())))
    with pytest.raises(ValueError, match="this model looks ahead"):
        cost(mixed, phase="decode")
    assert isinstance(named("t5"), Seq2Seq)
    assert cost(named("t5"), phase="decode").forward < cost(named("t5")).forward / 500
