"""Every family: pieces of a text with a cache, batches, and used caches give what one plain forward pass gives.

ids: (batch, length); logits: (batch, length, vocab).
"""

from __future__ import annotations

import json
from functools import lru_cache
from itertools import pairwise
from typing import Any

import pytest
import torch
import typer
from benchmarks.agreement import FAMILIES_FILES  # noqa: F401 - they register their cases
from benchmarks.agreement.cases import CASES
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from typer.testing import CliRunner

from oneblock.bricks import EncoderDecoder
from oneblock.cache import Cache, Growing, Rolling, Static, make
from oneblock.cli.diff import run
from oneblock.draw.compare import compare
from oneblock.spec import Seq2Seq, apply, put
from oneblock.zoo import FAMILIES, named
from specs import exact, padded, same

LENGTH, VOCAB = 9, 17
SMALL = {"dim": 16, "depth": 2, "heads": 4, "hidden": 24, "vocab": VOCAB}
TINY: dict[str, dict[str, Any]] = {
    "gptj": {"rotary": 2}, "llama": {"kv_heads": 2}, "mistral": {"kv_heads": 2, "window": 3},
    "mixtral": {"kv_heads": 2, "experts": 4}, "qwen2": {"kv_heads": 2, "windows": (None, 3)},
    "qwen3": {"kv_heads": 2, "head_dim": 6, "windows": (None, 3)},
    "qwen3_moe": {"kv_heads": 1, "head_dim": 4, "experts": 4, "active": 2, "narrow": 8, "dense": (1,), "window": 4},
    "gemma": {"kv_heads": 1, "head_dim": 6}, "gemma2": {"kv_heads": 2, "head_dim": 4, "windows": (3, None)},
    "phi3": {"kv_heads": 2, "window": 3}, "bart": {"decoder_depth": 1, "decoder_heads": 2, "decoder_hidden": 20},
    "marian": {"decoder_depth": 1}, "t5": {"decoder_depth": 1, "buckets": 8, "distance": 16},
    "bert": {"length": 32}, "roberta": {"length": 32}, "distilbert": {"length": 32},
}  # fmt: skip
"""What a family's small model has beside the usual sizes: windows, groups and experts where the family has them."""
PAIRS = ["vaswani", "t5", "bart", "marian"]
ENCODERS = ["bert", "roberta", "distilbert"]
WRITERS = [name for name in FAMILIES if name not in ENCODERS]
WINDOWED = ["mistral", "qwen2", "qwen3", "qwen3_moe", "gemma2", "phi3"]

cuts = st.lists(st.integers(1, LENGTH - 1), unique=True, max_size=LENGTH - 1).map(
    lambda inner: [slice(a, b) for a, b in pairwise([0, *sorted(inner), LENGTH])]
)


@lru_cache
def model_of(name: str) -> Any:
    """A small random model of a family, in float64, without dropout and with padding of id 0."""
    spec = named(name, **(SMALL | TINY.get(name, {})))
    for stack in ("encoder.", "decoder.") if isinstance(spec, Seq2Seq) else ("",):
        spec = put(spec, f"{stack}tokens.pad", 0)
    return exact(spec).requires_grad_(False)


def words(*shape: int) -> Tensor:
    return torch.randint(5, VOCAB, shape)


def cache_of(model: Any, kind: str) -> Cache:
    spec = getattr(model.spec, "decoder", model.spec)
    if kind == "growing":
        return Cache({path: Growing() for path in make(spec).stores})
    return make(spec, LENGTH + 4 if kind == "static" else None)


def plain(model: Any, ids: Tensor, mask: Tensor | None, source: tuple[Tensor, Tensor]) -> Tensor:
    """Logits in one forward pass; a pair reads the source and writes `ids`."""
    if isinstance(model, EncoderDecoder):
        return model(*source, decoder_input_ids=ids, decoder_attention_mask=mask).logits
    return model(ids, mask).logits


def pieces(
    model: Any, ids: Tensor, mask: Tensor | None, source: tuple[Tensor, Tensor], cache: Cache, spans: list[slice]
) -> Tensor:
    """Logits of the same, span by span."""
    memory = model.encode(*source) if isinstance(model, EncoderDecoder) else None
    found = []
    for span in spans:
        shown = None if mask is None else mask[:, : span.stop]
        if memory is None:
            out = model(ids[:, span], shown, cache=cache)
        else:
            out = model(
                encoder_outputs=memory, decoder_input_ids=ids[:, span], decoder_attention_mask=shown, cache=cache
            )
        found.append(out.logits)
    return torch.cat(found, 1)


def test_every_family_is_here() -> None:
    assert {*TINY, *PAIRS, *ENCODERS} <= set(FAMILIES)
    for name in FAMILIES:
        stores = make(model_of(name).spec).stores.values() if name not in PAIRS else []
        assert any(isinstance(store, Rolling) for store in stores) == (name in WINDOWED), name


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=12)
@given(spans=cuts, padding=st.booleans(), seed=st.integers(0, 99))
def test_pieces_with_a_cache_are_the_whole(name: str, spans: list[slice], padding: bool, seed: int) -> None:
    torch.manual_seed(seed)
    model, source = model_of(name), padded([words(5), words(3)], "left")
    ids, mask = padded([words(LENGTH), words(4)], "left") if padding else (words(2, LENGTH), None)
    expected = plain(model, ids, mask, source)
    shown = torch.ones_like(ids).bool() if mask is None else mask.bool()
    for kind in ("growing", "static", *(["rolling"] if name in WINDOWED else [])):
        cache = cache_of(model, kind)
        got = pieces(model, ids, mask, source, cache, spans)
        same(got[shown], expected[shown], 1e-9)
        assert len(cache) == LENGTH
        rolling = [store for store in cache.stores.values() if isinstance(store, Rolling)]
        assert bool(rolling) == (kind == "rolling")
        assert all(store.kept["k"].shape[2] == min(store.window, LENGTH) for store in rolling)


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=12)
@given(lengths=st.lists(st.integers(1, LENGTH), min_size=2, max_size=3), seed=st.integers(0, 99))
def test_a_batch_padded_on_the_left_is_each_text_alone(name: str, lengths: list[int], seed: int) -> None:
    """On the right where a family's positions are indices, so that padding in front moves the text."""
    torch.manual_seed(seed)
    model, texts, sources = model_of(name), [words(n) for n in lengths], [words(n + 1) for n in lengths[::-1]]
    stack = getattr(model.spec, "decoder", model.spec)
    side = "right" if stack.counted == "all" and stack.embedding.position else "left"
    ids, mask = padded(texts, side)
    together = plain(model, ids, mask, padded(sources, side))
    for row, real, text, source in zip(together, mask.bool(), texts, sources, strict=True):
        alone = plain(model, text[None], None, (source[None], torch.ones_like(source[None])))
        same(row[real], alone[0], 1e-9)


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=8)
@given(spans=cuts, seed=st.integers(0, 99))
def test_a_static_cache_full_of_garbage_is_a_fresh_one(name: str, spans: list[slice], seed: int) -> None:
    torch.manual_seed(seed)
    model, source, ids = model_of(name), padded([words(5), words(3)]), words(2, LENGTH)
    used, fresh = cache_of(model, "static"), cache_of(model, "static")
    pieces(model, words(2, 6), None, source, used, [slice(0, 6)])
    for store in used.stores.values():
        assert isinstance(store, Static)
        for tensor in store.kept.values():
            tensor.fill_(1e4)
    used.reset()
    got = pieces(model, ids, None, source, used, spans)
    assert torch.equal(got, pieces(model, ids, None, source, fresh, spans))


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", FAMILIES)
def test_N19_every_family_prints_what_it_changes_in_the_block_of_2017(name: str, lang: str) -> None:
    app, first = typer.Typer(), named("vaswani")
    app.command()(run)
    printed = CliRunner().invoke(app, ["vaswani", name, "--lang", lang])
    lines = compare(first, named(name), lang)
    assert printed.exit_code == 0
    assert [one for one in lines if one.said.split(" → ")[0] not in printed.output.replace("\n", "")] == []
    assert bool(lines) == (name != "vaswani")
    assert len(printed.output.splitlines()) <= 16
    patch = CliRunner().invoke(app, ["vaswani", name, "--json"])
    assert apply(first, json.loads(patch.output)) == named(name)


def test_N19_every_family_that_has_public_files_is_compared_with_the_reference() -> None:
    """By tests/test_agreement.py, class by class."""
    public = {name: family for name, family in FAMILIES.items() if family.kind}
    assert set(public) == set(CASES) == set(FAMILIES) - {"vaswani"}
    for name, case in CASES.items():
        assert {next(iter(public[name].kinds))} <= set(case.classes)
