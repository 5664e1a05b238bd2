"""Models as users call them: what each argument does, and that every way of asking gives the same answer."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given, settings

from oneblock.bricks import EncoderDecoder, Transformer, build_model, shift_right
from oneblock.spec import Attention, Block, Embedding, FeedForward, Full, LayerNorm, Learned, Model, Tokens, put
from specs import VOCAB, exact, ids, language_model, models, pairs, same, translator


def test_ids_or_their_vectors_give_the_same() -> None:
    model, x = exact(language_model()), ids(2, 5)
    same(model(inputs_embeds=model.embedding.token(x)).logits, model(x).logits)
    scaled = exact(translator())
    given = scaled(inputs_embeds=scaled.encoder.embedding.token(x), decoder_input_ids=x[:, :3]).logits
    same(given, scaled(x, decoder_input_ids=x[:, :3]).logits)


def test_segments_are_added_and_are_0_by_default() -> None:
    model, x = exact(language_model(embedding=Embedding(VOCAB, segments=2))), ids(2, 5)
    zeros = torch.zeros_like(x)
    same(model(x, token_type_ids=zeros).logits, model(x).logits)
    ones = model(x, token_type_ids=zeros + 1).logits
    assert (ones - model(x).logits).abs().max() > 1e-3
    vectors = model.embedding.token(x) + model.embedding.segment.weight[1] - model.embedding.segment.weight[0]
    same(ones, model(inputs_embeds=vectors).logits)


def test_positions_are_counted_unless_given() -> None:
    model, x = exact(language_model(attention={"position": None}, embedding=Embedding(VOCAB, Learned(30)))), ids(2, 5)
    counted = torch.arange(5)[None]
    same(model(x, position_ids=counted).logits, model(x).logits)
    later = model(x, position_ids=counted + 7).logits
    assert (later - model(x).logits).abs().max() > 1e-3
    with torch.no_grad():
        model.embedding.position.weight[:5] = model.embedding.position.weight[7:12]
    same(later, model(x).logits)


@pytest.mark.parametrize("keep", [None, 0, 1, 3, 6, 9])
def test_only_the_logits_asked_for_and_the_same_loss(keep: int | None) -> None:
    model, x = exact(language_model()), ids(2, 6)
    whole, part = model(x, labels=x), model(x, labels=x, logits_to_keep=keep)
    same(part.loss, whole.loss)
    assert part.tokens == whole.tokens == 10
    if keep == 0:
        assert part.logits is None
    else:
        same(part.logits, whole.logits[:, -(keep or 6) :])


def test_streams_on_the_way_are_given_when_asked() -> None:
    model, x = exact(language_model(depth=3)), ids(2, 5)
    out = model(x, output_hidden_states=True)
    assert [tuple(h.shape) for h in out.hidden_states] == [(2, 5, 16)] * 4
    same(model.head(model.norm(out.hidden_states[-1])), out.logits)
    same(model.layers[0](out.hidden_states[0]), out.hidden_states[1])
    assert model(x).hidden_states is None
    pair = exact(translator())(x, decoder_input_ids=x[:, :3], output_hidden_states=True)
    assert [tuple(h.shape) for h in pair.hidden_states] == [(2, 3, 16)] * 3


def test_an_encoders_output_can_be_used_again() -> None:
    model, x, y = exact(translator()), ids(2, 6), ids(2, 4)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]])
    first = model(x, mask, decoder_input_ids=y)
    same(model(encoder_outputs=first.encoder_outputs, decoder_input_ids=y).logits, first.logits)
    same(model(encoder_outputs=model.encode(x, mask), decoder_input_ids=y).logits, first.logits)


def test_labels_of_a_pair_are_read_behind_the_start_token() -> None:
    model, x, y = exact(translator()), ids(2, 6), ids(2, 4)
    before = torch.cat([torch.ones(2, 1, dtype=torch.long), y[:, :-1]], 1)
    same(model(x, labels=y).logits, model(x, decoder_input_ids=before).logits)
    logits = model(x, labels=y).logits
    same(model(x, labels=y).loss, torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten()), 1e-6)


def test_B68_the_start_token_leads_and_ignored_labels_are_read_as_padding() -> None:
    right = shift_right(torch.tensor([[105, 495, 53, 0]]), Tokens(pad=58100, start=58100))
    assert right.tolist() == [[58100, 105, 495, 53]]
    right = shift_right(torch.tensor([[5, -100, -100]]), Tokens(pad=7, start=9))
    assert right.tolist() == [[9, 5, 7]]


def test_B70_start_may_differ_from_padding_and_is_padding_where_nothing_else_is_said() -> None:
    assert shift_right(torch.tensor([[5, 6]]), Tokens(pad=1, start=0))[0, 0] == 0
    assert shift_right(torch.tensor([[5, 6]]), Tokens(pad=1))[0, 0] == 1


def test_one_matrix_for_both_embeddings_and_the_head() -> None:
    model = build_model(translator())
    table = model.decoder.embedding.token.weight
    assert model.encoder.embedding.token.weight is table
    assert model.decoder.head.out.weight is table
    assert sum(p is table for p in model.parameters()) == 1
    apart = build_model(put(put(translator(), "share", False), "decoder.head.tied", False))
    tables = [apart.encoder.embedding.token.weight, apart.decoder.embedding.token.weight, apart.decoder.head.out.weight]
    assert len({id(t) for t in tables}) == len({t.data_ptr() for t in tables}) == 3


@settings(max_examples=25)
@given(models() | pairs())
def test_B40_eval_draws_nothing_and_repeats_itself(spec: object) -> None:
    model, x = exact(spec), ids(2, 4)
    rest = {"decoder_input_ids": x} if isinstance(model, EncoderDecoder) else {}
    state = torch.get_rng_state()
    first, second = model(x, **rest).logits, model(x, **rest).logits
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first, second)
    assert first.shape == (2, 4, VOCAB)
    assert first.isfinite().all()


def test_B41_layers_do_not_start_alike() -> None:
    for stack in (build_model(language_model(3)), *build_model(translator(depth=3)).children()):
        first = dict(stack.layers[0].named_parameters())
        for layer in stack.layers[1:]:
            for name, parameter in layer.named_parameters():
                if parameter.ndim == 2:
                    assert not torch.equal(parameter, first[name]), name


@pytest.mark.parametrize("mask", [[1, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1], [1, 0, 1, 1, 0, 1]])
@pytest.mark.parametrize("wiring", ["pre", "post"])
def test_B04_B05_train_and_eval_agree_without_dropout_and_keep_the_length(mask: list[int], wiring: str) -> None:
    both = Block(Attention(2, mask=Full(), bias=True), FeedForward(16, bias=True), wiring=wiring)  # type: ignore[arg-type]
    model = exact(Model(8, Embedding(VOCAB), (both,) * 2, norm=LayerNorm())).float()
    x, real = ids(2, 6), torch.tensor([mask, [1, 1, 1, 0, 0, 0]])
    shown = model(x, real).logits
    model.train()
    assert model(x, real).logits.shape == shown.shape == (2, 6, VOCAB)
    same(model(x, real).logits, shown, 1e-6)
    assert shown.isfinite().all()


def test_B04_positions_that_are_padding_in_every_row_stay() -> None:
    model, x = exact(translator()), ids(2, 5)
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0]])
    assert model.encode(x, mask).x.shape == (2, 5, 16)


@pytest.mark.parametrize(
    ("dtype", "least"), [(torch.float32, 1e-5), (torch.float16, 0.02), (torch.bfloat16, 0.15)], ids=str
)
def test_a_model_runs_in_the_dtype_it_is_moved_to(dtype: torch.dtype, least: float) -> None:
    wide, x = exact(translator()), ids(2, 5)
    expected = wide(x, decoder_input_ids=x).logits
    given = copy.deepcopy(wide).to(dtype)(x, decoder_input_ids=x).logits
    assert given.dtype == dtype
    assert (given.double() - expected).abs().max() < least


def test_hooks_see_the_stream() -> None:
    model, x, seen = exact(language_model()), ids(2, 5), []
    model.layers[1].register_forward_hook(lambda _module, _args, out: seen.append(out))
    model(x)
    same(seen[0], model(x, output_hidden_states=True).hidden_states[2])


@settings(max_examples=20)
@given(models() | pairs())
def test_state_dict_and_deepcopy_carry_everything(spec: object) -> None:
    model, x = exact(spec), ids(2, 4)
    rest = {"decoder_input_ids": x} if isinstance(model, EncoderDecoder) else {}
    twin, other = copy.deepcopy(model), exact(spec, seed=1)
    other.load_state_dict(model.state_dict())
    same(twin(x, **rest).logits, model(x, **rest).logits, 0)
    same(other(x, **rest).logits, model(x, **rest).logits, 0)
    assert {id(p) for p in twin.parameters()}.isdisjoint(id(p) for p in model.parameters())
    assert len(list(twin.parameters())) == len(list(model.parameters()))


def test_B76_nothing_to_read_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one token"):
        exact(language_model())(ids(1, 0))


def test_calls_that_cannot_be_meant_are_refused() -> None:
    model, pair, x = exact(language_model()), exact(translator()), ids(2, 5)
    with pytest.raises(ValueError, match="either input_ids or inputs_embeds"):
        model(x, inputs_embeds=model.embedding.token(x))
    with pytest.raises(ValueError, match="either input_ids or inputs_embeds"):
        model()
    with pytest.raises(ValueError, match=r"attention_mask: expected \(batch, 5\), got \(2, 4\)"):
        model(x, torch.ones(2, 4))
    with pytest.raises(ValueError, match="position_ids: expected length 5, got 4"):
        model(x, position_ids=torch.arange(4)[None])
    with pytest.raises(ValueError, match="decoder_input_ids"):
        pair(x)
    with pytest.raises(ValueError, match="names no token to start from"):
        exact(put(translator(), "decoder.tokens", Tokens()))(x, labels=x)
    with pytest.raises(ValueError, match="cross-attention: expected an encoder's output"):
        pair.decoder(x)


def test_parts_that_do_not_fit_are_refused_when_built() -> None:
    with pytest.raises(ValueError, match=r"layers\.0\.attention\.heads: expected a divisor of dim=16, got 3"):
        build_model(language_model(attention={"heads": 3}))
    with pytest.raises(ValueError, match=r"decoder\.dim: expected the encoder's 16, got 8"):
        build_model(put(translator(), "decoder.dim", 8))
    with pytest.raises(ValueError, match=r"decoder\.embedding\.vocab"):
        build_model(put(translator(), "decoder.embedding.vocab", 8))
    with pytest.raises(ValueError, match="expected dim, the width of its stream"):
        build_model(LayerNorm())


def test_on_the_meta_device_a_model_has_shapes_and_no_memory() -> None:
    with torch.device("meta"):
        model = build_model(translator())
    assert isinstance(model, EncoderDecoder)
    assert all(p.is_meta for p in model.parameters())
    assert isinstance(model.decoder, Transformer)


def test_a_model_without_a_head_gives_its_final_stream() -> None:
    block = Block(Attention(2, mask=Full()), FeedForward(16))
    model = build_model(Model(8, Embedding(9), (block,), norm=LayerNorm(), head=None)).eval()
    x = torch.tensor([[1, 2, 3]])
    out = model(x, output_hidden_states=True)
    assert out.logits is None
    assert torch.equal(out.encoder_outputs.x, model.norm(out.hidden_states[-1]))
