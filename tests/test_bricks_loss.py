"""The loss: mean over real tokens, one shift, and the same number whether logits exist whole or in chunks."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from oneblock.bricks import EncoderDecoder, build_model, chunked_cross_entropy, cross_entropy, loss
from oneblock.spec import Causal, Embedding, Full, Head, LayerNorm, Mask, Model, Transform, Window
from specs import VOCAB, exact, gradients, ids, language_model, models, pairs, same


@pytest.fixture(autouse=True)
def _short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "CHUNK", 3)


def heads() -> dict[str, nn.Module]:
    head = language_model(head=Head(bias=True, transform=Transform("gelu", LayerNorm()), softcap=3.0, scale=0.7)).head
    return {
        "linear": nn.Linear(8, VOCAB).double(),
        "no bias": nn.Linear(8, VOCAB, bias=False).double(),
        "transform and cap": exact(Model(8, Embedding(VOCAB), (), head=head)).head,
    }


@pytest.mark.parametrize("kind", ["linear", "no bias", "transform and cap"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("count", [0, 1, 3, 8])
def test_chunks_logits_and_torch_agree_in_loss_and_gradient(kind: str, smoothing: float, count: int) -> None:
    head = heads()[kind]
    x = torch.randn(2, 4, 8, dtype=torch.float64, requires_grad=True)
    labels = torch.full((8,), -100)
    labels[torch.randperm(8)[:count]] = torch.randint(VOCAB, (count,))
    labels = labels.view(2, 4)
    found = {}
    for way in ("chunks", "logits", "torch"):
        if way == "chunks":
            total, tokens = chunked_cross_entropy(x, head, labels, smoothing)
        elif way == "logits":
            total, tokens = cross_entropy(head(x), labels, smoothing)
        else:
            flat = head(x).flatten(0, 1)
            total = F.cross_entropy(flat, labels.flatten(), reduction="sum", label_smoothing=smoothing)
            tokens = count
        assert tokens == count
        assert total.dtype == torch.float64
        (1.5 * total).backward()
        found[way] = {"loss": total.detach(), "x": x.grad.clone(), **gradients(head)}
        x.grad = None
    for way in ("chunks", "logits"):
        assert found[way].keys() == found["torch"].keys()
        for name, expected in found["torch"].items():
            same(found[way][name], expected)


def test_without_gradients_chunks_still_agree() -> None:
    head, x, labels = heads()["linear"], torch.randn(2, 4, 8, dtype=torch.float64), torch.randint(VOCAB, (2, 4))
    with torch.no_grad():
        same(chunked_cross_entropy(x, head, labels, 0.1)[0], cross_entropy(head(x), labels, 0.1)[0])
        assert chunked_cross_entropy(x, head, torch.full_like(labels, -100)) == (0, 0)


def test_gradcheck_of_both_losses() -> None:
    x = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    head, labels = nn.Linear(4, 6).double(), torch.tensor([0, 1, -100, 5, 2, 2, -100])
    assert torch.autograd.gradcheck(
        lambda x, *_: chunked_cross_entropy(x, head, labels, 0.1)[0], (x, *head.parameters())
    )
    assert torch.autograd.gradcheck(lambda x: cross_entropy(x, labels[:7] % 4, 0.1)[0], (x,))


def test_frozen_parameters_get_no_gradient() -> None:
    head, x = nn.Linear(4, 6), torch.randn(5, 4, requires_grad=True)
    head.weight.requires_grad_(False)
    chunked_cross_entropy(x, head, torch.arange(5))[0].backward()
    assert head.weight.grad is None
    assert head.bias.grad is not None
    assert x.grad is not None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_in_half_precision_the_loss_is_summed_in_float32(dtype: torch.dtype) -> None:
    head, x, labels = nn.Linear(16, VOCAB), torch.randn(400, 16), torch.randint(VOCAB, (400,))
    expected = cross_entropy(head(x), labels)[0]
    narrow = head.to(dtype)
    x = x.to(dtype).requires_grad_()
    for total, _ in (chunked_cross_entropy(x, narrow, labels), cross_entropy(narrow(x), labels)):
        assert total.dtype == torch.float32
        assert abs(total - expected) < 2e-3 * expected
        total.backward()
        assert narrow.weight.grad.dtype == dtype
        assert x.grad.isfinite().all()


def test_logits_never_exist_whole() -> None:
    longest, model = [], exact(language_model())
    model.head.register_forward_hook(lambda _module, _args, out: longest.append(out.numel() // VOCAB))
    model(ids(3, 7), labels=ids(3, 7), logits_to_keep=0).loss.backward()
    assert sum(longest) == 18
    assert max(longest) == 3


def oracle(after: int) -> nn.Module:
    """A model without layers that is sure that token t is followed by t + `after`."""
    model = build_model(Model(5, Embedding(5), (), head=Head())).double()
    model.spec = language_model()
    with torch.no_grad():
        model.embedding.token.weight.copy_(torch.eye(5))
        model.head.out.weight.copy_(20 * torch.eye(5).roll(after, 0))
    return model


def test_B32_labels_are_shifted_exactly_once() -> None:
    text, model = torch.arange(5)[None], oracle(1)
    out = model(text, labels=text)
    assert out.loss < 1e-7
    assert out.tokens == 4
    twice = F.pad(text[:, 1:], (0, 1), value=-100)
    assert model(text, labels=twice).loss.item() == pytest.approx(20, abs=1e-6)


@pytest.mark.parametrize("keep", [None, 0])
def test_B32_a_row_does_not_pay_for_its_neighbour(keep: int | None) -> None:
    model, x = exact(language_model()), ids(2, 6)
    labels = x.clone()
    labels[1] = -100
    first = model(x, labels=labels, logits_to_keep=keep)
    x[1] = x[1].flip(0)
    second = model(x, labels=labels, logits_to_keep=keep)
    assert first.tokens == 5
    same(first.loss, second.loss)
    same(first.loss, model(x[:1], labels=x[:1]).loss)


@pytest.mark.parametrize("mask", [Causal(), Window(3, ahead=0), Causal() & Window(3)])
def test_labels_are_shifted_wherever_nobody_sees_ahead(mask: Mask) -> None:
    model, x = exact(language_model(attention={"mask": mask})), ids(2, 5)
    out = model(x, labels=x)
    assert out.tokens == 8
    same(out.loss, F.cross_entropy(out.logits[:, :-1].flatten(0, 1), x[:, 1:].flatten()))


def test_labels_of_a_model_that_sees_both_ways_are_not_shifted() -> None:
    model, x = exact(language_model(attention={"mask": Full()})), ids(2, 5)
    out = model(x, labels=x)
    assert out.tokens == 10
    same(out.loss, F.cross_entropy(out.logits.flatten(0, 1), x.flatten()))


@settings(max_examples=25)
@given(models() | pairs(), st.sampled_from([None, 0, 2]))
def test_B34_all_labels_ignored_is_a_loss_of_0_and_gradients_of_0(spec: object, keep: int | None) -> None:
    model, x = exact(spec), ids(2, 4)
    rest = {"decoder_input_ids": x} if isinstance(model, EncoderDecoder) else {}
    out = model(x, labels=torch.full_like(x, -100), logits_to_keep=keep, **rest)
    assert out.loss == 0
    assert out.tokens == 0
    out.loss.backward()
    found = gradients(model)
    assert all((gradient == 0).all() for gradient in found.values())
    assert found


@settings(max_examples=20)
@given(models() | pairs())
def test_whole_models_get_the_same_loss_and_gradients_either_way(spec: object) -> None:
    model, x = exact(spec), ids(2, 5)
    labels = x.clone()
    labels[0, 3:] = -100
    rest = {"decoder_input_ids": x} if isinstance(model, EncoderDecoder) else {}
    found = []
    for keep in (None, 0):
        out = model(x, labels=labels, logits_to_keep=keep, **rest)
        out.loss.backward()
        found.append(({"loss": out.loss.detach(), **gradients(model)}, out.tokens))
    (whole, tokens), (chunks, again) = found
    assert tokens == again
    assert whole.keys() == chunks.keys()
    for name, gradient in whole.items():
        same(chunks[name], gradient)


def test_B35_sums_and_counts_add_up_over_micro_batches() -> None:
    head, x, labels = heads()["linear"], torch.randn(4, 6, 8, dtype=torch.float64), torch.randint(VOCAB, (4, 6))
    for row, real in enumerate((1, 2, 3, 6)):
        labels[row, real:] = -100
    total, tokens = chunked_cross_entropy(x, head, labels)
    (total / tokens).backward()
    once = gradients(head)
    parts = [chunked_cross_entropy(x[i], head, labels[i]) for i in range(4)]
    (sum(part for part, _ in parts) / sum(count for _, count in parts)).backward()
    assert tokens == 12
    for name, gradient in gradients(head).items():
        same(gradient, once[name])
