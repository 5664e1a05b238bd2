"""Taking a part away, putting a mean or another text's numbers in its place: against the same done by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import oneblock
from oneblock.explain import ablate, effects, mean, patch, patching, trace, zero
from oneblock.spec import Pool, Seq2Seq
from oneblock.zoo import FAMILIES
from specs import exact, language_model, translator
from test_explain_trace import call_of
from test_families_cached import model_of

TEXT, OTHER = [4, 5, 6, 7], [8, 9, 10, 11]


def logits(model: Any, call: dict[str, Any], edit: dict[str, Any] | None = None) -> torch.Tensor:
    with torch.no_grad(), oneblock.listen(model, edit or {}):
        return model(**call).logits  # type: ignore[no-any-return]


def test_zero_is_a_weight_of_zero() -> None:
    model, call = exact(language_model()), {"input_ids": torch.tensor([TEXT])}
    t = trace(model, call)
    edited = logits(model, call, zero(t, "layers.0.feedforward.out"))
    with torch.no_grad():
        for parameter in model.layers[0].feedforward.down.parameters():
            parameter.zero_()
    torch.testing.assert_close(edited, logits(model, call))


def test_one_head_is_a_slice_of_the_output_projection() -> None:
    model, call = exact(language_model()), {"input_ids": torch.tensor([TEXT])}
    edited = logits(model, call, zero(trace(model, call), "layers.*.attention.z", heads=[1, 2]))
    assert not torch.equal(edited, logits(model, call))
    with torch.no_grad():
        for layer in model.layers:
            layer.attention.out.weight[:, 4:12] = 0
    torch.testing.assert_close(edited, logits(model, call))


@pytest.mark.parametrize("name", FAMILIES)
def test_patching_a_model_from_its_own_trace_changes_nothing(name: str) -> None:
    torch.manual_seed(0)
    model = model_of(name)
    call = call_of(model.spec)
    t = trace(model, call)
    edits = patch(t, *(step.path for step in t if step.path.endswith(("out", "z", "pattern", "norm", "logits", "final"))
                       and not step.path.endswith("head.out")))  # fmt: skip
    assert len(edits) > 5
    torch.testing.assert_close(logits(model, call, edits), t.output.logits, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_patching_every_stream_from_another_text_gives_that_text(name: str) -> None:
    torch.manual_seed(0)
    model = model_of(name)
    call, other = call_of(model.spec), call_of(model.spec)
    source = trace(model, other)
    stack = "decoder." if isinstance(model.spec, Seq2Seq) else ""
    last = [step.path for step in source if step.kind == "step.stream" and step.path.startswith(f"{stack}layers")][-1]
    assert not torch.equal(trace(model, call).output.logits, source.output.logits)
    torch.testing.assert_close(logits(model, call, patch(source, last)), source.output.logits)


def test_the_final_stream_of_both_stacks_can_be_replaced() -> None:
    model = exact(translator())
    call, other = call_of(model.spec, vocab=13), call_of(model.spec, vocab=13)
    t, source = trace(model, call), trace(model, other)
    same = logits(model, call, patch(source, "decoder.final"))
    torch.testing.assert_close(same, source.output.logits)
    moved = logits(model, call, patch(source, "encoder.final"))
    assert not torch.equal(moved, t.output.logits)


def test_only_some_tokens() -> None:
    model, call = exact(language_model()), {"input_ids": torch.tensor([TEXT])}
    t = trace(model, call)
    edited = trace(model, call, edit=zero(t, "layers.0.stream", at=[2]))["layers.0.stream"].tensor
    assert edited[0, 2].abs().max() == 0
    assert edited[0, [0, 1, 3]].equal(t["layers.0.stream"].tensor[0, [0, 1, 3]])


def test_a_mean_is_over_the_real_tokens_of_a_reference() -> None:
    model = exact(language_model())
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    reference = trace(model, {"input_ids": torch.tensor([OTHER, TEXT]), "attention_mask": mask})
    t = trace(model, TEXT[:3])
    edited = trace(model, TEXT[:3], edit=mean(t, "layers.1.attention.out", reference=reference))
    kept = reference["layers.1.attention.out"].tensor[mask.bool()]
    assert len(kept) == 6
    torch.testing.assert_close(edited["layers.1.attention.out"].tensor, kept.mean(0).expand(1, 3, -1))
    heads = trace(model, TEXT[:3], edit=mean(t, "layers.1.attention.z", reference=reference, heads=[0]))
    z, own = reference["layers.1.attention.z"].tensor, t["layers.1.attention.z"].tensor
    torch.testing.assert_close(heads["layers.1.attention.z"].tensor[0, 0, 1], z.transpose(1, 2)[mask.bool()].mean(0)[0])
    assert heads["layers.1.attention.z"].tensor[:, 1:].equal(own[:, 1:])


def test_effects_are_those_of_two_forward_passes() -> None:
    model, call = exact(language_model()), {"input_ids": torch.tensor([TEXT]), "labels": torch.tensor([TEXT])}
    edits = {"no ffn": zero(trace(model, TEXT), "layers.0.feedforward.out")}
    table = effects(model, TEXT, edits, [TEXT], token=3, against=8)
    before, after = logits(model, call)[0, -1], logits(model, call, edits["no ffn"])[0, -1]
    assert table.columns == ("edit", "logit", "change", "probability", "divergence", "loss")
    assert table.rows[0][:3] == ("unedited", pytest.approx((before[3] - before[8]).item()), 0.0)
    assert table.rows[1][1:4] == (
        pytest.approx((after[3] - after[8]).item()),
        pytest.approx((after[3] - after[8] - before[3] + before[8]).item()),
        pytest.approx(after.softmax(-1)[3].item()),
    )
    far = torch.nn.functional.kl_div(after.log_softmax(-1), before.log_softmax(-1), log_target=True, reduction="sum")
    assert table.rows[1][4] == pytest.approx(far.item())
    assert table.rows[0][5] == pytest.approx(model(**call).loss.item())
    assert "未改动" in str(effects(model, TEXT, {}, lang="zh"))


def test_every_sublayer_and_every_head_is_ablated_once() -> None:
    model = exact(translator())
    call = call_of(model.spec, vocab=13)
    names = ablate(model, call).column("edit")
    assert names[1:] == (
        *(f"encoder.layers.{layer}.{part}" for layer in (0, 1) for part in ("attention", "feedforward")),
        *(f"decoder.layers.{layer}.{part}" for layer in (0, 1) for part in ("attention", "cross", "feedforward")),
    )
    heads = ablate(model, call, per="head", how="mean")
    assert len(heads) == 1 + 6 * 4
    assert all(change != 0 for change in heads.column("change")[1:])
    source = trace(model, call)
    assert ablate(model, call, how="mean", reference=source).rows == ablate(model, call, how="mean").rows


def test_what_two_texts_differ_in_is_carried_where_they_differ() -> None:
    model = exact(language_model())
    changed = [TEXT[0], 9, *TEXT[2:]]
    table = patching(model, TEXT, changed)
    assert [row[0] for row in table] == [f"layers.{n}.stream{k}" for n in (0, 1) for k in ("", "#2")]
    assert table.columns == ("step", "4", "9", "6", "7")
    assert table.rows[0][1] == pytest.approx(0, abs=1e-12)  # the first token is the same in both
    assert table.rows[-1][1:] == (pytest.approx(0, abs=1e-12),) * 3 + (pytest.approx(1),)
    source = trace(model, TEXT)
    swapped = logits(model, {"input_ids": torch.tensor([changed])}, patch(source, "layers.0.stream", at=[1]))[0, -1]
    best, worst = (logits(model, {"input_ids": torch.tensor([text])})[0, -1] for text in (TEXT, changed))
    token, other = int(best.argmax()), int(worst.argmax())
    against = 0 if other == token else 1
    cell = [(x[token] - against * x[other]).item() for x in (swapped, best, worst)]
    assert table.rows[0][2] == pytest.approx((cell[0] - cell[2]) / (cell[1] - cell[2]))


def test_the_translator_carries_a_word_at_its_own_place() -> None:
    table = patching(oneblock.Translator.default(), "我爱他。", "我爱她。", target="I love him.", position=2)
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["她"] == pytest.approx(1, abs=0.05)
    assert row["我爱"] == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t: zero(t, "layers.0.attention.pattren"), "no step 'layers.0.attention.pattren'; did you mean"),
        (lambda t: zero(t, "nothing.*"), r"no step 'nothing\.\*'"),
        (lambda t: zero(t), "expected the name of a step, got none"),
        (lambda t: zero(t, "layers.0.attention.q"), "cannot be replaced; replace query"),
        (lambda t: zero(t, "layers.0.feedforward.up"), "cannot be replaced; replace hidden"),
        (
            lambda t: zero(t, "layers.0.stream", heads=[0]),
            "layers.0.stream has the axes B, L, d, none for heads",
        ),
        (lambda t: zero(t, "layers.0.attention.z", heads=[4]), "expected 0 to 3 of layers.0.attention.z, got 4"),
        (lambda t: zero(t, "layers.0.stream", at=[-1]), "expected 0 to 3 of layers.0.stream, got -1"),
        (lambda t: mean(t, "layers.0.attention.pattern"), "has no mean over tokens; replace z or out, or use zero"),
    ],
)
def test_bad_edits_are_one_line(edit: Any, message: str) -> None:
    t = trace(exact(language_model()), TEXT)
    with pytest.raises(ValueError, match=message) as caught:
        edit(t)
    assert "\n" not in str(caught.value)


def test_what_does_not_fit_is_refused() -> None:
    model = exact(language_model())
    t = trace(model, TEXT)
    with pytest.raises(ValueError, match=r"patch: layers.0.stream has the shape \(1, 3, 16\) here and \(1, 4, 16\)"):
        trace(model, TEXT[:3], edit=patch(t, "layers.0.stream"))
    with pytest.raises(ValueError, match=r"expected a step layers\.1\.stream in the reference"):
        mean(t, "layers.1.stream", reference=trace(exact(language_model(depth=1)), TEXT))
    with pytest.raises(ValueError, match="expected two texts of one length, got 4 and 3 tokens"):
        patching(model, TEXT, TEXT[:3])
    with pytest.raises(ValueError, match="both texts give the same logit"):
        patching(model, TEXT, TEXT)
    with pytest.raises(ValueError, match="expected an id of the vocabulary of 13, got 13"):
        effects(model, TEXT, {}, token=13)
    with pytest.raises(ValueError, match="position: expected one of 4 tokens, got 4"):
        effects(model, TEXT, {}, position=4)
    with pytest.raises(ValueError, match="how 'zero' or 'mean', got 'sublayer', 'one'"):
        ablate(model, TEXT, how="one")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected a head for tokens, got Pool"):
        effects(exact(language_model(head=Pool())), TEXT, {})
