"""A compiled step is one graph for the whole answer, and gives the same tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from oneblock.bricks import build_model
from oneblock.cache import make
from oneblock.generate import decode, generate
from oneblock.spec import Causal, Relative, Rope, Window, put
from specs import exact, language_model, translator
from twins import rotary

PROMPTS = [[4, 5, 6, 7], [8, 9], [10]]


@pytest.fixture(autouse=True)
def counter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Counts graphs; compiled functions of other tests are forgotten."""
    from torch._dynamo.testing import CompileCounter

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    counter = CompileCounter()
    compiled = torch.compile(decode.step, backend=counter, fullgraph=True)
    monkeypatch.setattr(decode, "compiled", lambda _: compiled)
    yield counter
    torch._dynamo.reset()


def test_B88_sixty_four_steps_are_one_graph(counter: Any) -> None:
    model = rotary()[0]
    expected = generate(model, PROMPTS, max_new_tokens=65, eos_token_id=[])
    found = generate(model, PROMPTS, max_new_tokens=65, eos_token_id=[], compile="eager")
    assert torch.equal(found, expected)
    assert counter.frame_count == 1
    assert not torch._dynamo.utils.counters["graph_break"]
    shorter = generate(model, [row[:1] for row in PROMPTS], max_new_tokens=65, eos_token_id=[], compile="eager")
    assert torch.equal(shorter, generate(model, [row[:1] for row in PROMPTS], max_new_tokens=65, eos_token_id=[]))
    assert counter.frame_count <= 2


SPECS = {
    "windows": language_model(attention={"mask": Causal() & Window(3)}),
    "mixed": put(language_model(attention={"position": Rope(50.0)}), "layers.1.attention.mask", Causal() & Window(2)),
    "biases": language_model(attention={"position": None}, position_bias=Relative(4, 8)),
}


@pytest.mark.parametrize("name", SPECS)
def test_B88_other_models_are_one_graph_too(counter: Any, name: str) -> None:
    model = exact(SPECS[name])
    expected = generate(model, PROMPTS, max_new_tokens=12)
    assert torch.equal(generate(model, PROMPTS, max_new_tokens=12, compile="eager"), expected)
    assert counter.frame_count == 1


def test_B88_a_decoder_with_a_memory_and_beams(counter: Any) -> None:
    model = exact(translator())
    for beams in (1, 3):
        expected = generate(model, PROMPTS, max_new_tokens=12, num_beams=beams)
        assert torch.equal(generate(model, PROMPTS, max_new_tokens=12, num_beams=beams, compile="eager"), expected)
    assert counter.frame_count <= 3  # beams leave with their sentences, so rows become a symbol


def test_compile_needs_a_static_cache() -> None:
    model = build_model(language_model())
    with pytest.raises(ValueError, match='compile: expected cache="static"'):
        generate(model, PROMPTS, cache="growing", compile=True)
    with pytest.raises(ValueError, match="compile: expected a static cache, got a growing one"):
        generate(model, PROMPTS, cache=make(model.spec), compile=True)
    with pytest.raises(ValueError, match="expected room for 13 tokens, got 9"):
        generate(model, PROMPTS, cache=make(model.spec, 9), max_new_tokens=10)
