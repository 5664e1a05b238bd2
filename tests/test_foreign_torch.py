"""torch's own attention, layers and stacks: with their weights in our bricks, outputs and gradients are the same."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from foreign import (
    MinimalBlock,
    Sentences,
    Translator,
    attention_rows,
    attention_spec,
    attn_mask,
    block_spec,
    fill,
    gradients,
    layer_rows,
    minimal_rows,
    shake,
    whole_spec,
)
from oneblock.bricks import Context, build, build_model
from oneblock.mask import from_hidden, places, to_added
from oneblock.spec import Attention, Block, Causal, FeedForward, Full, LayerNorm, Window
from oneblock.tap import listen

examples = settings(max_examples=25)
seeds = st.integers(0, 2**31)
masks = st.sampled_from(
    [
        (Full(), lambda q, k: True),  # noqa: ARG005
        (Causal(), lambda q, k: k <= q),
        (Window(back=2), lambda q, k: k > q - 2),
        (Causal() & Window(back=3), lambda q, k: q - 3 < k <= q),
        (Window(back=1, ahead=2), lambda q, k: q <= k <= q + 2),
    ]
)
"""(a mask of ours, whether query q may look at key k)."""
widths = st.sampled_from([(1, 4), (2, 3), (2, 8), (4, 2), (4, 16)])
"""(heads, features of each)."""
kinds = st.fixed_dictionaries(
    {
        "dim_feedforward": st.sampled_from([5, 32]),
        "activation": st.sampled_from(["relu", "gelu"]),
        "layer_norm_eps": st.sampled_from([1e-6, 1e-5, 0.1]),
        "norm_first": st.booleans(),
        "bias": st.booleans(),
    }
)
fixed = {"dropout": 0.0, "batch_first": True}


def close(ours, theirs):
    assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@st.composite
def hidings(draw, batch, length):
    """Which tokens are padding: none, on the right, on the left, or anywhere, even a whole sentence; True = hidden."""
    where = draw(st.sampled_from(["nowhere", "right", "left", "anywhere"]))
    if where == "nowhere":
        return None
    if where == "anywhere":
        rows = st.lists(st.booleans(), min_size=length, max_size=length)
        return torch.tensor(draw(st.lists(rows, min_size=batch, max_size=batch)))
    real = torch.tensor(draw(st.lists(st.integers(1, length), min_size=batch, max_size=batch)))[:, None]
    return torch.arange(length) >= real if where == "right" else torch.arange(length) < length - real


@st.composite
def texts(draw, batch=None):
    """Padding of a batch of some shape, as (batch, length, hidden)."""
    batch, length = batch or draw(st.integers(1, 3)), draw(st.integers(1, 7))
    return batch, length, draw(hidings(batch, length))


pairs = st.integers(1, 3).flatmap(lambda batch: st.tuples(texts(batch), texts(batch)))
"""A target and its source."""


def sentences(text, dim):
    batch, length, hidden = text
    return Sentences(torch.randn(batch, length, dim), hidden)


def agree(ours, theirs, rows, our_inputs, their_inputs):
    """The same outputs, and the same gradients of a random scalar, of all inputs and of all weights."""
    (our_model, our_out), (their_model, their_out) = ours, theirs
    close(our_out, their_out)
    toward = torch.randn_like(their_out)
    (our_out * toward).sum().backward()
    (their_out * toward).sum().backward()
    close(gradients(our_model), gradients(their_model, rows))
    for our_input, their_input in zip(our_inputs, their_inputs, strict=True):
        close(our_input.x.grad, their_input.x.grad)


@examples
@given(seeds, widths, masks, texts(), st.booleans(), st.booleans())
def test_self_attention(seed, width, mask, text, bias, floats):
    torch.manual_seed(seed)
    heads, dim = width[0], width[0] * width[1]
    theirs = nn.MultiheadAttention(dim, heads, bias=bias, batch_first=True)
    shake(theirs)
    ours = build(attention_spec(theirs, mask[0]), dim)
    fill(ours, theirs, attention_rows())
    a, b = (sentences(text, dim),) * 2
    a, b = a.leaf(), b.leaf()
    hidden = {"attn_mask": attn_mask(mask[1], text[1]), "key_padding_mask": text[2]}
    if floats:
        hidden = {name: None if m is None else to_added(from_hidden(m)) for name, m in hidden.items()}
    expected = theirs(b.x, b.x, b.x, need_weights=False, **hidden)[0]
    agree((ours, ours(a.x, a.context())), (theirs, expected), attention_rows(), [a], [b])


@examples
@given(seeds, widths, pairs, st.booleans())
def test_cross_attention(seed, width, pair, bias):
    torch.manual_seed(seed)
    heads, dim = width[0], width[0] * width[1]
    theirs = nn.MultiheadAttention(dim, heads, bias=bias, kdim=dim, vdim=dim, batch_first=True)
    shake(theirs)
    ours = build(attention_spec(theirs, Full()), dim)
    fill(ours, theirs, attention_rows())
    target, source = (sentences(text, dim) for text in pair)
    a, b = (target.leaf(), source.leaf()), (target.leaf(), source.leaf())
    expected = theirs(b[0].x, b[1].x, b[1].x, key_padding_mask=source.hidden, need_weights=False)[0]
    agree((ours, ours(a[0].x, a[0].context(), a[1].memory)), (theirs, expected), attention_rows(), a, b)


@examples
@given(seeds, widths, masks, texts(), kinds)
def test_encoder_layer(seed, width, mask, text, kind):
    torch.manual_seed(seed)
    heads, dim = width[0], width[0] * width[1]
    theirs = nn.TransformerEncoderLayer(dim, heads, **kind, **fixed)
    shake(theirs)
    ours, rows = build(block_spec(theirs, mask[0]), dim), layer_rows(theirs)
    fill(ours, theirs, rows)
    given_ = sentences(text, dim)
    a, b = given_.leaf(), given_.leaf()
    expected = theirs(b.x, src_mask=attn_mask(mask[1], text[1]), src_key_padding_mask=text[2])
    agree((ours, ours(a.x, a.context())), (theirs, expected), rows, [a], [b])


@examples
@given(seeds, widths, masks, pairs, kinds)
def test_decoder_layer(seed, width, mask, pair, kind):
    torch.manual_seed(seed)
    heads, dim = width[0], width[0] * width[1]
    theirs = nn.TransformerDecoderLayer(dim, heads, **kind, **fixed)
    shake(theirs)
    ours, rows = build(block_spec(theirs, mask[0]), dim), layer_rows(theirs)
    fill(ours, theirs, rows)
    target, source = (sentences(text, dim) for text in pair)
    a, b = (target.leaf(), source.leaf()), (target.leaf(), source.leaf())
    hidden = {"tgt_key_padding_mask": target.hidden, "memory_key_padding_mask": source.hidden}
    expected = theirs(b[0].x, b[1].x, tgt_mask=attn_mask(mask[1], pair[0][1]), **hidden)
    agree((ours, ours(a[0].x, a[0].context(a[1]))), (theirs, expected), rows, a, b)


@examples
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@given(seeds, widths, pairs, kinds, st.tuples(st.integers(1, 3), st.integers(1, 3)), st.booleans())
def test_whole_encoder_decoder_with_its_loss(seed, width, pair, kind, depths, final_norm):
    torch.manual_seed(seed)
    vocab, heads, dim = 11, width[0], width[0] * width[1]
    theirs = Translator(
        vocab, d_model=dim, nhead=heads, num_encoder_layers=depths[0], num_decoder_layers=depths[1], **kind
    )
    if not final_norm:
        theirs.transformer.encoder.norm = theirs.transformer.decoder.norm = None
    shake(theirs)
    ours, rows = build_model(whole_spec(theirs.transformer, vocab)), theirs.rows()
    fill(ours, theirs, rows)
    (batch, length, target_hidden), (_, source_length, source_hidden) = pair
    source, target = torch.randint(vocab, (batch, source_length)), torch.randint(vocab, (batch, length))
    labels = torch.randint(vocab, (batch, length))
    labels[0, -1] = -100
    labels[-1, 0] = 3  # so that there is always a loss
    expected = theirs(source, target, source_hidden, target_hidden)
    loss = nn.functional.cross_entropy(expected.flatten(0, 1), labels.flatten(), ignore_index=-100)
    real = {"attention_mask": source_hidden, "decoder_attention_mask": target_hidden}
    real = {name: None if hidden is None else from_hidden(hidden).long() for name, hidden in real.items()}
    out = ours(source, decoder_input_ids=target, labels=labels, **real)
    close(out.logits, expected)
    close(out.loss, loss)
    out.loss.backward()
    loss.backward()
    close(gradients(ours), gradients(theirs, rows))


@examples
@given(seeds, widths, texts(), kinds, st.integers(1, 3))
def test_B04_B05_encoder_stack_in_eval_where_torch_takes_its_fast_path(seed, width, text, kind, depth):
    torch.manual_seed(seed)
    heads, dim = width[0], width[0] * width[1]
    layer = nn.TransformerEncoderLayer(dim, heads, **kind, **fixed)
    theirs = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
    shake(theirs)
    ours = nn.ModuleList(build(block_spec(layer, Full()), dim) for _ in theirs.layers)
    for block, layer in zip(ours, theirs.layers, strict=True):
        fill(block, layer, layer_rows(layer))
    given_ = sentences(text, dim)
    with torch.no_grad():
        expected = theirs.eval()(given_.x, src_key_padding_mask=text[2])
        x, ctx = given_.x, given_.context()
        for block in ours.eval():
            x = block(x, ctx)
    assert x.isfinite().all()
    seen = expected.isfinite().all(-1) if text[2] is None else ~text[2]
    close(x[seen], expected[seen])


@examples
@given(seeds, texts(), st.sampled_from([8, 16, 32]), st.sampled_from(["relu", "gelu"]))
def test_N20_the_minimal_block(seed, text, dim, activation):
    torch.manual_seed(seed)
    theirs, spec = MinimalBlock(dim, 4 * dim, activation), minimal_spec(dim, activation, Full())
    shake(theirs)
    ours = build(spec, dim)
    fill(ours, theirs, minimal_rows())
    given_ = sentences(text, dim)
    a, b = given_.leaf(), given_.leaf()
    agree((ours, ours(a.x)), (theirs, theirs(b.x)), minimal_rows(), [a], [b])


def minimal_spec(dim, activation, mask):
    attention = Attention(heads=8, mask=mask, bias=True)
    return Block(attention, FeedForward(4 * dim, activation, bias=True), norm=LayerNorm(), wiring="post")


@torch.no_grad()
def test_E8_the_minimal_block_shows_the_future_and_padding_and_ours_with_the_same_weights_does_not():
    theirs = MinimalBlock(16, 64, "gelu")
    shake(theirs)
    spec = minimal_spec(16, "gelu", Full())
    masked = build(replace(spec, attention=replace(spec.attention, mask=Causal())), 16)
    fill(masked, theirs, minimal_rows())
    x = torch.randn(2, 6, 16)
    other = x.clone()
    other[:, 4:] = torch.randn(2, 2, 16)
    assert (theirs(other) - theirs(x))[:, :4].abs().amax(-1).min() > 1e-3
    assert torch.equal(masked(other)[:, :4], masked(x)[:, :4])
    padded = build(spec, 16)
    fill(padded, theirs, minimal_rows())
    ctx = Context(places(6, torch.tensor([[1, 1, 1, 1, 0, 0]] * 2)))
    assert torch.equal(padded(other, ctx)[:, :4], padded(x, ctx)[:, :4])


@examples
@given(seeds, masks, texts())
def test_attention_weights(seed, mask, text):
    torch.manual_seed(seed)
    theirs = nn.MultiheadAttention(8, 2, batch_first=True)
    shake(theirs)
    ours = build(attention_spec(theirs, mask[0]), 8)
    fill(ours, theirs, attention_rows())
    given_ = sentences(text, 8)
    hidden = {"attn_mask": attn_mask(mask[1], text[1]), "key_padding_mask": text[2]}
    out, expected = theirs(given_.x, given_.x, given_.x, average_attn_weights=False, **hidden)
    with listen(ours, only="pattern") as seen:
        z = ours(given_.x, given_.context())
    blind = expected.isnan().any(-1)  # (batch, heads, query): rows that see nothing, 0/0 in torch
    close(seen["pattern"][~blind], expected[~blind])
    assert (seen["pattern"][blind] == 0).all()
    blind = blind.any(1)  # (batch, query)
    close(z[~blind], out[~blind])
    close(z[blind], ours.out.bias.expand_as(z)[blind])


def test_E11_B11_a_query_that_sees_nothing_is_nan_in_torch_and_zeros_with_zero_gradients_here():
    theirs = nn.MultiheadAttention(4, 2, batch_first=True)
    ours = build(attention_spec(theirs, Causal()), 4)
    fill(ours, theirs, attention_rows())
    given_ = Sentences(torch.randn(1, 3, 4), torch.tensor([[True, False, False]]))
    a, b = given_.leaf(), given_.leaf()
    expected = theirs(b.x, b.x, b.x, attn_mask=attn_mask(lambda q, k: k <= q, 3), key_padding_mask=b.hidden)[0]
    assert expected.isnan().all(-1).tolist() == [[True, False, False]]
    out = ours(a.x, a.context())
    close(out[:, 1:], expected[:, 1:])
    assert torch.equal(out[:, 0], ours.out.bias[None])
    expected[:, 1:].sum().backward()
    out.sum().backward()
    assert theirs.in_proj_weight.grad.isnan().any()
    assert all(p.grad.isfinite().all() for p in ours.parameters())
    assert (a.x.grad[:, 0] == 0).all()
