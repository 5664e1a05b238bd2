"""Scores, vectors, gaps and labels: each against the plain formula, padded or not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from oneblock.bricks import build_model
from oneblock.generate import classify, embed, fill, perplexity, score
from oneblock.spec import Classify, Full, Pool, Transform, put
from specs import exact, ids, language_model, padded, same, translator

ROWS = [torch.tensor(row) for row in ([5, 6, 7, 8, 9], [10, 11], [12, 5, 3])]


def encoder(**changes: Any) -> Any:
    return exact(language_model(attention={"mask": Full()}, **changes))


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_score_is_the_log_softmax_of_what_came(side: str) -> None:
    model, (x, mask) = exact(language_model()), padded(ROWS, side)
    found, surprise = score(model, x, attention_mask=mask), perplexity(model, x, attention_mask=mask)
    assert found.dtype == torch.float32
    for row, real, got, one in zip(ROWS, mask.bool(), found, surprise, strict=True):
        logprob = model(row[None]).logits[0].log_softmax(-1)
        expected = [logprob[i, row[i + 1]].item() for i in range(len(row) - 1)]
        assert got[real].tolist() == pytest.approx([0.0, *expected], abs=1e-5)
        assert (got[~real] == 0).all()
        assert one.item() == pytest.approx(torch.tensor(expected).mean().neg().exp().item(), rel=1e-5)
    same(perplexity(model, ROWS[0][None]), surprise[:1], 1e-4)


def test_a_long_text_is_scored_in_chunks_of_its_logits() -> None:
    model, x = exact(language_model(depth=1)), ids(1, 600)
    expected = model(x).logits[:, :-1].log_softmax(-1).gather(-1, x[:, 1:, None])[:, :, 0]
    same(score(model, x)[:, 1:].double(), expected, 1e-5)


def test_perplexity_of_a_target_counts_its_tokens() -> None:
    model, y = exact(translator()), torch.tensor([[5, 6, 2], [7, 2, -100]])
    logprob, x = score(model, ids(2, 4), y), ids(2, 4)
    logprob = score(model, x, y)
    same(perplexity(model, x, y), (-logprob.sum(1) / torch.tensor([3, 2])).exp())


@pytest.mark.parametrize("pooling", ["mean", "first", "last"])
def test_an_embedding_is_of_real_tokens_only(pooling: Any) -> None:
    for model in (encoder(), exact(language_model()), exact(translator())):
        reader = getattr(model, "encoder", model)
        found = embed(model, *padded(ROWS, "right"), pooling=pooling, normalise=False)
        same(embed(model, ROWS, pooling=pooling, normalise=False), found, 1e-6)
        same(embed(model, *padded(ROWS, "left"), pooling=pooling, normalise=False), found, 1e-5)
        for row, vector in zip(ROWS, found, strict=True):
            x = reader(row[None], logits_to_keep=0).encoder_outputs.x[0]
            expected = {"mean": x.mean(0), "first": x[0], "last": x[-1]}[pooling]
            same(vector.double(), expected, 1e-5)
        unit = embed(model, ROWS, pooling=pooling)
        same(unit, found / found.norm(dim=1, keepdim=True), 1e-5)


def test_a_model_that_pools_pools_its_own_way() -> None:
    model = encoder(head=Pool("first", Transform("tanh", None)))
    x, mask = padded(ROWS)
    same(embed(model, x, mask, normalise=False).double(), model(x, mask).pooled, 1e-6)
    assert not torch.equal(embed(model, x, mask), embed(model, x, mask, pooling="mean"))


def test_gaps_get_the_softmax_at_their_places() -> None:
    model, gap = encoder(), 4
    rows = [torch.tensor([5, gap, 7, gap]), torch.tensor([gap, 6])]
    found = fill(model, rows, gap, top_k=3)
    assert [(one.row, one.position) for one in found] == [(0, 1), (0, 3), (1, 0)]
    for one in found:
        likely = model(rows[one.row][None]).logits[0, one.position].softmax(-1)
        best, tokens = likely.topk(3)
        assert one.tokens == tuple(tokens.tolist())
        assert one.probabilities == pytest.approx(best.tolist(), abs=1e-6)


def test_labels_get_the_softmax_and_one_label_its_number() -> None:
    for labels in (3, 1):
        model = encoder(head=Classify(labels=labels, pool="mean"))
        found = classify(model, ROWS)
        for row, got in zip(ROWS, found, strict=True):
            logits = model(row[None]).logits[0]
            same(got.double(), logits.softmax(-1) if labels > 1 else logits, 1e-6)


def test_dropout_is_off_while_reading() -> None:
    model = build_model(put(language_model(attention={"mask": Full()}), "layers.*.dropout", 0.5)).train()
    assert torch.equal(embed(model, ROWS), embed(model, ROWS))
    assert model.training
