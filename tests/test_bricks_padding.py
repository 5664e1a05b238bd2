"""Padding is invisible: how much, on which side, which id, and who else is in the batch change nothing."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from oneblock.bricks import EncoderDecoder
from oneblock.spec import Embedding, Learned, put
from specs import CAUSAL, VOCAB, exact, gradients, ids, language_model, models, padded, pairs, same, translator

sides = st.sampled_from(["left", "right"])
amounts = st.integers(0, 3)
pads = st.integers(0, VOCAB - 1)


@settings(max_examples=40)
@given(models(), sides, amounts, pads)
def test_every_stack_gives_each_text_what_it_gets_alone(spec: object, side: str, extra: int, pad: int) -> None:
    model, rows = exact(spec), [ids(n) for n in (4, 1, 6)]
    filled, mask = padded(rows, side, extra, pad)
    together = model(filled, mask).logits
    assert together.isfinite().all()
    for row, real, logits in zip(rows, mask.bool(), together, strict=True):
        same(logits[real], model(row[None]).logits[0], 1e-9)


@settings(max_examples=30)
@given(pairs(), sides, sides, amounts, amounts, pads)
def test_source_and_target_padding_stay_apart(
    spec: object, side: str, other: str, extra: int, more: int, pad: int
) -> None:
    model = exact(spec)
    sources, targets = [ids(n) for n in (5, 2, 3)], [ids(n) for n in (1, 4, 3)]
    filled, mask = padded(sources, side, extra, pad)
    read, shown = padded(targets, other, more, pad)
    together = model(filled, mask, decoder_input_ids=read, decoder_attention_mask=shown).logits
    assert together.isfinite().all()
    for source, target, real, logits in zip(sources, targets, shown.bool(), together, strict=True):
        alone = model(source[None], decoder_input_ids=target[None]).logits[0]
        same(logits[real], alone, 1e-9)


@settings(max_examples=20)
@given(pairs())
def test_padding_behind_a_causal_target_needs_no_mask(spec: object) -> None:
    model, source, target = exact(spec), ids(2, 4), ids(2, 6)
    read = target.clone()
    read[:, 3:] = 0
    same(model(source, decoder_input_ids=read).logits[:, :3], model(source, decoder_input_ids=target).logits[:, :3])


@settings(max_examples=15)
@given(models(masks=CAUSAL) | pairs(), sides)
def test_gradients_do_not_see_padding(spec: object, side: str) -> None:
    model, rows = exact(spec), [ids(n) for n in (4, 2)]
    found = []
    for extra, pad in ((0, 0), (2, 5)):
        filled, mask = padded(rows, side, extra, pad)
        first = mask.cumsum(1) == 1
        labels = filled.masked_fill((mask == 0) | first, -100)
        rest = (
            {"decoder_input_ids": filled, "decoder_attention_mask": mask} if isinstance(model, EncoderDecoder) else {}
        )
        out = model(filled, mask, labels=labels, **rest)
        out.loss.backward()
        found.append({"loss": out.loss.detach(), "count": torch.tensor(out.tokens), **gradients(model)})
    few, many = found
    for name, gradient in few.items():
        assert gradient.isfinite().all(), name
        same(many[name], gradient, 1e-9)


@pytest.mark.parametrize("keep", [None, 0])
def test_padding_on_the_left_predicts_nothing(keep: int | None) -> None:
    model, text = exact(language_model()), ids(1, 4)
    alone = model(text, labels=text, logits_to_keep=keep)
    filled, mask = padded([text[0]], "left", 2)
    out = model(filled, mask, labels=filled.masked_fill(mask == 0, -100), logits_to_keep=keep)
    assert out.tokens == alone.tokens == 3
    same(out.loss, alone.loss)


def test_a_batch_is_its_rows() -> None:
    model, x, y = exact(translator()), ids(3, 5), ids(3, 4)
    together = model(x, decoder_input_ids=y).logits
    for i in range(3):
        same(model(x[i : i + 1], decoder_input_ids=y[i : i + 1]).logits, together[i : i + 1])


def test_padding_is_really_hidden_by_the_mask_and_not_by_luck() -> None:
    model, x = exact(translator()), ids(1, 6)
    mask = torch.tensor([[1, 1, 1, 1, 0, 0]])
    hidden = model(x, mask, decoder_input_ids=x).logits
    shown = model(x, decoder_input_ids=x).logits
    assert (hidden - shown).abs().max() > 1e-3


@pytest.mark.parametrize("position", ["learned", "rope"])
def test_B08_left_padding_counts_positions_from_the_mask_alone(position: str) -> None:
    learned = {"attention": {"position": None}, "embedding": Embedding(VOCAB, Learned(17))}
    model = exact(language_model(**(learned if position == "learned" else {})))
    alone = model(torch.tensor([[5, 6, 7]])).logits[0, -1]
    mask = torch.tensor([[0, 0, 1, 1, 1]])
    same(model(torch.tensor([[0, 0, 5, 6, 7]]), mask).logits[0, -1], alone)
    unmasked = model(torch.tensor([[0, 0, 5, 6, 7]])).logits[0, -1]
    assert (unmasked - alone).abs().max() > 1e-3


def test_a_row_without_any_real_token_is_finite_and_disturbs_nobody() -> None:
    for spec in (translator(), put(translator(), "encoder.layers.*.wiring", "pre")):
        model, x = exact(spec), ids(2, 4)
        mask = torch.tensor([[1, 1, 1, 1], [0, 0, 0, 0]])
        out = model(x, mask, labels=x)
        assert out.logits.isfinite().all()
        out.loss.backward()
        assert all(gradient.isfinite().all() for gradient in gradients(model).values())
        same(out.logits[:1], model(x[:1], labels=x[:1]).logits)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_B07_half_precision_is_judged_against_float32(dtype: torch.dtype) -> None:
    model, x = exact(language_model()), ids(1, 5)
    exactly = model(x).logits
    narrow = model.to(dtype)
    filled, mask = padded([x[0]], "right", 7)
    alone = (narrow(x).logits.double() - exactly).abs().max()
    padded_too = (narrow(filled, mask).logits[:, :5].double() - exactly).abs().max()
    assert padded_too <= 2 * alone


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_B14_B16_left_padding_is_finite_in_half_precision(dtype: torch.dtype) -> None:
    model = exact(language_model(attention={"scale": 40.0})).to(dtype)
    filled, mask = padded([ids(1), ids(4)], "left", 3)
    out = model(filled, mask, labels=filled.masked_fill(mask == 0, -100))
    assert out.logits.isfinite().all()
    out.loss.backward()
    assert all(gradient.isfinite().all() for gradient in gradients(model).values())
