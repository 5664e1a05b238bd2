"""With a cache, text may come in pieces and rows in any order; the answers are those of one forward pass."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from oneblock.cache import Cache, Growing, Rolling, Static, make
from oneblock.mask import places
from oneblock.spec import Causal, Embedding, Learned, Mask, Model, Relative, Seq2Seq, Window, put
from specs import CAUSAL, TWO_WAY, VOCAB, exact, ids, language_model, models, padded, pairs, same, translator

LENGTH = 9

cuts = st.lists(st.integers(1, LENGTH - 1), unique=True, max_size=LENGTH - 1).map(
    lambda inner: [0, *sorted(inner), LENGTH]
)
rooms = st.sampled_from([None, LENGTH, LENGTH + 4])
words = st.sampled_from(["whole", "new"])


def spans(inner: list[int]) -> list[slice]:
    return [slice(a, b) for a, b in pairwise(inner)]


def stepwise(
    model: torch.nn.Module, x: Tensor, mask: Tensor | None, inner: list[int], cache: Cache, word: str = "whole"
) -> Tensor:
    """Logits of x read in pieces; the mask covers past and new tokens, or the new ones only."""
    pieces = []
    for span in spans(inner):
        shown = None if mask is None else mask[:, : span.stop] if word == "whole" else mask[:, span]
        pieces.append(model(x[:, span], shown, cache=cache).logits)
    return torch.cat(pieces, 1)


@settings(max_examples=60)
@given(models(masks=CAUSAL), cuts, rooms)
def test_N13_pieces_of_a_text_give_the_logits_of_the_whole(spec: Model, inner: list[int], room: int | None) -> None:
    model, x, cache = exact(spec), ids(2, LENGTH), make(spec, room)
    same(stepwise(model, x, None, inner, cache), model(x).logits, 1e-9)
    assert len(cache) == LENGTH


@settings(max_examples=60)
@given(models(masks=CAUSAL), cuts, rooms, words)
def test_B10_left_padded_pieces_give_the_logits_of_the_whole(
    spec: Model, inner: list[int], room: int | None, word: str
) -> None:
    model, rows = exact(spec), [ids(LENGTH), ids(4), ids(6)]
    x, mask = padded(rows, "left")
    got = stepwise(model, x, mask, inner, make(spec, room), word)
    same(got[mask.bool()], model(x, mask).logits[mask.bool()], 1e-9)
    for row, real, logits in zip(rows, mask.bool(), got, strict=True):
        same(logits[real], model(row[None]).logits[0], 1e-9)


@pytest.mark.parametrize("word", ["whole", "new"])
@pytest.mark.parametrize("inner", [[0, 1, 2, 3, 9], [0, 4, 9], [0, 2, 5, 9]])
def test_B10_positions_do_not_start_in_a_piece_that_is_all_padding(word: str, inner: list[int]) -> None:
    spec = language_model(attention={"position": None}, embedding=Embedding(VOCAB, Learned(30)))
    model, rows = exact(spec), [ids(9), ids(4)]
    x, mask = padded(rows, "left")
    got = stepwise(model, x, mask, inner, make(spec), word)
    same(got[1, 5:], model(rows[1][None]).logits[0])


@settings(max_examples=40)
@given(pairs(), cuts, rooms)
def test_N13_a_decoder_with_a_memory_goes_step_by_step(spec: Seq2Seq, inner: list[int], room: int | None) -> None:
    model, y, (x, mask) = exact(spec), ids(2, LENGTH), padded([ids(5), ids(3)])
    memory, cache, pieces = model.encode(x, mask), make(spec.decoder, room), []
    for span in spans(inner):
        out = model(encoder_outputs=memory, decoder_input_ids=y[:, span], cache=cache, use_cache=True)
        assert out.cache is cache
        pieces.append(out.logits)
    same(torch.cat(pieces, 1), model(x, mask, decoder_input_ids=y).logits, 1e-9)


def test_a_cache_is_made_when_asked_for_and_comes_back() -> None:
    model, pair, x = exact(language_model()), exact(translator()), ids(2, 6)
    out = model(x[:, :4], use_cache=True)
    assert len(out.cache) == 4
    same(model(x[:, 4:], cache=out.cache).logits, model(x).logits[:, 4:])
    assert model(x).cache is None
    out = pair(x, decoder_input_ids=x[:, :4], use_cache=True)
    later = pair(encoder_outputs=out.encoder_outputs, decoder_input_ids=x[:, 4:], cache=out.cache).logits
    same(later, pair(x, decoder_input_ids=x).logits[:, 4:])


def test_kinds_of_stores_follow_the_spec() -> None:
    spec = language_model(depth=3)
    spec = put(spec, "layers.1.attention.mask", Causal() & Window(4))
    assert [type(store) for store in make(spec).stores.values()] == [Growing, Rolling, Growing]
    assert {type(store) for store in make(spec, 8).stores.values()} == {Static}
    assert list(make(spec).stores) == [f"layers.{i}.attention" for i in range(3)]


def test_B19_a_prompt_in_chunks_is_the_prompt() -> None:
    model, x = exact(language_model()), ids(1, 16)
    expected = model(x).logits[:, -1]
    for sizes in ([16], [7, 9], [1] * 16):
        cache = make(model.spec)
        for piece in x.split(sizes, 1):
            last = model(piece, cache=cache).logits[:, -1]
        same(last, expected)
    with pytest.raises(ValueError, match="at least one token"):
        model(x[:, :0], cache=make(model.spec))


@pytest.mark.parametrize(("to", "left"), [(0, 0), (2, 2), (-1, 2), (-5, 0), (9, 3)])
@pytest.mark.parametrize("room", [None, 8])
def test_B53_crop_leaves_exactly_that_many(to: int, left: int, room: int | None) -> None:
    model, x, other = exact(language_model()), ids(2, 3), ids(2, 4)
    cache = make(model.spec, room)
    model(x, cache=cache)
    cache.crop(to)
    assert len(cache) == left
    expected = model(torch.cat([x[:, :left], other], 1)).logits[:, left:]
    same(model(other, cache=cache).logits, expected)


def test_B53_crop_keeps_padding_in_its_place() -> None:
    model, rows, other = exact(language_model()), [ids(5), ids(2)], ids(2, 3)
    x, mask = padded(rows, "left")
    cache = make(model.spec)
    model(x, mask, cache=cache)
    cache.crop(4)
    whole = torch.cat([x[:, :4], other], 1), torch.cat([mask[:, :4], torch.ones(2, 3, dtype=torch.long)], 1)
    same(model(other, cache=cache).logits, model(*whole).logits[:, 4:])


def test_crop_keeps_what_was_read_of_the_source() -> None:
    model, x, y, other = exact(translator()), ids(2, 5), ids(2, 4), ids(2, 3)
    cache = make(model.spec.decoder)
    memory = model(x, decoder_input_ids=y, cache=cache).encoder_outputs
    cache.crop(0)
    same(
        model(encoder_outputs=memory, decoder_input_ids=other, cache=cache).logits,
        model(x, decoder_input_ids=other).logits,
    )


@pytest.mark.parametrize("room", [None, 12])
@pytest.mark.parametrize("rows", [[1, 0, 2], [2, 2, 0, 1, 2], [1], [0, 0]])
def test_rows_may_be_reordered_repeated_and_dropped(rows: list[int], room: int | None) -> None:
    model = exact(language_model(attention={"kv_heads": 2}))
    x, mask = padded([ids(5), ids(3), ids(4)], "left")
    cache, picked, more = make(model.spec, room), torch.tensor(rows), ids(len(rows), 2)
    model(x, mask, cache=cache)
    cache.reorder(picked)
    whole = torch.cat([x[picked], more], 1), torch.cat([mask[picked], torch.ones_like(more)], 1)
    same(model(more, cache=cache).logits, model(*whole).logits[:, 5:])


def test_reorder_twice_is_the_product() -> None:
    model, x, more = exact(language_model()), ids(3, 4), ids(2, 2)
    cache = make(model.spec)
    model(x, cache=cache)
    cache.reorder(torch.tensor([2, 0]))
    cache.reorder(torch.tensor([1, 1, 0]))
    cache.reorder(torch.tensor([2, 0]))
    same(model(more, cache=cache).logits, model(torch.cat([x[[2, 0]], more], 1)).logits[:, 4:])


def test_beams_share_a_memory_row() -> None:
    model, y, (x, mask) = exact(translator()), ids(6, 5), padded([ids(4), ids(6)])
    shared, spread = model.encode(x, mask), model.encode(x.repeat_interleave(3, 0), mask.repeat_interleave(3, 0))
    expected = model(encoder_outputs=spread, decoder_input_ids=y).logits
    same(model(encoder_outputs=shared, decoder_input_ids=y).logits, expected)
    cache = make(model.spec.decoder)
    steps = [model(encoder_outputs=shared, decoder_input_ids=y[:, i : i + 1], cache=cache).logits for i in range(5)]
    same(torch.cat(steps, 1), expected)


def test_beams_and_their_memory_may_be_reordered_apart() -> None:
    model, (x, mask), y = exact(translator()), padded([ids(4), ids(6), ids(3)]), ids(6, 4)
    memory, cache = model.encode(x, mask), make(model.spec.decoder)
    model(encoder_outputs=memory, decoder_input_ids=y, cache=cache)
    beams, sources, more = torch.tensor([5, 4, 0, 0]), torch.tensor([2, 0]), ids(4, 1)
    cache.reorder(beams, memory_rows=sources)
    kept = type(memory)(memory.x[sources], memory.places.rows(sources))
    got = model(encoder_outputs=kept, decoder_input_ids=more, cache=cache).logits
    whole = torch.cat([y[beams], more], 1)
    same(got, model(x[sources], mask[sources], decoder_input_ids=whole).logits[:, -1:])


def test_reorder_without_memory_rows_leaves_the_memory_alone() -> None:
    model, x, y = exact(translator()), ids(2, 5), ids(4, 3)
    memory, cache = model.encode(x), make(model.spec.decoder)
    model(encoder_outputs=memory, decoder_input_ids=y, cache=cache)
    beams, more = torch.tensor([1, 1, 3, 2]), ids(4, 1)
    cache.reorder(beams)
    got = model(encoder_outputs=memory, decoder_input_ids=more, cache=cache).logits
    same(got, model(x, decoder_input_ids=torch.cat([y[beams], more], 1)).logits[:, -1:])


def test_B56_garbage_in_unused_room_is_invisible_and_reuse_starts_anew() -> None:
    spec = language_model(attention={"mask": Causal() & Window(4)})
    for one in (language_model(), spec, language_model(position_bias=Relative(4, 8), attention={"position": None})):
        model, x = exact(one), ids(2, 6)
        cache = make(one, 32)
        model(x, cache=cache)
        for store in cache.stores.values():
            for tensor in store.kept.values():
                tensor.fill_(1e4)
        cache.reset()
        assert len(cache) == 0
        same(stepwise(model, x, None, [0, 3, 4, 5, 6], cache), model(x).logits)


@pytest.mark.parametrize("mask", TWO_WAY, ids=str)
def test_B56_unused_room_is_hidden_from_layers_that_look_ahead_too(mask: Mask) -> None:
    model, x = exact(language_model(attention={"mask": mask})), ids(2, 6)
    growing, static = make(put(model.spec, "layers.*.attention.mask", Causal())), make(model.spec, 9)
    for piece in x.split([3, 1, 2], 1):
        same(model(piece, cache=static).logits, model(piece, cache=growing).logits)


@pytest.mark.parametrize("room", [None, 16])
def test_B56_a_cache_may_serve_another_batch_after_reset(room: int | None) -> None:
    model = exact(translator())
    cache = make(model.spec.decoder, room)
    for batch in (2, 3, 1):
        x, y = ids(batch, 4), ids(batch, 3)
        same(model(x, decoder_input_ids=y, cache=cache).logits, model(x, decoder_input_ids=y).logits)
        cache.reset()


def test_a_static_cache_says_when_it_is_full() -> None:
    model = exact(language_model())
    cache = make(model.spec, 4)
    model(ids(1, 3), cache=cache)
    with pytest.raises(ValueError, match="cache: expected at most 4 tokens, got 5; make a longer one"):
        model(ids(1, 2), cache=cache)


@pytest.mark.parametrize("sizes", [[10], [1] * 10, [4, 1, 1, 1, 3]])
def test_B58_a_rolling_cache_never_keeps_more_than_the_window(sizes: list[int]) -> None:
    model, x = exact(language_model(attention={"mask": Causal() & Window(3)})), ids(2, 10)
    cache, pieces = make(model.spec), []
    for piece in x.split(sizes, 1):
        pieces.append(model(piece, cache=cache).logits)
        assert all(store.kept["k"].shape[2] == min(3, len(cache)) for store in cache.stores.values())
    same(torch.cat(pieces, 1), model(x).logits)


@pytest.mark.parametrize("sizes", [[11], [5, 6], [1] * 11])
def test_B59_a_prompt_longer_than_the_window(sizes: list[int]) -> None:
    model, x = exact(language_model(attention={"mask": Causal() & Window(4)})), ids(1, 11)
    cache, changed = make(model.spec), x.clone()
    changed[0, 10] = 3 + (x[0, 10] - 2) % (VOCAB - 3)
    logits = torch.cat([model(piece, cache=cache).logits for piece in x.split(sizes, 1)], 1)
    same(logits, model(x).logits)
    same(model(changed).logits[:, :10], logits[:, :10])
    assert (model(changed).logits[:, 10] - logits[:, 10]).abs().max() > 1e-3


def test_a_rolling_cache_crops_what_it_can_and_refuses_the_rest() -> None:
    model, x, more = exact(language_model(attention={"mask": Causal() & Window(4)})), ids(1, 9), ids(1, 3)
    for start, to in ((9, 8), (9, 9), (3, 1), (4, 3), (2, 0)):
        cache = make(model.spec)
        model(x[:, :start], cache=cache)
        cache.crop(to)
        expected = model(torch.cat([x[:, :to], more], 1)).logits[:, to:]
        same(model(more, cache=cache).logits, expected)
    cache = make(model.spec)
    model(x, cache=cache)
    with pytest.raises(ValueError, match="a rolling cache keeps the last 4 only"):
        cache.crop(6)
    cache.crop(8)
    with pytest.raises(ValueError, match="expected at least 8 tokens to stay, got 7"):
        cache.crop(7)


def test_B67_a_bias_table_looks_at_the_absolute_place_of_the_query() -> None:
    spec = language_model(attention={"position": None}, position_bias=Relative(8, 20))
    model, x = exact(spec), ids(1, 40)
    cache = make(spec)
    steps = [model(x[:, i : i + 1], cache=cache).logits for i in range(40)]
    same(torch.cat(steps, 1), model(x).logits)


def test_a_static_cache_that_is_full_refuses_and_stays_as_it_was() -> None:
    model = exact(language_model())
    x, cache = ids(1, 5), make(model.spec, 4)
    model(x[:, :3], cache=cache)
    with pytest.raises(ValueError, match="at most 4 tokens, got 5"):
        model(x[:, 3:], cache=cache)
    assert len(cache) == 3
    same(model(x[:, 3:4], cache=cache).logits, model(x[:, :4]).logits[:, -1:])


def test_a_growing_cache_seldom_moves_what_it_keeps() -> None:
    here, store = places(1), Growing()
    moved, parts = 0, []
    for number in range(200):
        parts.append(torch.full((2, 1, 1, 3), float(number)))
        before = store.kept.get("k")
        kept = store.extend({"k": parts[-1]}, here)["k"]
        moved += before is not None and kept.data_ptr() != before.data_ptr()
        assert torch.equal(kept, torch.cat(parts, 2))
    assert moved <= 14


def test_a_growing_cache_keeps_what_a_gradient_needs() -> None:
    store, parts = Growing(), [torch.randn(1, 1, 1, 3, requires_grad=True) for _ in range(4)]
    total = sum(store.extend({"k": part}, places(1))["k"].square().sum() for part in parts)
    total.backward()  # type: ignore[union-attr]
    for number, part in enumerate(parts):
        torch.testing.assert_close(part.grad, 2 * (len(parts) - number) * part.detach())
