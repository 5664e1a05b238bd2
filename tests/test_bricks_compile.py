"""torch.compile takes a whole forward pass as one graph, and the compiled model is the same model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from oneblock.spec import Alibi, Causal, Relative, RMSNorm, Window
from oneblock.tap import listen
from specs import exact, ids, language_model, padded, same, translator


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(model: torch.nn.Module) -> torch.nn.Module:
    return torch.compile(model, backend="eager", fullgraph=True)


SPECS = {
    "rotary": language_model(),
    "grouped, window, cap": language_model(
        depth=1, attention={"kv_heads": 2, "mask": Causal() & Window(3), "softcap": 4.0, "qk_norm": RMSNorm()}
    ),
    "alibi": language_model(depth=1, attention={"position": Alibi()}, block={"wiring": "parallel"}),
    "relative": language_model(depth=1, attention={"position": None}, position_bias=Relative(4, 8)),
}


@pytest.mark.parametrize("name", SPECS)
def test_a_stack_is_one_graph(name: str) -> None:
    model = exact(SPECS[name])
    fast, (x, mask) = compiled(model), padded([ids(4), ids(6)], "left")
    same(fast(x).logits, model(x).logits)
    same(fast(x, mask).logits, model(x, mask).logits)


def test_an_encoder_decoder_is_one_graph() -> None:
    model = exact(translator(depth=1))
    fast, y, (x, mask) = compiled(model), ids(2, 3), padded([ids(4), ids(6)])
    same(fast(x, decoder_input_ids=y).logits, model(x, decoder_input_ids=y).logits)
    same(fast(x, mask, decoder_input_ids=y).logits, model(x, mask, decoder_input_ids=y).logits)


def test_gradients_of_a_compiled_model_are_the_models() -> None:
    model, x = exact(translator(depth=1)), ids(2, 5)
    fast, found = compiled(model), []
    for one in (model, fast):
        one(x, decoder_input_ids=x).logits.sin().sum().backward()
        found.append({name: p.grad.clone() for name, p in model.named_parameters()})
        model.zero_grad()
    for name, gradient in found[0].items():
        same(found[1][name], gradient)


@pytest.mark.filterwarnings("default")
def test_taps_are_free_when_compiled_and_seen_when_switched_on_later() -> None:
    model, x = exact(language_model(depth=1)), ids(1, 4)
    fast = torch.compile(model, backend="eager")
    plain = fast(x).logits
    with listen(model, only="*.pattern") as seen:
        same(fast(x).logits, plain)
    assert list(seen) == ["layers.0.attention.pattern"]
    same(seen["layers.0.attention.pattern"].sum(-1), torch.ones(1, 4, 4, dtype=torch.float64))


def test_a_new_length_compiles_once_more_and_then_no_more() -> None:
    model = exact(language_model(depth=1))
    counter = torch._dynamo.testing.CompileCounter()
    fast = torch.compile(model, backend=counter, fullgraph=True)
    for length in range(3, 12):
        same(fast(ids(2, length).clone()).logits.isfinite().double().mean(), torch.tensor(1.0, dtype=torch.float64))
    assert counter.frame_count <= 2
