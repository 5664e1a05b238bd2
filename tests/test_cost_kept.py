"""Bytes kept for backward, by closed form, are the storages that autograd saves: every family, with dropout or not.

Parameters are left out; a storage that two operations keep counts once.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings

from meter import Meter
from oneblock.bricks import build_model
from oneblock.cache import Growing, make
from oneblock.cost import Cost, cache_bytes, cost
from oneblock.explain.counted import forward
from oneblock.explain.kept import kept
from oneblock.spec import Seq2Seq, Spec, put, walk
from oneblock.tap import listen
from oneblock.zoo import FAMILIES, named
from specs import specs
from test_families_cached import ENCODERS, SMALL, TINY, WRITERS

BATCH, LENGTH, SOURCE, VOCAB = 2, 40, 28, 13


def spec_of(name: str, rate: float) -> Spec:
    """A small model of a family, every dropout that it has set to a rate."""
    longer = {"length": 64} if name in ENCODERS else {}
    spec = named(name, **(SMALL | TINY.get(name, {}) | longer))
    rates = [path for path, _ in walk(spec) if path.endswith("dropout") and ".expert." not in path]
    for path in rates:
        spec = put(spec, path, rate)
    return spec


def said(found: Cost) -> int:
    """Predicted bytes without those of a loss, which the runs here have none of."""
    terms = [(line.times, term) for line in found.lines for term in line.terms if term.column == "activations"]
    return sum(times * term.value for times, term in terms if term.name != "kept.loss")


def seen(spec: Spec, found: Cost) -> int:
    model = build_model(spec).to(getattr(torch, found.job.dtype)).train()
    return sum(kept(model, forward(model, found.job, "cpu", VOCAB)).values())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("rate", [0.0, 0.1])
@pytest.mark.parametrize("name", FAMILIES)
def test_activations_of_every_family_are_the_storages_that_autograd_keeps(name: str, rate: float, dtype: str) -> None:
    spec = spec_of(name, rate)
    found = cost(spec, BATCH, LENGTH, "train", dtype, SOURCE)
    assert said(found) == pytest.approx(seen(spec, found), rel=0.02)


@settings(max_examples=60, deadline=None)
@given(specs)
def test_activations_of_any_spec(spec: Spec) -> None:
    found = cost(spec, BATCH, LENGTH, "train", "float32", SOURCE)
    assert said(found) == pytest.approx(seen(spec, found), rel=0.02)


@pytest.mark.parametrize("name", ["gpt2", "llama", "gemma2", "vaswani", "mistral"])
def test_scores_written_out_are_kept_whole(name: str) -> None:
    """As they are for whoever listens to the pattern."""
    spec = spec_of(name, 0.0)
    found = cost(spec, BATCH, LENGTH, "train", "float32", SOURCE, attention="plain")
    model = build_model(spec).train()
    with listen(model, {"*.pattern": lambda x: x}, only=""):
        got = kept(model, forward(model, found.job, "cpu", VOCAB))
    assert said(found) == pytest.approx(sum(got.values()), rel=0.02)


@pytest.mark.parametrize(("name", "rate"), [("gpt2", 0.1), ("mistral", 0.0), ("t5", 0.0)])
def test_chunks_keep_queries_keys_and_values_only(name: str, rate: float) -> None:
    """A storage that lives is counted here, for what a checkpoint will need is held by its closure."""
    length = 1032
    spec = put(spec_of(name, rate), "layers.length", 1) if name != "t5" else spec_of(name, rate)
    spec = put(spec, "embedding.position.length", length) if name == "gpt2" else spec
    found = cost(spec, 1, length, "train", "float32")
    model = build_model(spec).train()
    run = forward(model, found.job, "cpu", VOCAB)
    with Meter() as meter:
        out = run()
    alive = meter.now - out.logits.untyped_storage().nbytes()
    assert said(found) == pytest.approx(alive, rel=0.02)
    assert alive < 0.5 * said(cost(spec, 1, length, "train", "float32", attention="plain"))


@pytest.mark.parametrize("name", ["gpt2", "llama", "vaswani", "bert", "gemma2"])
def test_a_loss_over_whole_logits_keeps_their_softmax_and_one_in_chunks_two_gradients(name: str) -> None:
    spec = named(name, **(SMALL | TINY.get(name, {}) | {"vocab": 400, "length": 64}))
    model, ids = build_model(spec).train(), torch.randint(2, VOCAB, (BATCH, LENGTH))
    for loss, keep in (("whole", None), ("chunked", 0)):
        found = cost(spec, BATCH, LENGTH, "train", "float32", LENGTH, loss=loss)
        got = kept(model, lambda keep=keep: model(ids, labels=ids.clone(), logits_to_keep=keep).loss)
        assert found.totals["activations"] == pytest.approx(sum(got.values()), rel=0.02)
    assert said(cost(spec, BATCH, LENGTH, "train")) < cost(spec, BATCH, LENGTH, "train").totals["activations"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", WRITERS)
def test_bytes_of_the_cache_are_those_of_its_tensors(name: str, dtype: str) -> None:
    """Of a text of 40 tokens; a window keeps its last few, a decoder also what it read of the source."""
    spec = spec_of(name, 0.0)
    found = cost(spec, BATCH, LENGTH, "prefill", dtype, SOURCE)
    model = build_model(spec).to(getattr(torch, dtype)).eval()
    stack = getattr(spec, "decoder", spec)
    ids, cache = torch.randint(2, VOCAB, (BATCH, LENGTH)), make(stack)
    with torch.no_grad():
        if isinstance(spec, Seq2Seq):
            model(torch.randint(2, VOCAB, (BATCH, SOURCE)), decoder_input_ids=ids, cache=cache)
        else:
            model(ids, cache=cache)
    kept_tensors = [x for store in cache.stores.values() for x in store.kept.values()]
    read = [x for tensors in cache._once.values() for x in tensors]
    assert found.totals["cache"] == sum(x.nbytes for x in kept_tensors + read)
    bytes_ = cache_bytes(spec, dtype)
    assert found.totals["cache"] == BATCH * bytes_.at(LENGTH, SOURCE if read else 0)
    if all(isinstance(store, Growing) for store in cache.stores.values()):
        assert all(x.untyped_storage().nbytes() == x.nbytes for x in kept_tensors)
